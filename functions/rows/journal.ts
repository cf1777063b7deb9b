import type { Queryable } from '../../db/pool.ts';
import type { LogRow } from './logs.ts';

export interface NewLogRow extends LogRow {
  project_id: number;
}

/** How often something became of a function in an hour. */
export interface NewCount {
  project_id: number;
  function_id: string;
  /** When the hour begins, in ISO 8601. */
  hour: string;
  kind: string;
  name: string;
  count: number;
}

/** Adds entries of logs, of functions that still exist. */
export async function insertLogs(queryable: Queryable, rows: readonly NewLogRow[]): Promise<void> {
  if (rows.length === 0) return;
  await queryable.query(
    `insert into function_logs (project_id, function_id, instance_id, timestamp, level, message)
     select l.* from unnest($1::int[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[])
       as l (project_id, function_id, instance_id, timestamp, level, message)
     where exists (select from functions f where f.project_id = l.project_id and f.id = l.function_id)`,
    [
      rows.map((one) => one.project_id),
      rows.map((one) => one.function_id),
      rows.map((one) => one.instance_id),
      rows.map((one) => one.timestamp),
      rows.map((one) => one.level),
      rows.map((one) => one.message),
    ],
  );
}

/** Adds to counts, of functions that still exist. */
export async function addCounts(queryable: Queryable, rows: readonly NewCount[]): Promise<void> {
  if (rows.length === 0) return;
  // Everybody takes the rows in the same order, so that nobody waits for somebody who waits for them.
  const sorted = rows.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b)));
  await queryable.query(
    `insert into function_metrics (project_id, function_id, hour, kind, name, count)
     select c.* from unnest($1::int[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::bigint[])
       as c (project_id, function_id, hour, kind, name, count)
     where exists (select from functions f where f.project_id = c.project_id and f.id = c.function_id)
     on conflict (project_id, function_id, hour, kind, name)
       do update set count = function_metrics.count + excluded.count`,
    [
      sorted.map((one) => one.project_id),
      sorted.map((one) => one.function_id),
      sorted.map((one) => one.hour),
      sorted.map((one) => one.kind),
      sorted.map((one) => one.name),
      sorted.map((one) => one.count),
    ],
  );
}

/** Names what a count is of. */
export const keyOf = ({ project_id, function_id, hour, kind, name }: Omit<NewCount, 'count'>): string =>
  [project_id, function_id, hour, kind, name].join(' ');
