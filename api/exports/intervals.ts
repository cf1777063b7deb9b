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
  after: moment.meta({ description: 'Default: `-7d`.' }),
  before: moment.meta({ description: 'Default: now.' }),
  personal_api_key: z.string().optional(),
});

const entry = z
  .object({
    data_interval_start: timestamp,
    data_interval_end: timestamp,
    state: z.enum(INTERVAL_STATES),
    run_id: z.uuid().nullable().meta({ description: 'Its completed run; without one, its last run.' }),
    status: z.enum(RUN_STATUSES).nullable(),
    runs: z.int(),
    records_completed: z.int().nullable(),
    source_rows: z.int().nullable().meta({ description: 'Rows in the database when it was last looked at.' }),
    checked_at: timestamp.nullable(),
    problem: z.string().nullable(),
  })
  .meta({ id: 'BatchExportInterval' });

const intervalMapAnswer = z
  .object({
    missing: z.int().meta({ description: 'Intervals that no run completed though they are long over.' }),
    late: z.int(),
    differs: z.int(),
    lag_intervals: z
      .int()
      .meta({ description: 'Intervals from the first on that is not completed in time.' }),
    lag_seconds: z.number(),
    results: z.array(entry),
  })
  .meta({ id: 'BatchExportIntervals' });

/** What became of each interval. */
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
          summary: `Tell for each interval of a batch export ${of} what became of it, in order of time`,
          description: 'Whole intervals between `after` and `before` that are over.',
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
            `These are more than ${MOST_INTERVALS} intervals; take a shorter time.`,
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
