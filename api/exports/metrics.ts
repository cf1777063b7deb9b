import { z } from 'zod';
import { keyOf } from '../../exports/rows/batch-exports.ts';
import { listMetrics, metricTotals } from '../../exports/rows/metrics.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { rangeOf, series, seriesOf, seriesQuery, totals, totalsOf, totalsQuery } from '../metric-series.ts';
import { findsExport } from './find-export.ts';
import { PLACES, READ } from './places.ts';

const TAGS = ['batch exports'];
const COUNTED = [
  ['success', 'failure', 'cancellation', 'rows'],
  ['succeeded', 'failed', 'failed_billing', 'canceled', 'rows_exported'],
] as const;

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
          querystring: seriesQuery(...COUNTED),
          response: { 200: series },
        },
      },
      async ({ batchExport, query }) =>
        seriesOf(query, (range, interval) =>
          listMetrics(pool, { ...keyOf(batchExport), ...range }, interval),
        ),
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
          querystring: totalsQuery(...COUNTED),
          response: { 200: totals },
        },
      },
      async ({ batchExport, query }) =>
        totalsOf(query, await metricTotals(pool, { ...keyOf(batchExport), ...rangeOf(query) })),
    );
  }
}
