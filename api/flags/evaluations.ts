import { z } from 'zod';
import { pacing } from '../../db/loop-turns.ts';
import type { CompiledFlag } from '../../flags/engine/compile.ts';
import type { Outcome } from '../../flags/engine/outcome.ts';
import type { FlagRequest } from '../../flags/evaluator.ts';
import { findFlag } from '../../flags/rows/flags.ts';
import { isObject } from '../../values/json-object.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import type { Flags } from './dependencies.ts';
import { FLAGS_PREFIX } from './feature-flags.ts';
import { featureFlag, flagView } from './flag-schema.ts';

const TAGS = ['feature flags'];
const READ = 'feature_flag:read';
const params = z.object({ project_id: z.string() });
const value = z.union([z.boolean(), z.string()]);
const mine = z.object({ feature_flag: featureFlag, value });
/** Each is shown whole. */
const MOST_SHOWN = 500;
const groupsQuery = z.object({
  groups: z.string().max(10_000).optional().meta({ description: 'JSON: the keys of groups, by type.' }),
});

const keysQuery = z
  .union([z.string().max(20_000), z.array(z.string().max(400)).max(1_000)])
  .optional()
  .meta({ description: 'Only these flags: keys, repeated, separated by commas, or as a JSON list.' });

/** Reads the keys of flags in a query. Undefined: all. */
function keysIn(given: z.output<typeof keysQuery>): ReadonlySet<string> | undefined {
  if (given === undefined || given === '') return undefined;
  const texts = Array.isArray(given) ? given : [given];
  return new Set(texts.flatMap((text) => text.split(/[\s,[\]"]+/)).filter((key) => key !== ''));
}

function groupsIn(text: string | undefined): Record<string, string> {
  if (text === undefined || text === '') return {};
  try {
    const groups: unknown = JSON.parse(text);
    if (isObject(groups)) {
      return Object.fromEntries(Object.entries(groups).map(([type, key]) => [type, String(key)]));
    }
  } catch {
    // Refused below.
  }
  throw errors.validation('invalid_input', 'This must be a JSON object.', 'groups');
}

const requestFor = (distinctId: string, groups: Record<string, string>): FlagRequest => ({
  ...{ distinctId, groups, anonDistinctId: '', deviceId: '' },
  ...{ personProperties: {}, groupProperties: {}, place: {}, runtime: 'all' },
});

const shownValue = (outcome: Outcome): boolean | string =>
  outcome.enabled ? (outcome.variant ?? true) : false;

/** Adds the routes that tell what flags are for somebody, and why. */
export function flagEvaluationRoutes(
  app: App,
  { pool, flags }: Pick<ApiDependencies, 'pool'> & { flags: Flags },
): void {
  async function evaluated(projectId: number, distinctId: string, groups: Record<string, string>) {
    const found = await flags.evaluator.evaluate(projectId, requestFor(distinctId, groups));
    if (!found) throw errors.notFound();
    return found;
  }

  app.get(
    `${FLAGS_PREFIX}my_flags/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'The feature flags of the caller',
        params,
        querystring: groupsQuery.extend({ flag_keys: keysQuery }),
        response: { 200: z.array(mine) },
      },
    },
    async (request) => {
      const { project, query, caller } = request;
      const keys = keysIn(query.flag_keys);
      const found = await evaluated(project.id, caller.user.distinct_id, groupsIn(query.groups));
      const wanted = found.flags
        .filter((flag) => !keys || keys.has(flag.definition.key))
        .slice(0, MOST_SHOWN);
      const pace = pacing();
      const shown: z.output<typeof mine>[] = [];
      for (const flag of wanted) {
        const row = await findFlag(pool, { projectId: project.id, flagId: flag.definition.id });
        if (row) shown.push({ feature_flag: flagView(row), value: shownValue(found.evaluation.of(flag)) });
        const rested = pace();
        if (rested) await rested;
      }
      return shown;
    },
  );

  const reason = z.object({
    value,
    evaluation: z.object({ reason: z.string(), condition_index: z.int().nullable() }),
  });

  app.get(
    `${FLAGS_PREFIX}evaluation_reasons/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'What each feature flag is for a distinct id, and why',
        params,
        querystring: groupsQuery.extend({ distinct_id: z.string().min(1).max(400), flag_keys: keysQuery }),
        response: { 200: z.record(z.string(), reason) },
      },
    },
    async ({ project, query }) => {
      const { evaluation, project: known } = await evaluated(
        project.id,
        query.distinct_id,
        groupsIn(query.groups),
      );
      const tell = (flag: CompiledFlag) => {
        if (!flag.definition.isActive) {
          return { value: false, evaluation: { reason: 'disabled', condition_index: null } };
        }
        const outcome = evaluation.of(flag);
        return {
          value: shownValue(outcome),
          evaluation: { reason: outcome.code, condition_index: outcome.conditionIndex },
        };
      };
      const keys = keysIn(query.flag_keys);
      const wanted = known.set.flags.filter((flag) => !keys || keys.has(flag.definition.key));
      return Object.fromEntries(wanted.map((flag) => [flag.definition.key, tell(flag)]));
    },
  );
}
