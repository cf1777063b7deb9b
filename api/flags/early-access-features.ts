import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeFeature, createFeature, deleteFeature } from '../../flags/commands/early-access.ts';
import {
  type EarlyAccessRow,
  findEarlyAccess,
  listEarlyAccess,
  type OfferedFeature,
  offeredFeatures,
  PUBLIC_OFFERS_CHANNEL,
} from '../../flags/rows/early-access.ts';
import { DEFAULT_PUBLIC_STAGE, PUBLIC_STAGES, STAGES } from '../../flags/rules/early-access.ts';
import { FLAG_LIMITS } from '../../flags/rules/limits.ts';
import { isUuid } from '../../values/uuid.ts';
import { requireScope } from '../access.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm, optionalText, text, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import type { Handle, Query } from '../public/exchange.ts';
import type { Lane, LaneMember } from '../public/lane.ts';
import { createOffers, OFFERS_CACHE, projectInQuery } from '../public/offers.ts';
import { type Packed, packed, packedAnswer } from '../public/packed.ts';
import { flagCommands } from './dependencies.ts';

const TAGS = ['early access features'];
const PREFIX = '/api/projects/:project_id/early_access_feature/';
const READ = 'early_access_feature:read';
const WRITE = 'early_access_feature:write';
const params = z.object({ project_id: z.string() });
const featureParams = params.extend({ id: z.string() });

const stage = z.enum(STAGES).meta({
  description:
    'From `alpha` on, whoever enrols has the flag. For a `concept`, people only say that they would want it. Clients see ' +
    'neither a `draft` nor what is `archived`.',
});
const fields = z.object({
  name: text(200),
  description: optionalText(4_000),
  stage,
  documentation_url: optionalText(800),
  payload: freeForm
    .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= FLAG_LIMITS.featurePayloadBytes, {
      error: `The payload may have ${FLAG_LIMITS.featurePayloadBytes} bytes as JSON.`,
    })
    .meta({ description: 'What clients get beside the feature.' }),
});
const body = fields.partial({ description: true, documentation_url: true, payload: true }).extend({
  feature_flag_id: z.int().nullable().optional().meta({
    description:
      'A flag that exists, which needs the scope `feature_flag:write`. By default the feature makes one, with a key of its name.',
  }),
  _create_in_folder: z.unknown().optional().meta({ description: 'Is ignored.', writeOnly: true }),
});
const patch = fields.partial().extend({
  rollout_to_all: z.boolean().optional().meta({
    description: 'With the stage `general-availability`: everybody has the flag, whatever they have chosen.',
    writeOnly: true,
  }),
});

const shown = z
  .object({
    id: z.guid(),
    feature_flag: z
      .object({ id: z.int(), key: z.string(), name: z.string(), active: z.boolean(), filters: freeForm })
      .meta({ id: 'EarlyAccessFlag' }),
    ...fields.shape,
    created_at: timestamp,
  })
  .meta({ id: 'EarlyAccessFeature' });

function view({ project_id: _, flag_id: _flag, flag, ...rest }: EarlyAccessRow): z.output<typeof shown> {
  return { ...rest, feature_flag: flag };
}

