import { z } from 'zod';
import { reading } from '../../db/reading.ts';
import { keyOf } from '../../functions/rows/functions.ts';
import { findHealth } from '../../functions/rows/health.ts';
import { listLogs } from '../../functions/rows/logs.ts';
import { listMetrics, metricTotals } from '../../functions/rows/metrics.ts';
import { LOG_LEVELS } from '../../functions/rules/logs.ts';
import { clientSignal } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import { several } from '../cursor-pages.ts';
import type { App } from '../dependencies.ts';
import { timestamp } from '../fields.ts';
import { rangeOf, series, seriesOf, seriesQuery, totals, totalsOf, totalsQuery } from '../metric-series.ts';
import { moment } from '../moment.ts';
import { page } from '../pagination.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { findsFunction } from './find-function.ts';
import { PREFIX, READ } from './resource.ts';

const TAGS = ['functions'];
const LIMIT = 50;
const MAX_LIMIT = 500;
const params = z.object({ project_id: z.string(), id: z.string() });
const instance = z.guid().optional();

const COUNTED = [
  ['success', 'failure', 'other'],
  [
    ...['succeeded', 'failed', 'inputs_failed', 'disabled_permanently', 'disabled_temporarily', 'triggered'],
    ...['filtered', 'filtering_failed', 'masked', 'fetch', 'dropped', 'rate_limited', 'lost'],
  ],
] as const;

const LEVELS = new Set<string>(LOG_LEVELS);
const levels = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((one) => one.trim().toLowerCase())
      .filter((one) => one !== ''),
  )
  .refine((all) => all.every((one) => LEVELS.has(one)), {
    params: { code: 'invalid_choice' },
    error: `Levels are ${LOG_LEVELS.join(', ')}.`,
  });

const logQuery = z.strictObject({
  limit: z
    .string()
    .regex(/^\d{1,9}$/, 'A valid integer is required.')
    .transform(Number)
    .refine((value) => value >= 1, 'Ensure this value is greater than or equal to 1.')
    .refine((value) => value <= MAX_LIMIT, `Ensure this value is less than or equal to ${MAX_LIMIT}.`)
    .optional()
    .meta({ type: 'integer', minimum: 1, maximum: MAX_LIMIT, description: `${LIMIT} by default.` }),
  after: moment.meta({ description: 'Only entries after this time.' }),
  before: moment.meta({ description: 'Only entries before this time.' }),
  level: several(levels).meta({
    type: 'array',
    items: { type: 'string' },
    description: `Only entries of these levels: ${LOG_LEVELS.join(', ')}. Separate several by commas, or repeat the parameter.`,
  }),
  search: z.string().optional().meta({
    description: 'Only entries whose message contains this text. Case does not matter.',
  }),
  instance_id: instance.meta({ description: 'Only entries of this invocation.' }),
});

const logEntry = z
  .object({
    log_source_id: z.guid(),
    instance_id: z.guid(),
    timestamp,
    level: z.string(),
    message: z.string(),
  })
  .meta({ id: 'FunctionLogEntry' });

const HOURS = 24;
const health = z
  .object({
    waiting: z.int().meta({ description: 'Invocations in the queue, counted up to 100,000.' }),
    positions: z.int().meta({
      description: 'Invocations that are kept as positions of their events, because too many wait.',
    }),
    oldest_waiting_at: timestamp
      .nullable()
      .meta({ description: 'When the oldest of all these began to wait. Null: none waits.' }),
    succeeded: z.int(),
    failed: z.int().meta({ description: 'All that failed, whatever the reason, and what was lost.' }),
    success_rate: z.number().nullable().meta({ description: 'From 0 to 1. Null: nothing has ended.' }),
    lost: z.int().meta({ description: 'Events that retention deleted before the function had them.' }),
  })
  .meta({ id: 'FunctionHealth' });

/** Adds the routes that show what a function has printed and what became of its invocations. */
export function observationRoutes(app: App, { pool, readingPool }: FunctionRouteDependencies): void {
  const find = findsFunction(pool);
  const access = { scope: READ } as const;

  app.get(
    `${PREFIX}:id/logs/`,
    {
      config: { access },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the log entries of a function, newest first',
        description: 'To see older entries, set `before` to the time of the last entry.',
        params,
        querystring: logQuery,
        response: { 200: page(logEntry) },
      },
    },
    async ({ hogFunction, query }, reply) => {
      const { limit = LIMIT, level, instance_id: instanceId, ...wanted } = query;
      const key = keyOf(hogFunction);
      const rows = await bounded(
        reading(readingPool, { projectId: key.projectId, signal: clientSignal(reply) }, (client) =>
          listLogs(client, { ...key, ...wanted, limit, instanceId, levels: level?.flat() as never }),
        ),
        'Narrow it with `after`, `before` and `level`.',
      );
      const results = rows.map(({ function_id, level: one, ...row }) => ({
        log_source_id: function_id,
        ...row,
        level: one.toUpperCase(),
      }));
      return { count: rows.length, next: null, previous: null, results };
    },
  );

  app.get(
    `${PREFIX}:id/metrics/`,
    {
      config: { access },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Count the invocations of a function over time',
        params,
        querystring: seriesQuery(...COUNTED).extend({ instance_id: instance }),
        response: { 200: series },
      },
    },
    async ({ hogFunction, query: { instance_id: _all, ...query } }) =>
      seriesOf(query, (range, interval) => listMetrics(pool, { ...keyOf(hogFunction), ...range }, interval)),
  );

  app.get(
    `${PREFIX}:id/metrics/totals/`,
    {
      config: { access },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Count the invocations of a function',
        params,
        querystring: totalsQuery(...COUNTED).extend({ instance_id: instance }),
        response: { 200: totals },
      },
    },
    async ({ hogFunction, query }) =>
      totalsOf(query, await metricTotals(pool, { ...keyOf(hogFunction), ...rangeOf(query) })),
  );

  app.get(
    `${PREFIX}:id/health/`,
    {
      config: { access },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Show how a function fares',
        description: `How much waits, and how much succeeded in the last ${HOURS} hours.`,
        params,
        response: { 200: health },
      },
    },
    async ({ hogFunction }) => {
      const { succeeded, failed, ...found } = await findHealth(pool, keyOf(hogFunction), HOURS);
      const ended = succeeded + failed;
      return { ...found, succeeded, failed, success_rate: ended === 0 ? null : succeeded / ended };
    },
  );
}
