import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { startRollout, steerRollout } from '../../flags/commands/rollouts.ts';
import { findRollout, listRollouts, type RolloutRow, type ShownRollout } from '../../flags/rows/rollouts.ts';
import { ROLLOUT_LIMITS, ROLLOUT_STATUSES } from '../../flags/rules/rollouts.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { instant, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { basicUser } from '../tenancy/user-schema.ts';
import { planCommands } from './dependencies.ts';
import { FLAGS_PREFIX, findsFlag } from './feature-flags.ts';

const TAGS = ['feature flags'];
const READ = 'feature_flag:read';
const WRITE = 'feature_flag:write';
const params = z.object({ project_id: z.string(), id: z.string() });
const rolloutParams = params.extend({ rollout_id: z.string() });
const percentage = z.number().min(0).max(100);

const body = z.object({
  condition_index: z
    .int()
    .min(0)
    .default(0)
    .meta({ description: 'The place of the condition set in `filters.groups`, counted from 0.' }),
  from_percentage: percentage
    .optional()
    .meta({ description: 'By default the percentage that the condition set has.' }),
  to_percentage: percentage,
  steps: z
    .int()
    .min(1)
    .max(ROLLOUT_LIMITS.steps)
    .default(10)
    .meta({ description: 'In how many equal steps the percentage changes.' }),
  starts_at: instant.optional().meta({ description: 'By default now.' }),
  ends_at: instant.meta({ description: 'The condition set has the last percentage from then on.' }),
});

const shown = z
  .object({
    id: z.guid(),
    status: z.enum(ROLLOUT_STATUSES).meta({
      description: '`ended`: it stopped by itself, because somebody changed the flag. See `reason`.',
    }),
    reason: z.string().nullable(),
    condition_index: z.int(),
    from_percentage: z.number(),
    to_percentage: z.number(),
    percentage: z.number().meta({ description: 'What the rollout has set, or found when it began.' }),
    steps: z.int(),
    steps_done: z.int(),
    starts_at: timestamp,
    ends_at: timestamp.meta({ description: 'A pause moves it.' }),
    next_step_at: timestamp.nullable(),
    paused_at: timestamp.nullable(),
    created_by: basicUser.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
    finished_at: timestamp.nullable(),
  })
  .meta({ id: 'FlagRollout' });

function view(row: ShownRollout): z.output<typeof shown> {
  const { project_id: _, flag_id: _flag, step, due_at: next_step_at, ...rest } = row;
  return { ...rest, steps_done: step ?? 0, next_step_at };
}

const STEERING = [
  ['pause', 'Pause a gradual rollout', 'The percentage stays what it is.'],
  ['resume', 'Resume a paused rollout', 'What was ahead of it takes as long as it would have taken.'],
  ['cancel', 'Cancel a gradual rollout', 'The percentage stays what it is.'],
] as const;

/** Adds the routes of gradual rollouts. */
export function rolloutRoutes(app: App, deps: ApiDependencies): void {
  const { pool, config } = deps;
  const commands = planCommands(deps);
  const find = findsFlag(pool);

  async function findOne(request: FastifyRequest): Promise<RolloutRow> {
    const { rollout_id: rolloutId } = request.params as { rollout_id: string };
    const key = { projectId: request.project.id, rolloutId };
    const row = isUuid(rolloutId) ? await findRollout(pool, key) : undefined;
    if (row?.flag_id !== request.flag.id) throw errors.notFound();
    return row;
  }

  app.get(
    `${FLAGS_PREFIX}:id/rollouts/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the gradual rollouts of a feature flag, newest first',
        params,
        querystring: pageQuery,
        response: { 200: page(shown) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const query = { ...wanted, projectId: request.project.id, flagId: request.flag.id };
      const { count, rows } = await listRollouts(pool, query);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(view));
    },
  );

  app.post(
    `${FLAGS_PREFIX}:id/rollouts/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Roll a condition set out gradually',
        description:
          'Changes the percentage of one condition set in equal steps over a span. A change of this percentage, or of ' +
          'the rest of the condition set, by hand ends the rollout. While the flag has a rollout in progress, the ' +
          'answer is 409.',
        params,
        body,
        response: { 201: shown },
      },
    },
    async (request, reply) => {
      const { condition_index, from_percentage, to_percentage, steps, starts_at, ends_at } = request.body;
      const key = { projectId: request.project.id, flagId: request.flag.id };
      const made = await startRollout(commands, actorOf(request), key, {
        ...{ conditionIndex: condition_index, from: from_percentage, to: to_percentage, steps },
        ...{ startsAt: starts_at, endsAt: ends_at },
      });
      reply.code(201);
      return view(made);
    },
  );

  app.get(
    `${FLAGS_PREFIX}:id/rollouts/:rollout_id/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Show a gradual rollout, with its progress',
        params: rolloutParams,
        response: { 200: shown },
      },
    },
    async (request) => view(await findOne(request)),
  );

  for (const [step, summary, description] of STEERING) {
    app.post(
      `${FLAGS_PREFIX}:id/rollouts/:rollout_id/${step}/`,
      {
        config: { access: { scope: WRITE } },
        preValidation: find,
        schema: { tags: TAGS, summary, description, params: rolloutParams, response: { 200: shown } },
      },
      async (request) => {
        const rollout = await findOne(request);
        return view(await steerRollout(commands, actorOf(request), rollout, step));
      },
    );
  }
}
