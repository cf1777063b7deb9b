import type { Queryable } from '../../db/pool.ts';

/** Transactions whose events functions have not seen yet. */
export interface DispatchBacklog {
  batches: number;
  events: number;
  /** Seconds since the oldest of them was noted. Null: there is none. */
  oldest: number | null;
  /** Pieces that were left to single projects because of their slow filters, and how many projects these are. */
  late: number;
  lateProjects: number;
}

export async function dispatchBacklog(queryable: Queryable): Promise<DispatchBacklog> {
  const { rows } = await queryable.query(
    `select b.*, l.* from
       (select count(*) as batches, coalesce(sum(events), 0)::bigint as events,
         floor(extract(epoch from clock_timestamp() - min(noted_at)))::int as oldest from function_batches) b,
       (select count(*) as late, count(distinct project_id) as "lateProjects" from function_late_batches) l`,
  );
  return rows[0];
}

/** Waiting invocations of a project. */
export interface ProjectBacklog {
  projectId: number;
  waiting: number;
  /** Those of them whose last attempt failed. */
  failing: number;
  /** Seconds since the oldest of them was made. */
  oldest: number;
}

/** Counts waiting invocations of all projects together, and of those with the most. */
export async function deliveryBacklog(
  queryable: Queryable,
  most: number,
): Promise<{ waiting: number; failing: number; projects: ProjectBacklog[] }> {
  const { rows } = await queryable.query(
    `with counted as (
       select project_id, count(*) as waiting, count(*) filter (where attempt > 0) as failing,
         floor(extract(epoch from clock_timestamp() - min(created_at)))::int as oldest
       from function_queue group by project_id)
     select (select coalesce(sum(waiting), 0)::bigint from counted) as waiting,
       (select coalesce(sum(failing), 0)::bigint from counted) as failing,
       (select coalesce(json_agg(json_build_object('projectId', project_id, 'waiting', waiting, 'failing', failing,
           'oldest', oldest) order by waiting desc, project_id), '[]')
         from (select * from counted order by waiting desc, project_id limit $1) top) as projects`,
    [most],
  );
  return rows[0];
}
