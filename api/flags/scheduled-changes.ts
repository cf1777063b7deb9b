import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { mapInTurns } from '../../db/loop-turns.ts';
import {
  rescheduleChange,
  scheduleChange,
  unscheduleChange,
} from '../../flags/commands/scheduled-changes.ts';
import {
  findScheduledChange,
  listScheduledChanges,
  type ScheduledChangeRow,
} from '../../flags/rows/scheduled-changes.ts';
import { OPERATIONS } from '../../flags/rules/scheduled-changes.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { instant, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { basicUser } from '../tenancy/user-schema.ts';
import { planCommands } from './dependencies.ts';

const TAGS = ['feature flags'];
const PREFIX = '/api/projects/:project_id/scheduled_changes/';
const READ = 'feature_flag:read';
const WRITE = 'feature_flag:write';
const MODEL = 'FeatureFlag';
const params = z.object({ project_id: z.string() });
const changeParams = params.extend({ id: z.string() });

const recordId = z
  .union([z.string(), z.int()], { error: 'This must be the id of a feature flag.' })
  .meta({ description: 'The id of the feature flag.' });
const modelName = z.literal(MODEL);
const payload = z
  .object({
    operation: z.enum(OPERATIONS),
    value: z.unknown().meta({
      description:
        '`update_status`: true or false. `add_release_condition`: `{"groups": […]}`, which are added to those of the ' +
        'flag. `update_variants`: `{"variants": […], "payloads": {…}}`, which replace those of the flag.',
    }),
  })
  .meta({ id: 'ScheduledChangePayload' });

const shown = z
  .object({
    id: z.int(),
    team_id: z.int(),
    record_id: z.string(),
    model_name: modelName,
    payload,
    scheduled_at: timestamp,
    executed_at: timestamp.nullable().meta({ description: 'When it was tried. Null: it is still to come.' }),
    failure_reason: z
      .string()
      .nullable()
      .meta({ description: 'Why nothing was changed. Null: it was, or it is still to come.' }),
    created_at: timestamp,
    created_by: basicUser.nullable(),
    updated_at: timestamp,
    is_recurring: z.literal(false),
    recurrence_interval: z.null(),
  })
  .meta({ id: 'ScheduledChange' });

function view(row: ScheduledChangeRow): z.output<typeof shown> {
  const { project_id: team_id, flag_id, payload: text, ...rest } = row;
  return {
    ...rest,
    ...{ team_id, record_id: String(flag_id), model_name: MODEL },
    payload: parseExactJson(text) as z.output<typeof payload>,
    ...{ is_recurring: false as const, recurrence_interval: null },
  };
}

const NO_REPETITION = 'A change happens once. Plan one for each time.';
const notRepeated = z
  .unknown()
  .refine((value) => value === undefined || value === null, { error: NO_REPETITION })
  .optional()
  .meta({ description: 'Is not available.', writeOnly: true });
const newChange = z.object({
  ...{ record_id: recordId, model_name: modelName, payload, scheduled_at: instant },
  is_recurring: z.literal(false, { error: NO_REPETITION }).optional().meta({ writeOnly: true }),
  ...{ recurrence_interval: notRepeated, cron_expression: notRepeated },
});
const change = newChange.partial();

/** Adds the routes of changes of feature flags at a time. */
export function scheduledChangeRoutes(app: App, deps: ApiDependencies): void {
  const { pool, config } = deps;
  const commands = planCommands(deps);

  async function findOne(request: FastifyRequest): Promise<ScheduledChangeRow> {
    const changeId = serialOf((request.params as { id: string }).id);
    const row = changeId && (await findScheduledChange(pool, { projectId: request.project.id, changeId }));
    if (!row) throw errors.notFound();
    return row;
  }

  app.get(
    PREFIX,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List scheduled changes: what comes next, then what was tried',
        params,
        querystring: pageQuery.extend({
          model_name: modelName.optional(),
          record_id: z.string().optional().meta({ description: 'Only changes of this flag.' }),
        }),
        response: { 200: page(shown) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { record_id: record } = request.query;
      const flagId = record === undefined ? undefined : (serialOf(record) ?? 0);
      const query = { ...wanted, projectId: request.project.id, flagId };
      const { count, rows } = await listScheduledChanges(pool, query);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, await mapInTurns(rows, view));
    },
  );

  app.post(
    PREFIX,
    {
      config: { access: { scope: WRITE }, keepsNumbers: true },
      schema: {
        tags: TAGS,
        summary: 'Change a feature flag at a time',
        description:
          'The change is checked now, and again when its time has come. It is carried out once, in the name of who ' +
          'planned it. If it cannot be carried out, `failure_reason` says why.',
        params,
        body: newChange,
        response: { 201: shown },
      },
    },
    async (request, reply) => {
      const { record_id: record, payload: given, scheduled_at: scheduledAt } = request.body;
      const flag = { projectId: request.project.id, flagId: serialOf(String(record)) };
      const input = { payload: given, scheduledAt };
      const made = await scheduleChange(commands, actorOf(request), flag, input);
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
        summary: 'Retrieve a scheduled change',
        params: changeParams,
        response: { 200: shown },
      },
    },
    async (request) => view(await findOne(request)),
  );

  for (const method of ['PUT', 'PATCH'] as const) {
    app.route({
      method,
      url: `${PREFIX}:id/`,
      config: { access: { scope: WRITE }, keepsNumbers: true },
      schema: {
        tags: TAGS,
        summary: method === 'PUT' ? 'Change a scheduled change' : 'Change some fields of a scheduled change',
        description: 'Fields that you leave out keep their values. What was tried cannot be changed.',
        params: changeParams,
        body: change,
        response: { 200: shown },
      },
      handler: async (request) => {
        const row = await findOne(request);
        const { payload: given, scheduled_at: scheduledAt, record_id: record } = request.body;
        if (record !== undefined && serialOf(String(record)) !== row.flag_id) {
          const message = 'Cannot change the target record of a scheduled change. Plan another one.';
          throw errors.validation('invalid_input', message, 'record_id');
        }
        const input = { ...(given && { payload: given }), ...(scheduledAt && { scheduledAt }) };
        return view(await rescheduleChange(commands, actorOf(request), row, input));
      },
    });
  }

  app.delete(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary: 'Delete a scheduled change',
        description: 'What is still to come does not happen.',
        params: changeParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { id: changeId } = await findOne(request);
      await unscheduleChange(commands, actorOf(request), { projectId: request.project.id, changeId });
      return reply.code(204).send(null);
    },
  );
}
