import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { broadcastToPersons } from '../../functions/commands/broadcast.ts';
import { replayEvents, steerReplay } from '../../functions/commands/replay.ts';
import { keyOf } from '../../functions/rows/functions.ts';
import { findReplay, listReplays, type ReplayRow } from '../../functions/rows/replays.ts';
import { RATE, REPLAY_KINDS, REPLAY_STATUSES } from '../../functions/rules/replay.ts';
import { ENDED_STATUSES } from '../../functions/rules/rerun.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import { cursorPage, cursorQuery, readCursorPage } from '../cursor-pages.ts';
import type { App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { instantOrAgo, timestamp } from '../fields.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { findsFunction } from './find-function.ts';
import { PREFIX, READ, WRITE } from './resource.ts';

const TAGS = ['functions'];
const LIMIT = 50;
const params = z.object({ project_id: z.string(), id: z.string() });
const replayParams = params.extend({ replay_id: z.string() });

export const rate = z.int().min(1).max(RATE.most).nullable().default(RATE.default).meta({
  description:
    'How many invocations it queues in a second, on average. Null: as many as fit into the queue of the function.',
});
export const dryRun = z.boolean().default(false).meta({
  description:
    'True: it only counts, and nothing runs. `queued` then says how many invocations there would be.',
});
const replayBody = z.object({
  after: instantOrAgo.meta({
    description: 'Events whose `timestamp` is at or after this time, which may be relative: `-7d`, `-1h`.',
  }),
  before: instantOrAgo.meta({ description: 'Events whose `timestamp` is before this time.' }),
  rate_per_second: rate,
  dry_run: dryRun,
});

const broadcastBody = z.object({
  properties: z
    .unknown()
    .optional()
    .meta({
      type: 'array',
      items: { type: 'object' },
      description: 'Conditions on persons. By default `properties` of the filters of the function.',
    }),
  rate_per_second: rate,
  dry_run: dryRun,
});

const count = (description: string) => z.int().meta({ description });
export const shownReplay = z
  .object({
    id: z.guid(),
    kind: z.enum(REPLAY_KINDS).meta({
      description:
        '`replay`: for past events. `broadcast`: for persons. `rerun`: for ended invocations, again.',
    }),
    dry_run: z.boolean(),
    status: z.enum(REPLAY_STATUSES),
    reason: z.string().nullable().meta({ description: 'Why it was cancelled, or why it failed.' }),
    held: z
      .enum(['queue', 'watcher'])
      .nullable()
      .meta({
        description:
          'What it waits for. `queue`: too many invocations of the function wait. `watcher`: the function is disabled ' +
          'because of its cost.',
      }),
    after: timestamp.nullable(),
    before: timestamp.nullable(),
    selection: z
      .object({
        status: z
          .union([z.enum(ENDED_STATUSES), z.array(z.enum(ENDED_STATUSES))])
          .meta({ description: 'One, or several as a list.' }),
        search: z.string().nullable(),
      })
      .nullable()
      .meta({
        description: 'Of a rerun: which ended invocations. `after` and `before` are times of their end.',
      }),
    version: z
      .int()
      .nullable()
      .meta({ description: 'Of a rerun: which version runs. Null: of each the one that ran before.' }),
    stored_until: timestamp
      .nullable()
      .meta({ description: 'What was stored later is left out. Null: it has not begun yet.' }),
    rate_per_second: z.int().nullable(),
    total: z.int().nullable().meta({
      description:
        'How many events, persons or invocations it looks at. Null: not counted yet, or too many to count.',
    }),
    scanned: count('How many of them it has looked at.'),
    matched: count('For how many of these the function runs.'),
    masked: count('Invocations that masking leaves out.'),
    queued: count('Invocations that it has queued.'),
    filter_errors: count('How often the filters failed.'),
    created_at: timestamp,
    updated_at: timestamp,
    finished_at: timestamp.nullable(),
  })
  .meta({ id: 'FunctionReplay' });

/** Shows a replay, a broadcast or a rerun. */
export function view(row: ReplayRow): z.output<typeof shownReplay> {
  const { id, kind, dry_run, status, reason, held, after, before, horizon, rate_per_second } = row;
  const { total, scanned, matched, masked, queued, filter_errors, created_at, updated_at, finished_at } = row;
  return {
    ...{
      id,
      kind,
      dry_run,
      status,
      reason,
      held,
      after,
      before,
      ...{ selection: row.selection, version: row.version },
      stored_until: kind === 'broadcast' ? null : horizon,
      rate_per_second,
    },
    ...{ total, scanned, matched, masked, queued, filter_errors, created_at, updated_at, finished_at },
  };
}

const STEPS = [
  ['pause', 'Pause a replay, broadcast or rerun', 'What it has queued already runs.'],
  ['resume', 'Resume a paused replay, broadcast or rerun', 'It goes on where it was.'],
  ['cancel', 'Cancel a replay, broadcast or rerun', 'What it has queued already runs.'],
] as const;

/** Adds the routes of replays and broadcasts, which run a function for past events and for persons. */
export function replayRoutes(app: App, deps: FunctionRouteDependencies): void {
  const { pool, publicUrl } = deps;
  const find = findsFunction(pool);

  const findOne = async (request: FastifyRequest): Promise<ReplayRow> => {
    const { replay_id: replayId } = request.params as { replay_id: string };
    const key = keyOf(request.hogFunction);
    const row = isUuid(replayId) ? await findReplay(pool, { projectId: key.projectId, replayId }) : undefined;
    if (row?.function_id !== key.functionId) throw errors.notFound();
    return row;
  };

  app.post(
    `${PREFIX}:id/replay/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Run a function for past events',
        description:
          'Runs it for the stored events of a time range that its filters match, each event once. Later changes of the ' +
          'function hold for the events that are still to come. While a replay or a broadcast of the function is in ' +
          'progress, the answer is 409.',
        params,
        body: replayBody,
        response: { 201: shownReplay },
      },
    },
    async (request, reply) => {
      const { after, before, rate_per_second: ratePerSecond, dry_run: dryRun } = request.body;
      const input = { after, before, ratePerSecond, dryRun };
      const made = await replayEvents(deps, actorOf(request), request.hogFunction, input);
      reply.code(201);
      return view(made);
    },
  );

  app.post(
    `${PREFIX}:id/broadcast/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Run a function for persons',
        description:
          'Runs it once for each person of the project that matches the conditions, with an event `$broadcast` that is ' +
          'not stored. While a replay or a broadcast of the function is in progress, the answer is 409.',
        params,
        body: broadcastBody.optional(),
        response: {
          200: z
            .object({ success: z.literal(true), broadcast: shownReplay })
            .meta({ id: 'FunctionBroadcast' }),
        },
      },
    },
    async (request, reply) => {
      const {
        properties,
        rate_per_second: ratePerSecond,
        dry_run: dryRun,
      } = request.body ?? broadcastBody.parse({});
      const input = { properties, ratePerSecond, dryRun };
      const made = await broadcastToPersons(
        deps,
        actorOf(request),
        request.hogFunction,
        input,
        clientSignal(reply),
      );
      return { success: true as const, broadcast: view(made) };
    },
  );

  app.get(
    `${PREFIX}:id/replays/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the replays, broadcasts and reruns of a function, newest first',
        params,
        querystring: cursorQuery.extend({ kind: z.enum(REPLAY_KINDS).optional() }),
        response: { 200: cursorPage(shownReplay) },
      },
    },
    async (request) => {
      const { cursor, limit = LIMIT, kind } = request.query;
      const { rows, ...links } = await readCursorPage<ReplayRow>({
        ...{ request, publicUrl, cursor, ascending: false },
        read: ({ position, ascending }) =>
          listReplays(pool, { ...keyOf(request.hogFunction), kind, ascending, position, limit }),
        positionOf: (row) => ({ value: row.created_at, id: row.id }),
      });
      return { ...links, results: rows.map(view) };
    },
  );

  app.get(
    `${PREFIX}:id/replays/:replay_id/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Show a replay, broadcast or rerun, with its progress',
        params: replayParams,
        response: { 200: shownReplay },
      },
    },
    async (request) => view(await findOne(request)),
  );

  for (const [step, summary, description] of STEPS) {
    app.post(
      `${PREFIX}:id/replays/:replay_id/${step}/`,
      {
        config: { access: { scope: WRITE } },
        preValidation: find,
        schema: { tags: TAGS, summary, description, params: replayParams, response: { 200: shownReplay } },
      },
      async (request) => {
        const replay = await findOne(request);
        return view(await steerReplay(deps, actorOf(request), request.hogFunction, replay, step));
      },
    );
  }
}
