import { z } from 'zod';
import { healthOf, intervalMap } from '../../exports/reads/health.ts';
import { RUN_STATUSES } from '../../exports/rows/runs.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { INTERVAL_STATES } from '../../exports/rules/interval-states.ts';
import { countWithin } from '../../intervals/index.ts';
import { instantText } from '../../values/dates.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { timestamp } from '../fields.ts';
import { instantOf, millisecondsOf, moment } from '../moment.ts';
import { findsExport } from './find-export.ts';
import { PLACES, READ } from './places.ts';

const MOST_INTERVALS = 10_000;

const query = z.strictObject({
  after: moment.meta({ description: 'Only intervals that begin at or after this time. Default: `-7d`.' }),
  before: moment.meta({ description: 'Only intervals that end at or before this time. Default: now.' }),
});

const entry = z
  .object({
    data_interval_start: timestamp,
    data_interval_end: timestamp,
    state: z.enum(INTERVAL_STATES),
    run_id: z.guid().nullable().meta({
      description: 'The run that completed the interval, or else the last run of the interval.',
    }),
    status: z.enum(RUN_STATUSES).nullable().meta({ description: 'The status of the last run.' }),
    runs: z.int().meta({ description: 'The number of runs that the interval had.' }),
    records_completed: z.int().nullable(),
    source_rows: z
      .int()
      .nullable()
      .meta({ description: 'The number of rows in the database at the last check.' }),
    checked_at: timestamp.nullable(),
    problem: z.string().nullable().meta({ description: 'What is wrong with the interval, if anything is.' }),
  })
  .meta({ id: 'BatchExportInterval' });

const intervalMapAnswer = z
  .object({
    missing: z
      .int()
      .meta({ description: 'The number of intervals that ended long ago and are not exported.' }),
    late: z
      .int()
      .meta({ description: 'The number of intervals that are not exported within the expected time.' }),
    differs: z.int().meta({
      description:
        'The number of intervals whose run exported other rows than the database or the destination has.',
    }),
    lag_intervals: z.int().meta({
      description:
        'The number of finished intervals that are not exported. 0 while a run exports each of them.',
    }),
    lag_seconds: z.number().meta({
      description:
        'The time from the beginning of the first of these intervals to the end of the last finished one.',
    }),
    results: z.array(entry),
  })
  .meta({ id: 'BatchExportIntervals' });

/** Adds the route that shows the state of each interval. */
export function intervalRoutes(app: App, { pool }: ExportRouteDependencies): void {
  const find = findsExport(pool);
  for (const { prefix, params, access, of } of PLACES) {
    app.get(
      `${prefix}:id/intervals/`,
      {
        config: { access: { scope: READ, ...access } },
        preValidation: find,
        schema: {
          tags: ['batch exports'],
          summary: `List the intervals of a batch export ${of} with their states, oldest first`,
          description: 'Shows the whole intervals between `after` and `before` that have ended.',
          params: params.extend({ id: z.string() }),
          querystring: query,
          response: { 200: intervalMapAnswer },
        },
      },
      async ({ batchExport: row, query: wanted }) => {
        const now = Date.now();
        const after = millisecondsOf(wanted.after ?? (instantOf('-7d') as string));
        const before = Math.min(wanted.before ? millisecondsOf(wanted.before) : now, now);
        if (countWithin(cadenceOfRow(row), { start: after, end: before }) > MOST_INTERVALS) {
          throw errors.validation(
            'invalid_input',
            `This range has more than ${MOST_INTERVALS} intervals. Choose a shorter range.`,
            'after',
          );
        }
        const entries =
          after < before ? await intervalMap(pool, row, { start: after, end: before }, now) : [];
        return {
          ...healthOf(entries),
          results: entries.map(({ start, end, ...rest }) => ({
            data_interval_start: instantText(start),
            data_interval_end: instantText(end),
            ...rest,
          })),
        };
      },
    );
  }
}
