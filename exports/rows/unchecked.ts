import type { Queryable } from '../../db/pool.ts';
import type { RunRow } from './runs.ts';

/**
 * Completed runs of events since an instant that nobody has compared with the database yet, oldest first: the last run
 * of its interval, by the settings that its export still has. Runs over everything are left out.
 */
export async function listUncheckedRuns(
  queryable: Queryable,
  since: string,
  limit: number,
): Promise<RunRow[]> {
  const { rows } = await queryable.query(
    `select r.* from batch_export_runs r
     join batch_exports e on e.project_id = r.project_id and e.id = r.batch_export_id
     where r.created_at >= $1 and r.status = 'Completed' and r.data_interval_start is not null
       and e.model = 'events' and e.deleted_at is null and e.last_updated_at <= r.created_at
       and not exists (
         select from batch_export_checks c
         where c.project_id = r.project_id and c.batch_export_id = r.batch_export_id and c.run_id = r.id
           and c.data_interval_end = r.data_interval_end and c.data_interval_start = r.data_interval_start)
       and not exists (
         select from batch_export_runs n
         where n.project_id = r.project_id and n.batch_export_id = r.batch_export_id and n.status = 'Completed'
           and n.data_interval_end = r.data_interval_end and n.data_interval_start = r.data_interval_start
           and (n.finished_at, n.id) > (r.finished_at, r.id))
     order by r.created_at, r.id limit $2`,
    [since, limit],
  );
  return rows;
}