/** Adds the routes of features that persons choose themselves. */
export function earlyAccessRoutes(app: App, deps: ApiDependencies): void {
  const { pool, config } = deps;
  const commands = flagCommands(deps);

  async function findOne(request: FastifyRequest): Promise<EarlyAccessRow> {
    const { id: featureId } = request.params as { id: string };
    const key = { projectId: request.project.id, featureId };
    const row = isUuid(featureId) ? await findEarlyAccess(pool, key) : undefined;
    if (!row) throw errors.notFound();
    return row;
  }
  const keyOf = (row: EarlyAccessRow) => ({ projectId: row.project_id, featureId: row.id });

  app.get(
    PREFIX,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List early access features, newest first',
        params,
        querystring: pageQuery,
        response: { 200: page(shown) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { count, rows } = await listEarlyAccess(pool, { ...wanted, projectId: request.project.id });
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(view));
    },
  );

  app.post(
    PREFIX,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary: 'Create an early access feature',
        params,
        body,
        response: { 201: shown },
      },
    },
    async (request, reply) => {
      // The feature changes its flag, and shows it to all who may read features.
      if (request.body.feature_flag_id) requireScope(request.caller, 'feature_flag:write');
      const { name, description = '', stage, documentation_url = '', payload = {} } = request.body;
      const made = await createFeature(commands, actorOf(request), request.project.id, {
        ...{ name, description, stage, documentation_url, payload },
        flagId: request.body.feature_flag_id ?? undefined,
      });
      reply.code(201);
      return view(made);
    },
  );

  app.get(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'Retrieve an early access feature',
        params: featureParams,
        response: { 200: shown },
      },
    },
    async (request) => view(await findOne(request)),
  );

  for (const method of ['PUT', 'PATCH'] as const) {
    app.route({
      method,
      url: `${PREFIX}:id/`,
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary:
          method === 'PUT'
            ? 'Change an early access feature'
            : 'Change some fields of an early access feature',
        description: 'Fields that you leave out keep their values. The flag stays the same.',
        params: featureParams,
        body: patch,
        response: { 200: shown },
      },
      handler: async (request) => {
        const row = await findOne(request);
        const { rollout_to_all: rollsOutToAll, ...change } = request.body;
        const options = { rollsOutToAll };
        return view(await changeFeature(commands, actorOf(request), keyOf(row), change, options));
      },
    });
  }

  app.delete(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary: 'Delete an early access feature',
        description: 'Its flag stays, without those who enrolled.',
        params: featureParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      await deleteFeature(commands, actorOf(request), keyOf(await findOne(request)));
      return reply.code(204).send(null);
    },
  );
}

const MEMBER: LaneMember = {
  name: 'early access features',
  tag: 'flags',
  share: { held: 64 * 1024, atWork: 64 * 1024, unpacking: 0 },
  largestBody: { bytes: 16 * 1024, refusal: 'The request is larger than 16384 bytes.' },
};

/** The stages that a query names. */
function stagesIn({ stage: given }: Query): ReadonlySet<string> {
  const named = (Array.isArray(given) ? given : [given]).filter(
    (one): one is string => one !== undefined && (PUBLIC_STAGES as readonly string[]).includes(one),
  );
  return new Set(named.length > 0 ? named : [DEFAULT_PUBLIC_STAGE]);
}

/** A list has as many features as fit. */
const MOST_BYTES = 1024 * 1024;

/** The answers about the features of a project. */
interface FeatureAnswers {
  of(stages: ReadonlySet<string>): Promise<Packed>;
  /** What all of them may take. */
  bytes: number;
}

/** Writes and packs each list once, when it is asked for: anybody may ask, and as often as they like. */
export function answersOf(features: readonly OfferedFeature[]): FeatureAnswers {
  const present = PUBLIC_STAGES.filter((one) => features.some((feature) => feature.stage === one));
  const known = new Map<string, Promise<Packed>>();
  return {
    of(stages) {
      const wanted = present.filter((one) => stages.has(one));
      const name = wanted.join();
      const answer =
        known.get(name) ??
        packed(
          JSON.stringify({
            earlyAccessFeatures: features.filter((one) => (wanted as string[]).includes(one.stage)),
          }),
        );
      known.set(name, answer);
      return answer;
    },
    // There is a list for each choice of stages, plain and packed, and each feature is in half of them.
    bytes: JSON.stringify(features).length * (1 + 2 ** present.length),
  };
}

/** Adds the list of features that browsers offer. */
export function offeredFeatureRoutes(lane: Lane, deps: Pick<ApiDependencies, 'lanePool' | 'listener'>): void {
  const { add } = lane.join(MEMBER);
  const offers = createOffers(deps.listener, PUBLIC_OFFERS_CHANNEL, async (projectId) => {
    const features = await offeredFeatures(deps.lanePool, projectId, MOST_BYTES);
    const value = answersOf(features);
    return { value, bytes: value.bytes };
  });
  lane.onClose(() => offers.close());
  const list: Handle = async (incoming) => {
    const stages = stagesIn(incoming.request.query as Query);
    const answers = await offers.of(await projectInQuery(lane.keys, incoming));
    return packedAnswer(incoming.request, await answers.of(stages), 'application/json', OFFERS_CACHE);
  };
  add('GET', '/api/early_access_features', list, {
    summary: 'The features that a browser offers, by default those in beta',
    answer: freeForm,
  });
}
