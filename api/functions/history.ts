import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { reading } from '../../db/reading.ts';
import { MOST_REPEATED, rerunInvocations, rerunRange } from '../../functions/commands/rerun.ts';
import {
  cancelWaitingOf,
  dismissFailed,
  MOST_SETTLED,
  type SettleDependencies,
  type Settled,
} from '../../functions/commands/settle.ts';
import { type FunctionRow, keyOf } from '../../functions/rows/functions.ts';
import { findInvocation, type InvocationRow, listInvocations } from '../../functions/rows/history.ts';
import { ENDED_STATUSES } from '../../functions/rules/rerun.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import { cursorPage, cursorQuery, readCursorPage } from '../cursor-pages.ts';
import type { App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { instantOrAgo, timestamp } from '../fields.ts';
import { moment } from '../moment.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { findsFunction } from './find-function.ts';
import { dryRun, rate, shownReplay, view as viewReplay } from './replays.ts';
import { endedStatuses, rerunFilter } from './rerun-filter.ts';
import { PREFIX, READ, WRITE } from './resource.ts';

const TAGS = ['functions'];
const LIMIT = 50;
const LONGEST_SEARCH = 200;
const STATUSES = ['waiting', 'succeeded', 'failed', 'cancelled'] as const;
const params = z.object({ project_id: z.string(), id: z.string() });

const search = z.string().max(LONGEST_SEARCH, `Search query must be ${LONGEST_SEARCH} characters or fewer.`);
const listQuery = cursorQuery.extend({
  status: z.enum(STATUSES).optional().meta({
    description: '`waiting`: those that are still to be attempted. By default all that have ended.',
  }),
  open: z.enum(['true', 'false']).optional().meta({
    description: 'True: only failed ones that were neither dismissed nor run again.',
  }),
  after: moment.meta({ description: 'Only those that ended, or are due, at or after this time.' }),
  before: moment.meta({ description: 'Only those before this time.' }),
  event_id: z.guid().optional().meta({ description: 'Only those of this event.' }),
  distinct_id: z.string().optional(),
  search: search.optional().meta({
    description: 'A part of the error, of a request or of an answer. Case does not matter.',
  }),
});

export const attempt = z.object({
  step: z.int().meta({ description: 'Which request of the program, from 0.' }),
  attempt: z.int().meta({ description: 'Which attempt of this request, from 1.' }),
  at: timestamp,
  duration_ms: z.int(),
  method: z.string(),
  url: z.string(),
  request_body: z
    .string()
    .nullable()
    .meta({ description: 'The beginning of the body. Null: not kept, or none.' }),
  status: z.int().nullable().meta({ description: 'Null: there was no answer.' }),
  response_body: z.string().nullable(),
  error: z.string().nullable(),
});

const shownInvocation = z
  .object({
    id: z.guid(),
    status: z.enum(STATUSES),
    version: z.int().meta({ description: 'The version of the function that runs.' }),
    mapping: z.int().nullable().meta({ description: 'Which of its mappings, from 0. Null: it has none.' }),
    event_id: z.guid().nullable(),
    event_timestamp: timestamp.nullable(),
    distinct_id: z.string().nullable(),
    person_id: z.guid().nullable(),
    error: z.string().nullable(),
    attempts: z.array(attempt).meta({ description: 'Secrets are hidden.' }),
    created_at: timestamp,
    finished_at: timestamp.nullable(),
    next_attempt_at: timestamp.nullable(),
    dismissed_at: timestamp.nullable(),
    rerun_at: timestamp.nullable().meta({ description: 'When it was run again.' }),
    rerun_of: z.guid().nullable().meta({ description: 'The invocation that this one repeats.' }),
  })
  .meta({ id: 'FunctionInvocation' });

const selection = {
  invocation_ids: z.array(z.guid()).max(MOST_REPEATED).optional(),
  after: instantOrAgo.optional().meta({ description: 'Those that ended at or after this time.' }),
  before: instantOrAgo.optional().meta({ description: 'Those that ended before this time.' }),
  search: search.optional().meta({ description: 'A part of the error, of a request or of an answer.' }),
};
const rerunBody = z.object({
  ...selection,
  filter: rerunFilter.optional(),
  status: z
    .enum(ENDED_STATUSES)
    .optional()
    .meta({ description: 'Those with this status. Default without ids: `failed`.' }),
  rate_per_second: rate,
  dry_run: dryRun,
  version: z
    .union([z.enum(['original', 'current']), z.int().min(1)])
    .optional()
    .meta({ description: 'Which version runs. Default `original`: the one that ran before.' }),
});
const dismissBody = z.object(selection);
const cancelBody = z.object({
  ...selection,
  after: instantOrAgo.optional().meta({ description: 'Those that are due at or after this time.' }),
  before: instantOrAgo.optional().meta({ description: 'Those that are due before this time.' }),
});
const settled = {
  has_more: z.boolean().meta({
    description: 'True: repeat the request, with `looked_at_before` as its `after`.',
  }),
  looked_at_before: timestamp.nullable().meta({
    description: 'All before this time were looked at. Null: all were.',
  }),
};
const viewSettled = ({ isMore, lookedAtBefore }: Settled) => ({
  ...{ has_more: isMore, looked_at_before: lookedAtBefore },
});

type Selection = z.output<typeof dismissBody>;
type RerunBody = z.output<typeof rerunBody>;

/** Whoever selects nothing would select everything. */
function selected({ invocation_ids: ids, after, before, search: text }: Selection) {
  if (!ids && after === undefined && before === undefined && text === undefined) {
    throw errors.validation(
      'required',
      'Name invocations, or give `after`, `before` or `search`.',
      'invocation_ids',
    );
  }
  return { ids, after, before, search: text };
}

/** Reads which invocations run again, from `filter` or from the fields beside it. */
function chosen(body: RerunBody) {
  const { filter, status } = body;
  if (filter) {
    const beside = (['invocation_ids', 'after', 'before', 'search', 'status'] as const).find(
      (name) => body[name] !== undefined,
    );
    if (beside) {
      throw errors.validation('invalid_input', `Give either \`filter\` or \`${beside}\`.`, beside);
    }
    const { window_start: after, window_end: before, invocation_ids: ids } = filter;
    const statuses = endedStatuses(filter);
    return { ids, window: { after, before }, after, before, statuses, search: undefined };
  }
  const { ids, after, before, search: text } = selected(body);
  if (ids && (after !== undefined || before !== undefined || text !== undefined)) {
    throw errors.validation(
      'invalid_input',
      'Give either ids of invocations, or `after`, `before` and `search`.',
      'invocation_ids',
    );
  }
  return { ids, window: null, after, before, statuses: status && [status], search: text };
}

function view({ at, status, event_uuid, ...row }: InvocationRow): z.output<typeof shownInvocation> {
  const waits = status === 'waiting';
  return {
    ...row,
    ...{ status, event_id: event_uuid },
    ...{ finished_at: waits ? null : at, next_attempt_at: waits ? at : null },
  };
}

/** Adds the routes that show what became of the invocations of a function, and that run them again. */
export function historyRoutes(app: App, deps: FunctionRouteDependencies): void {
  const { pool, readingPool, publicUrl } = deps;
  const find = findsFunction(pool);
  const finding = (row: FunctionRow, reply: FastifyReply): SettleDependencies => ({
    pool,
    find: (work) =>
      bounded(
        reading(readingPool, { projectId: row.project_id, signal: clientSignal(reply) }, work),
        'Narrow it with `after` and `before`.',
      ),
  });

  app.get(
    `${PREFIX}:id/invocations/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the invocations of a function, newest first',
        description:
          'A request with `search`, `status` or `distinct_id` looks at some thousands of invocations. So a page can have ' +
          'fewer results than `limit`, or none: the list ends where `next` is null.',
        params,
        querystring: listQuery,
        response: { 200: cursorPage(shownInvocation) },
      },
    },
    async (request, reply) => {
      const { query } = request;
      const key = keyOf(request.hogFunction);
      const waiting = query.status === 'waiting';
      const { rows, ...links } = await readCursorPage({
        ...{ request, publicUrl, cursor: query.cursor, ascending: waiting },
        read: ({ position, ascending }) =>
          bounded(
            reading(readingPool, { projectId: key.projectId, signal: clientSignal(reply) }, (client) =>
              listInvocations(client, {
                ...{ ...key, waiting, ascending, limit: query.limit ?? LIMIT },
                ...{ after: query.after, before: query.before, search: query.search },
                ...{ eventId: query.event_id, distinctId: query.distinct_id, isOpen: query.open === 'true' },
                statuses: query.status && !waiting ? [query.status] : undefined,
                position: position && { value: position.value as string, id: position.id },
              }),
            ),
            'Narrow it with `after`, `before` and `status`.',
          ),
        positionOf: (row) => ({ value: row.at, id: row.id }),
      });
      return { ...links, results: rows.map(view) };
    },
  );

  app.get(
    `${PREFIX}:id/invocations/:invocation_id/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Show an invocation with all its attempts',
        params: params.extend({ invocation_id: z.string() }),
        response: { 200: shownInvocation },
      },
    },
    async ({ hogFunction, params: { invocation_id: id } }) => {
      const row = isUuid(id) ? await findInvocation(pool, keyOf(hogFunction), id) : undefined;
      if (!row) throw errors.notFound();
      return view(row);
    },
  );

  app.post(
    `${PREFIX}:id/rerun/`,
    {
      config: { access: { scope: WRITE, andScopes: ['person:read', 'group:read'] } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Run ended invocations again',
        description:
          'Each becomes a new invocation with the same event. What has been run again already is left out. Those with ' +
          'ids are queued at once. Those of a range of time are queued step by step: `rerun` shows how far it is, and ' +
          'the routes of replays steer it. What was dismissed is then left out, too. While a replay, a broadcast or a ' +
          'rerun of the function is in progress, the answer for a range is 409. `filter` says the same as the fields ' +
          'beside it, in the form of PostHog. With ids in it, those run again that ended in its range with its status.',
        params,
        body: rerunBody,
        response: {
          200: z
            .object({
              queued_count: z
                .int()
                .meta({ description: 'How many are queued already. Of a range: none so far.' }),
              skipped_count: z.int().meta({ description: 'Ids that name nothing that could be run again.' }),
              rerun_job_id: z
                .guid()
                .nullable()
                .meta({ description: 'The id of `rerun`. Null: all is done.' }),
              rerun: shownReplay.nullable().meta({ description: 'Null: all is done.' }),
            })
            .meta({ id: 'FunctionRerun' }),
        },
      },
    },
    async (request) => {
      const { hogFunction: row, body } = request;
      const { version = 'original' } = body;
      const { ids, window, after, before, statuses, search: text } = chosen(body);
      if (!ids) {
        const [first = 'failed', ...others] = statuses ?? [];
        const status = others.length === 0 ? first : [first, ...others];
        const range = { after, before, status, search: text || null, version };
        const paced = { ratePerSecond: body.rate_per_second, dryRun: body.dry_run };
        const rerun = await rerunRange(deps, actorOf(request), row, { ...range, ...paced });
        return { queued_count: 0, skipped_count: 0, rerun_job_id: rerun.id, rerun: viewReplay(rerun) };
      }
      if (body.dry_run) {
        throw errors.validation('invalid_input', 'Give either ids of invocations, or `dry_run`.', 'dry_run');
      }
      const queued = await rerunInvocations(deps, actorOf(request), row, { ids, statuses, window, version });
      const skipped = new Set(ids).size - queued;
      return { queued_count: queued, skipped_count: skipped, rerun_job_id: null, rerun: null };
    },
  );

  app.post(
    `${PREFIX}:id/invocations/dismiss/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Dismiss failed invocations',
        description: 'They stay in the list of all, and leave that of the open ones.',
        params,
        body: dismissBody,
        response: { 200: z.object({ dismissed_count: z.int(), ...settled }) },
      },
    },
    async (request, reply) => {
      const { hogFunction: row, body } = request;
      const done = await dismissFailed(finding(row, reply), actorOf(request), row, selected(body));
      return { dismissed_count: done.count, ...viewSettled(done) };
    },
  );

  app.post(
    `${PREFIX}:id/invocations/cancel/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Cancel waiting invocations',
        description:
          'They are listed as cancelled, and can be run again. What is in progress goes on. At most ' +
          `${MOST_SETTLED} in one request, and beyond them all that the function keeps as positions and that was stored in ` +
          'the range of time.',
        params,
        body: cancelBody,
        response: { 200: z.object({ cancelled_count: z.int(), ...settled }) },
      },
    },
    async (request, reply) => {
      const { hogFunction: row, body } = request;
      const done = await cancelWaitingOf(finding(row, reply), actorOf(request), row, selected(body));
      return { cancelled_count: done.count, ...viewSettled(done) };
    },
  );
}
