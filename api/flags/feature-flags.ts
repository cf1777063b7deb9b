import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { mapInTurns } from '../../db/loop-turns.ts';
import type { Queryable } from '../../db/pool.ts';
import { changeFlag } from '../../flags/commands/change.ts';
import { createFlag } from '../../flags/commands/create.ts';
import { overrideFlag } from '../../flags/commands/override.ts';
import { type FlagRow, findFlag, listFlags, listLinks, listOverrides } from '../../flags/rows/flags.ts';
import { rolloutStateOf } from '../../flags/rules/rollout-state.ts';
import { statusOf } from '../../flags/rules/status.ts';
import { actorOf } from '../actor.ts';
import { bringsBack } from '../brings-back.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { flagCommands } from './dependencies.ts';
import { withNames } from './filter-names.ts';
import {
  changeOf,
  choiceOf,
  featureFlag,
  flagChoice,
  flagInput,
  flagOrder,
  flagView,
  newFlag,
} from './flag-schema.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The flag of the path, as it was before the body was validated. Only routes with `findsFlag` have it. */
    flag: FlagRow;
  }
}

const TAGS = ['feature flags'];
export const FLAGS_PREFIX = '/api/projects/:project_id/feature_flags/';
const READ = 'feature_flag:read';
const WRITE = 'feature_flag:write';
const params = z.object({ project_id: z.string() });
const flagParams = params.extend({ id: z.string() });

/**
 * Makes a hook that finds the flag of the path. A deleted flag is found only by a body that brings it back, or where deleted
 * ones are wanted too.
 */
export function findsFlag(queryable: Queryable, { andDeleted = false } = {}) {
  return async (request: FastifyRequest): Promise<void> => {
    const flagId = serialOf((request.params as { id: string }).id);
    const row = flagId && (await findFlag(queryable, { projectId: request.project.id, flagId }));
    if (!row || (row.deleted && !andDeleted && !bringsBack(request))) throw errors.notFound();
    request.flag = row;
  };
}

const override = z
  .object({
    distinct_id: z.string().min(1).max(200),
    value: z
      .union([z.boolean(), z.string().min(1).max(400)])
      .meta({ description: 'False, true, or the key of a variant.' }),
  })
  .meta({ id: 'FlagOverride' });

const dependent = z.object({ id: z.int(), key: z.string(), name: z.string() }).meta({ id: 'DependentFlag' });

/** Adds the routes that create, read and change feature flags. */
export function featureFlagRoutes(app: App, deps: ApiDependencies): void {
  const { pool, config } = deps;
  const commands = flagCommands(deps);
  const find = findsFlag(pool);
  const one = async (row: FlagRow) =>
    (await withNames(pool, row.project_id, [flagView(row)]))[0] as z.output<typeof featureFlag>;

  app.get(
    FLAGS_PREFIX,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List feature flags, newest first',
        params,
        querystring: pageQuery.extend({ ...flagChoice.shape, order: flagOrder }),
        response: { 200: page(featureFlag) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { count, rows } = await listFlags(pool, {
        ...wanted,
        ...choiceOf(request.query),
        projectId: request.project.id,
      });
      const shown = await withNames(pool, request.project.id, await mapInTurns(rows, flagView));
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, shown);
    },
  );

  app.post(
    FLAGS_PREFIX,
    {
      config: { access: { scope: WRITE }, keepsNumbers: true },
      schema: {
        tags: TAGS,
        summary: 'Create a feature flag',
        params,
        body: newFlag,
        response: { 201: featureFlag },
      },
    },
    async (request, reply) => {
      const { version: _, original_flag: _seen, ...input } = changeOf(request.body);
      const row = await createFlag(commands, actorOf(request), request.project.id, input);
      reply.code(201);
      return one(row);
    },
  );

  app.get(
    `${FLAGS_PREFIX}:id/`,
    {
      config: { access: { scope: READ }, isNeverDeleted: true },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Retrieve a feature flag',
        params: flagParams,
        response: { 200: featureFlag },
      },
    },
    async (request) => one(request.flag),
  );

  for (const [method, summary] of [
    ['PUT', 'Change a feature flag'],
    ['PATCH', 'Change some fields of a feature flag; delete it, or bring it back'],
  ] as const) {
    app.route({
      method,
      url: `${FLAGS_PREFIX}:id/`,
      config: { access: { scope: WRITE }, keepsNumbers: true },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary,
        description:
          'Fields that you leave out keep their values. There is no DELETE: `deleted` does it, and a PATCH with ' +
          '`"deleted": false` brings a deleted flag back.',
        params: flagParams,
        body: flagInput,
        response: { 200: featureFlag },
      },
      handler: async (request) => {
        const { flag, project, body } = request;
        const key = { projectId: project.id, flagId: flag.id };
        return one(await changeFlag(commands, actorOf(request), key, changeOf(body)));
      },
    });
  }

  app.get(
    `${FLAGS_PREFIX}:id/status/`,
    {
      config: { access: { scope: READ } },
      preValidation: findsFlag(pool, { andDeleted: true }),
      schema: {
        tags: TAGS,
        summary: 'Whether a feature flag is in use',
        params: flagParams,
        response: {
          200: z.object({
            ...{ status: z.string(), reason: z.string() },
            rollout: z.object({
              effectively_full_rollout: z.boolean().meta({ description: 'Everybody gets the same value.' }),
              has_targeting_conditions: z.boolean(),
              max_rollout_percentage: z.number(),
              is_multivariate: z.boolean(),
            }),
          }),
        },
      },
    },
    async ({ flag }) => {
      const { state, isTargeted, most, isMultivariate } = rolloutStateOf(JSON.parse(flag.filters));
      const rollout = {
        effectively_full_rollout: state === 'fully_rolled_out',
        has_targeting_conditions: isTargeted,
        max_rollout_percentage: most,
        is_multivariate: isMultivariate,
      };
      return { ...statusOf(flag, Date.now()), rollout };
    },
  );

  app.get(
    `${FLAGS_PREFIX}:id/dependent_flags/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the active feature flags that depend on this one',
        params: flagParams,
        response: { 200: z.array(dependent) },
      },
    },
    async ({ flag, project }) => {
      const links = await listLinks(pool, project.id);
      const asking = links.filter((one) => one.active && one.asks.includes(flag.id));
      return asking.map(({ id, key }) => ({ id, key, name: key }));
    },
  );

  app.get(
    `${FLAGS_PREFIX}:id/overrides/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the values that were set by hand',
        params: flagParams,
        querystring: pageQuery,
        response: { 200: page(override.extend({ created_at: timestamp })) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const key = { projectId: request.project.id, flagId: request.flag.id };
      const { count, rows } = await listOverrides(pool, key, wanted);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows);
    },
  );

  app.post(
    `${FLAGS_PREFIX}:id/overrides/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Set the value of a feature flag for one distinct id by hand',
        description: 'The value counts before all conditions. Setting it again replaces it.',
        params: flagParams,
        body: override,
        response: { 200: override },
      },
    },
    async (request) => {
      const { distinct_id, value } = request.body;
      await overrideFlag(commands, actorOf(request), request.flag, distinct_id, value);
      return { distinct_id, value };
    },
  );

  app.post(
    `${FLAGS_PREFIX}:id/overrides/remove/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Take a value that was set by hand away',
        params: flagParams,
        body: override.pick({ distinct_id: true }),
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { flag, body } = request;
      await overrideFlag(commands, actorOf(request), flag, body.distinct_id, undefined);
      return reply.code(204).send(null);
    },
  );
}
