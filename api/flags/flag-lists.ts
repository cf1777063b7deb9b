import { z } from 'zod';
import { mapInTurns } from '../../db/loop-turns.ts';
import { deleteFlags } from '../../flags/commands/delete-many.ts';
import { TAG_CHANGES, tagFlags } from '../../flags/commands/tag-many.ts';
import { keysOfFlags, listFlagIds } from '../../flags/rows/flags.ts';
import { FLAG_LIMITS } from '../../flags/rules/limits.ts';
import { rolloutStateOf } from '../../flags/rules/rollout-state.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { pageQuery } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { addActivityOf } from '../tenancy/activity-of.ts';
import { FLAGS_PREFIX, findsFlag } from './feature-flags.ts';
import { choiceOf, flagChoice, flagOrder, tagNames, tagsOf } from './flag-schema.ts';

const TAGS = ['feature flags'];
const READ = 'feature_flag:read';
const params = z.object({ project_id: z.string() });
const MOST_IDS = 10_000;
const SHOWN_IDS = 10;

/** Adds the routes that tell something of many flags at once, and what was done to flags. */
export function flagListRoutes(app: App, { pool, config }: Pick<ApiDependencies, 'pool' | 'config'>): void {
  app.post(
    `${FLAGS_PREFIX}bulk_keys/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'The keys of feature flags, by their ids',
        description: 'Ids that no flag of the project has are left out.',
        params,
        body: z.object({ ids: z.array(z.unknown()).max(MOST_IDS).default([]) }),
        response: {
          200: z.object({ keys: z.record(z.string(), z.string()), warning: z.string().optional() }),
        },
      },
    },
    async ({ project, body: { ids } }) => {
      // An object may have a text of its own, or none.
      const numberOf = (id: unknown) => (typeof id === 'object' ? undefined : serialOf(String(id)));
      const wrong = ids.filter((id) => numberOf(id) === undefined);
      if (wrong.length > 0 && wrong.length === ids.length) {
        throw errors.validation('invalid_input', 'Invalid flag IDs provided', 'ids');
      }
      const known = ids.flatMap((id) => numberOf(id) ?? []);
      const keys = Object.fromEntries(await keysOfFlags(pool, project.id, known));
      const shown = wrong
        .slice(0, SHOWN_IDS)
        .map((id) => (typeof id === 'string' ? `'${id}'` : JSON.stringify(id)));
      return wrong.length > 0
        ? { keys, warning: `Invalid flag IDs ignored: [${shown.join(', ')}]`.slice(0, 1_000) }
        : { keys };
    },
  );

  app.get(
    `${FLAGS_PREFIX}matching_ids/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'The ids of all feature flags of a choice',
        params,
        description: 'Takes what the list of flags takes. Pages and orders do not matter.',
        querystring: pageQuery.extend({ ...flagChoice.shape, order: flagOrder }),
        response: { 200: z.object({ ids: z.array(z.int()), total: z.int() }) },
      },
    },
    async ({ project, query }) => {
      const ids = await listFlagIds(pool, project.id, choiceOf(query));
      return { ids, total: ids.length };
    },
  );

  const state = z.enum(['fully_rolled_out', 'partial', 'not_rolled_out']);
  app.post(
    `${FLAGS_PREFIX}bulk_delete/`,
    {
      config: { access: { scope: 'feature_flag:write' } },
      schema: {
        tags: TAGS,
        summary: 'Delete feature flags',
        description:
          'Either by their `ids`, or all that `filters` choose as in the list. What cannot be deleted stays, and `errors` says ' +
          'why. Flags that depend on each other go together.',
        params,
        body: z
          .object({
            ids: z.array(z.int()).min(1).max(FLAG_LIMITS.changedAtOnce),
            filters: z
              .looseObject(flagChoice.shape)
              .superRefine((choice, context) => {
                const unknown = Object.keys(choice).filter((name) => !Object.hasOwn(flagChoice.shape, name));
                if (unknown.length === 0) return;
                const message = `Unknown filter keys: ${unknown.sort().join(', ')}`.slice(0, 500);
                context.addIssue({ code: 'custom', message });
              })
              .refine((choice) => Object.values(choice).some((one) => one !== undefined), {
                error: 'Choose flags by at least one of the filters of the list.',
              }),
          })
          .partial()
          .refine(({ ids, filters }) => ids !== undefined || filters !== undefined, {
            error: 'Must provide either filters or ids',
          })
          .refine(({ ids, filters }) => ids === undefined || filters === undefined, {
            error: 'Provide either filters or ids, not both',
          })
          .meta({ minProperties: 1 }),
        response: {
          200: z.object({
            deleted: z.array(
              z.object({
                ...{ id: z.int(), key: z.string(), rollout_state: state },
                active_variant: z
                  .string()
                  .nullable()
                  .meta({ description: 'The variant that everybody had.' }),
              }),
            ),
            errors: z.array(z.object({ id: z.int(), key: z.string().optional(), reason: z.string() })),
          }),
        },
      },
    },
    async (request) => {
      const { ids: given, filters } = request.body;
      const ids = filters ? await listFlagIds(pool, request.project.id, choiceOf(filters)) : (given ?? []);
      if (ids.length > FLAG_LIMITS.changedAtOnce) {
        const most = FLAG_LIMITS.changedAtOnce;
        const message = `The filters choose ${ids.length} feature flags; at most ${most} can be deleted at once.`;
        throw errors.validation('invalid_input', message, 'filters');
      }
      const { deleted, refused } = await deleteFlags({ pool }, actorOf(request), request.project.id, ids);
      const shown = await mapInTurns(deleted, (row) => {
        const { state, variant } = rolloutStateOf(JSON.parse(row.filters));
        return { id: row.id, key: row.key, rollout_state: state, active_variant: variant };
      });
      return { deleted: shown, errors: refused };
    },
  );

  app.post(
    `${FLAGS_PREFIX}bulk_update_tags/`,
    {
      config: { access: { scope: 'feature_flag:write' } },
      schema: {
        tags: TAGS,
        summary: 'Change the tags of feature flags',
        params,
        body: z.object({
          ids: z.array(z.int()).min(1).max(FLAG_LIMITS.changedAtOnce),
          action: z.enum(TAG_CHANGES).meta({ description: '`set` replaces all tags of each flag.' }),
          tags: tagNames,
        }),
        response: {
          200: z.object({
            updated: z.array(z.object({ id: z.int(), tags: z.array(z.string()) })),
            skipped: z.array(z.object({ id: z.int(), reason: z.string() })),
          }),
        },
      },
    },
    async (request) => {
      const { ids, action, tags } = request.body;
      const change = { ids, change: action, tags: tagsOf(tags) };
      return tagFlags({ pool }, actorOf(request), request.project.id, change);
    },
  );

  addActivityOf(
    app,
    { pool, config },
    {
      ...{ prefix: FLAGS_PREFIX, scope: 'FeatureFlag', tag: TAGS[0] as string },
      ...{ one: 'a feature flag', many: 'feature flags' },
      find: findsFlag(pool),
      idOf: (request) => request.flag.id,
    },
  );
}
