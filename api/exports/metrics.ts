import { z } from 'zod';
import { type BatchExportRow, keyOf } from '../../exports/rows/batch-exports.ts';
import { listMetrics, type MetricQuery, type MetricRow, metricTotals } from '../../exports/rows/metrics.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { instantOf, millisecondsOf, moment } from '../moment.ts';
import { bucketLabel, bucketsWithin } from '../time-buckets.ts';
import { findsExport } from './find-export.ts';
import { PLACES, READ } from './places.ts';

const TAGS = ['batch exports'];
const MOST_BUCKETS = 10_000;

const list = (text: string) =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
const names = (description: string) =>
  z.string().transform(list).optional().meta({ type: 'string', description });

const totalsQuery = z.strictObject({
  after: moment.meta({ description: 'Counts from the hour of this time on. Default: `-7d`.' }),
  before: moment.meta({ description: 'Counts up to the hour of this time. Default: now.' }),
  kind: names(
    'Only counts of these kinds, separated by commas: `success`, `failure`, `cancellation`, `rows`.',
  ),
  name: names(
    'Only counts with these names, separated by commas: `succeeded`, `failed`, `failed_billing`, `canceled`, `rows_exported`.',
  ),
  breakdown_by: z
    .enum(['kind', 'name'])
    .optional()
    .meta({ description: 'Whether to group the counts by kind or by name. Default: `kind`.' }),
  personal_api_key: z.string().optional(),
});
const seriesQuery = totalsQuery.extend({
  interval: z
    .enum(['hour', 'day', 'week'])
    .optional()
    .meta({ description: 'The time that each value covers. Default: `day`.' }),
});

const series = z
  .object({
    labels: z.array(z.string()),
    series: z.array(z.object({ name: z.string(), values: z.array(z.int()) })),
  })
  .meta({ id: 'MetricSeries' });
const totals = z.object({ totals: z.record(z.string(), z.int()) }).meta({ id: 'MetricTotals' });

function queryOf(row: BatchExportRow, query: z.output<typeof totalsQuery>): MetricQuery {
  return {
    ...keyOf(row),
    after: query.after ?? (instantOf('-7d') as string),
    before: query.before ?? new Date().toISOString(),
    kinds: query.kind ?? [],
    names: query.name ?? [],
  };
}

/** Turns rows into series that have a value for each bucket. */
function seriesOf(
  rows: readonly MetricRow[],
  by: 'kind' | 'name',
  starts: readonly number[],
): z.output<typeof series>['series'] {
  const positions = new Map(starts.map((start, index) => [start, index]));
  const found = new Map<string, number[]>();
  for (const row of rows) {
    const index = positions.get(Date.parse(row.bucket));
    if (index === undefined) continue;
    const values = found.get(row[by]) ?? starts.map(() => 0);
    values[index] = (values[index] ?? 0) + row.count;
    found.set(row[by], values);
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, values]) => ({ name, values }));
}

/** Adds the routes that count how runs ended and how many rows they exported. */
export function metricRoutes(app: App, { pool }: ExportRouteDependencies): void {
  const find = findsExport(pool);
  for (const { prefix, params, access, of } of PLACES) {
    const exportParams = params.extend({ id: z.string() });

    app.get(
      `${prefix}:id/metrics/`,
      {
        config: { access: { scope: READ, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `Count the ended runs and exported rows of a batch export ${of} over time`,
          params: exportParams,
          querystring: seriesQuery,
          response: { 200: series },
        },
      },
      async ({ batchExport, query }) => {
        const { interval = 'day', breakdown_by: by = 'kind' } = query;
        const wanted = queryOf(batchExport, query);
        const [after, before] = [millisecondsOf(wanted.after), millisecondsOf(wanted.before)];
        const starts = bucketsWithin(interval, after, before, MOST_BUCKETS);
        if (!starts) {
          throw errors.validation(
            'invalid_input',
            `This range has more than ${MOST_BUCKETS} values. Choose a longer interval or a shorter range.`,
            'interval',
          );
        }
        const rows = await listMetrics(pool, wanted, interval);
        return {
          labels: starts.map((start) => bucketLabel(interval, start)),
          series: seriesOf(rows, by, starts),
        };
      },
    );

    app.get(
      `${prefix}:id/metrics/totals/`,
      {
        config: { access: { scope: READ, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `Count the ended runs and exported rows of a batch export ${of}`,
          params: exportParams,
          querystring: totalsQuery,
          response: { 200: totals },
        },
      },
      async ({ batchExport, query }) => {
        const by = query.breakdown_by ?? 'kind';
        const sums: Record<string, number> = {};
        for (const row of await metricTotals(pool, queryOf(batchExport, query))) {
          sums[row[by]] = (sums[row[by]] ?? 0) + row.count;
        }
        return { totals: sums };
      },
    );
  }
}
