import { type CountRange, metricCounts } from '../../db/metric-counts.ts';
import type { Queryable } from '../../db/pool.ts';
import type { FunctionKey } from './functions.ts';

const counts = metricCounts('function_metrics', 'function_id');

/** Which counts of a function to read. */
export interface MetricQuery extends FunctionKey, CountRange {}

export const listMetrics = (queryable: Queryable, query: MetricQuery, bucket: 'hour' | 'day' | 'week') =>
  counts.list(queryable, [query.projectId, query.functionId], query, bucket);

export const metricTotals = (queryable: Queryable, query: MetricQuery) =>
  counts.totals(queryable, [query.projectId, query.functionId], query);
