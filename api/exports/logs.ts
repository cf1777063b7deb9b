import { z } from 'zod';
import { reading } from '../../db/reading.ts';
import { keyOf } from '../../exports/rows/batch-exports.ts';
import { LOG_LEVELS, type LogLevel, listLogs } from '../../exports/rows/logs.ts';
import { clientSignal } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import { several } from '../cursor-pages.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { moment } from '../moment.ts';
import { page } from '../pagination.ts';
import { findsExport, findsRun } from './find-export.ts';
import { PLACES, PROJECT_PLACE, READ } from './places.ts';
import { logEntry, logEntryView } from './run-schema.ts';

const TAGS = ['batch exports'];
const LIMIT = 50;
const MAX_LIMIT = 500;

const level = z.preprocess(
  (value) => (typeof value === 'string' ? value.toUpperCase() : value),
  z.enum(LOG_LEVELS),
);
const query = z.strictObject({
  limit: z
    .string()
    .regex(/^\d{1,9}$/, 'A valid integer is required.')
    .transform(Number)
    .refine((value) => value >= 1, 'Ensure this value is greater than or equal to 1.')
    .refine((value) => value <= MAX_LIMIT, `Ensure this value is less than or equal to ${MAX_LIMIT}.`)
    .optional()
    .meta({
      ...{ type: 'integer', minimum: 1, maximum: MAX_LIMIT },
      description: `How many entries to show, ${LIMIT} by default.`,
    }),
  after: moment.meta({ description: 'Only entries after this time.' }),
  before: moment.meta({ description: 'Only entries before this time.' }),
  level: several(level).meta({
    type: 'array',
    items: { type: 'string', enum: [...LOG_LEVELS] },
    description: 'Only entries of this level. Repeat the parameter for several levels.',
  }),
  search: z
    .string()
    .optional()
    .meta({ description: 'Only entries whose message contains this text. Case does not matter.' }),
});
const exportQuery = query.extend({
  instance_id: z.guid().optional().meta({ description: 'Only entries of this run.' }),
});

/** Adds the routes that read the logs of exports and of their runs. */
export function logRoutes(app: App, { pool, readingPool }: ExportRouteDependencies): void {
  const find = findsExport(pool);
  const read = async (
    key: ReturnType<typeof keyOf>,
    { limit = LIMIT, level: levels, ...wanted }: z.output<typeof query>,
    runId: string | undefined,
    signal: AbortSignal,
  ) => {
    const rows = await bounded(
      reading(readingPool, { projectId: key.projectId, signal }, (client) =>
        listLogs(client, { ...key, ...wanted, limit, runId, levels: levels as LogLevel[] | undefined }),
      ),
      'Narrow it with `after`, `before` and `level`.',
    );
    return { count: rows.length, next: null, previous: null, results: rows.map(logEntryView) };
  };

  for (const { prefix, params, access, of } of PLACES) {
    app.get(
      `${prefix}:id/logs/`,
      {
        config: { access: { scope: READ, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `List the log entries of a batch export ${of} and its runs, newest first`,
          description: 'To see older entries, set `before` to the time of the last entry.',
          params: params.extend({ id: z.string() }),
          querystring: exportQuery,
          response: { 200: page(logEntry) },
        },
      },
      async ({ batchExport, query: { instance_id: runId, ...wanted } }, reply) =>
        read(keyOf(batchExport), wanted, runId, clientSignal(reply)),
    );
  }

  const { prefix, params } = PROJECT_PLACE;
  const findRunOf = findsRun(pool);
  app.get(
    `${prefix}:id/runs/:run_id/logs/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the log entries of a run of a batch export, newest first',
        params: params.extend({ id: z.string(), run_id: z.string() }),
        querystring: query,
        response: { 200: page(logEntry) },
      },
    },
    async (request, reply) => {
      const run = await findRunOf(request);
      return read(keyOf(request.batchExport), request.query, run.id, clientSignal(reply));
    },
  );
}
