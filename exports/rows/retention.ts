import type { Queryable } from '../../db/pool.ts';

/** Deletes up to `limit` rows of all exports from before an instant. Returns how many. */
type Expiry = (queryable: Queryable, before: string, limit: number) => Promise<number>;

const expiry =
  (table: string, condition: string): Expiry =>
  async (queryable, before, limit) => {
    const { rowCount } = await queryable.query(
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} as one where ${condition} limit $2))`,
      [before, limit],
    );
    return rowCount ?? 0;
  };

const OVER = "status not in ('Starting', 'Running')";

/**
 * The deletions of what is older than runs are kept, in the order in which they must happen: the row of a deleted
 * export goes after its last run.
 */
export const RUN_EXPIRIES: readonly Expiry[] = [
  expiry('batch_export_runs', `created_at < $1::timestamptz and ${OVER}`),
  expiry('batch_export_backfills', `created_at < $1::timestamptz and ${OVER}`),
  expiry('batch_export_metrics', 'hour < $1::timestamptz'),
  expiry('batch_export_checks', 'data_interval_end < $1::timestamptz'),
  expiry('batch_export_pauses', 'resumed_at < $1::timestamptz'),
  expiry(
    'batch_export_health',
    `not exists (select from batch_exports e where e.project_id = one.project_id
       and e.id = one.batch_export_id and e.deleted_at is null) and checked_at < $1::timestamptz`,
  ),
  expiry(
    'batch_exports',
    `deleted_at < $1::timestamptz and not exists (select from batch_export_runs r
       where r.project_id = one.project_id and r.batch_export_id = one.id)`,
  ),
  // One that runs once is over with its last run: nothing tells any more what it did.
  expiry(
    'batch_exports',
    `interval = 'once' and created_at < $1::timestamptz
       and not exists (select from batch_export_runs r
         where r.project_id = one.project_id and r.batch_export_id = one.id)
       and not exists (select from batch_export_backfills b
         where b.project_id = one.project_id and b.batch_export_id = one.id)`,
  ),
];
