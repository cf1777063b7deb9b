// A peer: GrowthBook's SDK behind Fastify. It answers values only. Sluice does not depend on the SDK:
// `npm install --no-save @growthbook/growthbook@1.8.0` gets it for a measurement.
import { readFileSync } from 'node:fs';
import Fastify from 'fastify';
import type { filtersOf } from './dataset.ts';

const PACKAGE = '@growthbook/growthbook';
const { GrowthBookClient } = await import(PACKAGE);
const { flags } = JSON.parse(readFileSync(process.env.DEFINITIONS as string, 'utf8')) as {
  flags: { key: string; filters: ReturnType<typeof filtersOf> }[];
};

interface Group {
  properties: { key: string; operator: string; value: string | string[] }[];
  rollout_percentage: number;
}

const conditionOf = ({ key, operator, value }: Group['properties'][number]) => {
  if (operator === 'icontains') return { [key]: { $regex: String(value).replaceAll('.', '\\.') } };
  return { [key]: operator === 'gte' ? { $gte: Number(value) } : { $in: value } };
};
const features = Object.fromEntries(
  flags.map(({ key, filters }) => {
    const { groups, multivariate } = filters as {
      groups: Group[];
      multivariate?: { variants: { key: string; rollout_percentage: number }[] };
    };
    if (multivariate) {
      const { variants } = multivariate;
      const experiment = {
        ...{ key, hashAttribute: 'id', variations: variants.map((one) => one.key) },
        weights: variants.map((one) => one.rollout_percentage / 100),
      };
      return [key, { defaultValue: false, rules: [experiment] }];
    }
    const rules = groups.map((group) => ({
      ...{ force: true, hashAttribute: 'id', coverage: group.rollout_percentage / 100 },
      condition: Object.assign({}, ...group.properties.map(conditionOf)),
    }));
    return [key, { defaultValue: false, rules }];
  }),
);
const client = new GrowthBookClient().initSync({ payload: { features } });
const app = Fastify();
app.post('/flags', (request, reply) => {
  const body = request.body as { distinct_id: string; person_properties?: object };
  const user = client.createScopedInstance({
    attributes: { id: body.distinct_id, ...body.person_properties },
  });
  const featureFlags: Record<string, unknown> = {};
  for (const { key } of flags) featureFlags[key] = user.evalFeature(key).value;
  return reply.send({ featureFlags });
});
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
process.once('SIGTERM', () => process.exit());
