import { z } from 'zod';
import { cancelRun } from '../../exports/commands/cancel.ts';
import { retryRun } from '../../exports/commands/retry.ts';
import { keyOf } from '../../exports/rows/batch-exports.ts';
import { listRuns, type RunQuery } from '../../exports/rows/run-lists.ts';
import { RUN_STATUSES, type RunRow } from '../../exports/rows/runs.ts';
import { actorOf } from '../actor.ts';
import { cursorPage, cursorQuery, readCursorPage, several } from '../cursor-pages.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { instantOf, moment } from '../moment.ts';
import { findsExport, findsRun } from './find-export.ts';
import { PROJECT_PLACE, READ, WRITE } from './places.ts';
import { run, runView } from './run-schema.ts';

const TAGS = ['batch exports'];
const PAGE = 100;
const ORDERS = ['-created_at', 'created_at', '-data_interval_start', 'data_interval_start'] as const;

const listQuery = cursorQuery.extend({
  ordering: z.enum(ORDERS).optional().meta({ description: 'Default: `-created_at`.' }),
  after: moment.meta({
    description: 'Ordered by `created_at`: only runs created at or after this time. Default: `-7d`.',
  }),
  before: moment.meta({
    description: 'Ordered by `created_at`: only runs created at or before this time. Default: now.',
  }),
  start: moment.meta({
    description:
      'Ordered by `data_interval_start`: only runs whose interval begins at or after this time. Default: `-7d`.',
  }),
  end: moment.meta({
    description:
      'Ordered by `data_interval_start`: only runs whose interval ends at or before this time. Default: now.',
  }),
  status: several(z.enum(RUN_STATUSES)).meta({
    type: 'array',
    items: { type: 'string', enum: [...RUN_STATUSES] },
    description: 'Only runs with this status. Repeat the parameter for several statuses.',
  }),
});

/**
 * Reads the query of the list. Relative times become fixed ones, so that they do not move while a client follows links.
 */
function readQuery(query: z.output<typeof listQuery>): Omit<RunQuery, 'projectId' | 'exportId' | 'limit'> {
  const ordering = query.ordering ?? '-created_at';
  const byInterval = ordering.endsWith('data_interval_start');
  const [from, to] = byInterval ? [query.start, query.end] : [query.after, query.before];
  return {
    ordering: byInterval ? 'data_interval_start' : 'created_at',
    ascending: !ordering.startsWith('-'),
    from: from ?? (instantOf('-7d') as string),
    to: to ?? new Date().toISOString(),
    statuses: query.status ?? [],
  };
}

/** Adds the routes of the runs of an export. */
export function runRoutes(app: App, deps: ExportRouteDependencies): void {
  const { pool, temporal, publicUrl } = deps;
  const find = findsExport(pool);
  const { prefix, params } = PROJECT_PLACE;
  const exportParams = params.extend({ id: z.string() });
  const runParams = exportParams.extend({ run_id: z.string() });
  const findRunOf = findsRun(pool);
  const runs = `${prefix}:id/runs/`;
  const view = (row: RunRow) => runView(row, temporal.runUrl);

  app.get(
    runs,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the runs of a batch export',
        params: exportParams,
        querystring: listQuery,
        response: { 200: cursorPage(run) },
      },
    },
    async (request) => {
      const { query } = request;
      const wanted = readQuery(query);
      const [from, to] = wanted.ordering === 'created_at' ? ['after', 'before'] : ['start', 'end'];
      const { rows, ...links } = await readCursorPage({
        request,
        publicUrl,
        cursor: query.cursor,
        ascending: wanted.ascending,
        pinned: { [from]: wanted.from, [to]: wanted.to },
        read: ({ position, ascending }) =>
          listRuns(pool, {
            ...keyOf(request.batchExport),
            ...wanted,
            ascending,
            limit: query.limit ?? PAGE,
            ...(position ? { position: { value: position.value as string, id: position.id } } : {}),
          }),
        positionOf: (row) => ({ value: row[wanted.ordering], id: row.id }),
      });
      return { ...links, results: rows.map(view) };
    },
  );

  app.get(
    `${runs}:run_id/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Retrieve a run of a batch export',
        params: runParams,
        response: { 200: run },
      },
    },
    async (request) => view(await findRunOf(request)),
  );

  app.post(
    `${runs}:run_id/retry/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Retry a run: export its interval again, as a backfill of one interval',
        params: runParams,
        response: {
          201: z.object({
            backfill_id: z.string().meta({ description: 'The id of the workflow of the backfill.' }),
          }),
        },
      },
    },
    async (request, reply) => {
      const { batchExport } = request;
      const { backfill } = await retryRun(deps, actorOf(request), batchExport, await findRunOf(request));
      reply.code(201);
      return { backfill_id: backfill.workflow_id };
    },
  );

  app.post(
    `${runs}:run_id/cancel/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Cancel a run in progress',
        description: 'Nothing of the run becomes visible at the destination.',
        params: runParams,
        response: { 200: z.object({ cancelled: z.literal(true) }) },
      },
    },
    async (request) => {
      await cancelRun(deps, actorOf(request), await findRunOf(request));
      return { cancelled: true as const };
    },
  );
}
