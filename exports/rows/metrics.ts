import { type CountRange, metricCounts } from '../../db/metric-counts.ts';
import type { Queryable } from '../../db/pool.ts';
import type { ExportKey } from './batch-exports.ts';

const counts = metricCounts('batch_export_metrics', 'batch_export_id');

/** Which counts of an export to read. `runs.ts` writes them when runs end. */
export interface MetricQuery extends ExportKey, CountRange {}

export const listMetrics = (queryable: Queryable, query: MetricQuery, bucket: 'hour' | 'day' | 'week') =>
  counts.list(queryable, [query.projectId, query.exportId], query, bucket);

export const metricTotals = (queryable: Queryable, query: MetricQuery) =>
  counts.totals(queryable, [query.projectId, query.exportId], query);
