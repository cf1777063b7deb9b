import type { Queryable } from './pool.ts';

export interface IngestionWarningRow {
  day: string;
  reason: string;
  effect: 'skipped' | 'changed' | 'not_applied';
  count: number;
  first_seen_at: string;
  last_seen_at: string;
  /** The newest event or body that caused the warning: the index of an event in its request, and what helps to find it. */
  sample: Record<string, unknown>;
}

/** Several occurrences of one reason in one project. */
export interface NewIngestionWarning {
  project_id: number;
  reason: string;
  effect: 'skipped' | 'changed' | 'not_applied';
  count: number;
  /** Milliseconds. */
  first_seen: number;
  last_seen: number;
  sample: Record<string, unknown>;
}

/** Adds to the counts of the day, in the order of the key, so that processes that do so at once do not deadlock. */
export async function addIngestionWarnings(
  queryable: Queryable,
  warnings: readonly NewIngestionWarning[],
): Promise<void> {
  const moments = warnings.map((one) => ({
    project_id: one.project_id,
    reason: one.reason,
    effect: one.effect,
    count: one.count,
    first_seen_at: new Date(one.first_seen).toISOString(),
    last_seen_at: new Date(one.last_seen).toISOString(),
    sample: one.sample,
  }));
  await queryable.query(
    `insert into ingestion_warnings as known
       (project_id, day, reason, effect, count, first_seen_at, last_seen_at, sample)
     select project_id, (last_seen_at at time zone 'utc')::date, reason, effect, count, first_seen_at, last_seen_at,
       sample
     from jsonb_to_recordset($1::jsonb) as new (project_id integer, reason text, effect text, count bigint,
       first_seen_at timestamptz, last_seen_at timestamptz, sample jsonb)
     order by project_id, 2, reason
     on conflict (project_id, day, reason) do update set
       count = known.count + excluded.count,
       effect = excluded.effect,
       first_seen_at = least(known.first_seen_at, excluded.first_seen_at),
       last_seen_at = greatest(known.last_seen_at, excluded.last_seen_at),
       sample = excluded.sample`,
    [JSON.stringify(moments)],
  );
}

/**
 * Deletes up to `limit` rows of days before `day` (`2026-01-31`), and returns how many. It goes from project to project
 * along the primary key, so it costs almost nothing when there is nothing to delete, as is usual.
 */
export async function deleteSomeIngestionWarnings(
  queryable: Queryable,
  day: string,
  limit: number,
): Promise<number> {
  const { rowCount } = await queryable.query(
    `with recursive known as (
       select min(project_id) as project_id from ingestion_warnings
       union all
       select (select min(project_id) from ingestion_warnings where project_id > known.project_id)
       from known where project_id is not null
     ), expired as (
       select one.* from known, lateral (
         select project_id, day, reason from ingestion_warnings
         where project_id = known.project_id and day < $1::date limit $2) one
       limit $2
     )
     delete from ingestion_warnings using expired
     where ingestion_warnings.project_id = expired.project_id and ingestion_warnings.day = expired.day
       and ingestion_warnings.reason = expired.reason`,
    [day, limit],
  );
  return rowCount ?? 0;
}

/** Lists the warnings of a project, newest day first. */
export async function listIngestionWarnings(
  queryable: Queryable,
  projectId: number,
  options: { limit: number; offset: number },
): Promise<{ count: number; rows: IngestionWarningRow[] }> {
  const counted = await queryable.query(
    'select count(*)::int as count from ingestion_warnings where project_id = $1',
    [projectId],
  );
  const { rows } = await queryable.query(
    `select day::text, reason, effect, count, first_seen_at, last_seen_at, sample
     from ingestion_warnings where project_id = $1
     order by day desc, last_seen_at desc, reason limit $2 offset $3`,
    [projectId, options.limit, options.offset],
  );
  return { count: counted.rows[0].count, rows };
}
