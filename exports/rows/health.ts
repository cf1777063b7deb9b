import type { Queryable } from '../../db/pool.ts';
import type { ExportKey } from './batch-exports.ts';

/** How complete an export is. Only recent intervals count: see `UpkeepTimes` in `rules/due.ts`. */
export interface Health {
  /** The number of intervals that ended long ago and are not completed. */
  missing: number;
  /** The number of intervals that are not completed within the expected time. */
  late: number;
  /** The number of intervals whose run exported other rows than the database or the destination has. */
  differs: number;
  /** The number of finished intervals that are not completed. 0 while a run is at work on each of them. */
  lag_intervals: number;
  /** The time from the beginning of the first of these intervals to the end of the last finished one. */
  lag_seconds: number;
}

/** Writes down how complete some exports are. */
export async function saveHealth(
  queryable: Queryable,
  known: readonly (ExportKey & { health: Health })[],
): Promise<void> {
  if (known.length === 0) return;
  const columns = ['missing', 'late', 'differs', 'lag_intervals', 'lag_seconds'] as const;
  await queryable.query(
    `insert into batch_export_health (project_id, batch_export_id, ${columns.join(', ')})
     select * from unnest($1::int[], $2::uuid[], $3::int[], $4::int[], $5::int[], $6::int[], $7::bigint[])
     on conflict (project_id, batch_export_id) do update set missing = excluded.missing, late = excluded.late,
       differs = excluded.differs, lag_intervals = excluded.lag_intervals, lag_seconds = excluded.lag_seconds,
       checked_at = clock_timestamp()`,
    [
      ...[known.map((one) => one.projectId), known.map((one) => one.exportId)],
      ...columns.map((column) => known.map(({ health }) => health[column])),
    ],
  );
}

/** Finds the health of these exports by export id. An export that was never checked is left out. */
export async function findHealth(
  queryable: Queryable,
  exports: readonly ExportKey[],
): Promise<Map<string, Health>> {
  const { rows } = await queryable.query(
    `select h.batch_export_id, h.missing, h.late, h.differs, h.lag_intervals, h.lag_seconds
     from unnest($1::int[], $2::uuid[]) as wanted (project_id, id)
     join batch_export_health h on h.project_id = wanted.project_id and h.batch_export_id = wanted.id`,
    [exports.map((one) => one.projectId), exports.map((one) => one.exportId)],
  );
  return new Map(rows.map(({ batch_export_id: id, ...health }) => [id, health]));
}

export interface ExportHealthRow extends Health {
  project_id: number;
  batch_export_id: string;
  destination_type: string;
}

/** Lists the exports of all projects that have missing, late or different intervals or are behind, the worst first. */
export async function listUnhealthy(queryable: Queryable, limit: number): Promise<ExportHealthRow[]> {
  const { rows } = await queryable.query(
    `select h.project_id, h.batch_export_id, e.destination_type, missing, late, differs, lag_intervals, lag_seconds
     from batch_export_health h
     join batch_exports e on e.project_id = h.project_id and e.id = h.batch_export_id and e.deleted_at is null
     where missing > 0 or late > 0 or differs > 0 or lag_seconds > 0
     order by missing + differs desc, lag_seconds desc, batch_export_id limit $1`,
    [limit],
  );
  return rows;
}

/** Sums up the health of all exports of all projects. */
export async function sumHealth(
  queryable: Queryable,
): Promise<Pick<Health, 'missing' | 'late' | 'differs'> & { worst_lag_seconds: number }> {
  const { rows } = await queryable.query(
    `select coalesce(sum(missing), 0)::int as missing, coalesce(sum(late), 0)::int as late,
       coalesce(sum(differs), 0)::int as differs, coalesce(max(lag_seconds), 0)::bigint as worst_lag_seconds
     from batch_export_health h
     join batch_exports e on e.project_id = h.project_id and e.id = h.batch_export_id and e.deleted_at is null`,
  );
  return rows[0];
}

/**
 * Returns how many seconds ago the export was checked that has waited longest. An export that was never checked has
 * waited since its creation. Null: there is no export.
 */
export async function secondsSinceChecked(queryable: Queryable): Promise<number | null> {
  const { rows } = await queryable.query(
    `select extract(epoch from clock_timestamp() - min(coalesce(h.checked_at, e.created_at)))::float8 as seconds
     from batch_exports e
     left join batch_export_health h on h.project_id = e.project_id and h.batch_export_id = e.id
     where e.deleted_at is null and e.interval <> 'once'`,
  );
  return rows[0].seconds;
}
