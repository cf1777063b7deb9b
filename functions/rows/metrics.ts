import type { Queryable } from '../../db/pool.ts';
import type { FunctionKey } from './functions.ts';

/** Which counts of a function to read. */
export interface MetricQuery extends FunctionKey {
  /** The first and the last hour, as texts that Postgres reads. */
  after: string;
  before: string;
  kinds?: readonly string[] | undefined;
  names?: readonly string[] | undefined;
}

export interface MetricRow {
  /** When the hour, day or week (from Monday) begins, in UTC. */
  bucket: string;
  kind: string;
  name: string;
  count: number;
}

const WHERE = `project_id = $1 and function_id = $2 and hour >= date_trunc('hour', $3::timestamptz)
  and hour <= $4::timestamptz and ($5::text[] is null or kind = any($5)) and ($6::text[] is null or name = any($6))`;

const valuesOf = (query: MetricQuery) => [
  query.projectId,
  query.functionId,
  query.after,
  query.before,
  query.kinds && query.kinds.length > 0 ? query.kinds : null,
  query.names && query.names.length > 0 ? query.names : null,
];

/** Lists the counts of each hour, day or week. Those without any are left out. */
export async function listMetrics(
  queryable: Queryable,
  query: MetricQuery,
  bucket: 'hour' | 'day' | 'week',
): Promise<MetricRow[]> {
  const { rows } = await queryable.query(
    `select date_trunc($7, hour, 'UTC') as bucket, kind, name, sum(count)::bigint as count
     from function_metrics where ${WHERE} group by 1, kind, name order by 1, kind, name`,
    [...valuesOf(query), bucket],
  );
  return rows;
}

export async function metricTotals(
  queryable: Queryable,
  query: MetricQuery,
): Promise<Omit<MetricRow, 'bucket'>[]> {
  const { rows } = await queryable.query(
    `select kind, name, sum(count)::bigint as count from function_metrics where ${WHERE}
     group by kind, name order by kind, name`,
    valuesOf(query),
  );
  return rows;
}
