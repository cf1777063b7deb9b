import type { Queryable } from '../../db/pool.ts';
import { listWaiting } from './queue.ts';

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

const MOST_COUNTED = 100_000;

/** Sizes that are known quickly, however large they are. */
export interface BacklogSizes {
  /** Waiting invocations, up to a number. */
  waiting: number;
  /** Seconds for which the invocation is due that has been due for longest. */
  overdue: number;
  /** Failed invocations that nobody has done anything about, up to a number. */
  failed: number;
}

export async function backlogSizes(queryable: Queryable): Promise<BacklogSizes> {
  const due = (await listWaiting(queryable, MOST_COUNTED)).map((one) => Date.parse(one.due_at));
  const { rows } = await queryable.query(
    `select (select count(*) from (select from function_queue limit ${MOST_COUNTED}) q) as waiting,
       (select count(*) from (select from function_invocations
         where status = 'failed' and dismissed_at is null and rerun_at is null limit ${MOST_COUNTED}) i) as failed,
       extract(epoch from clock_timestamp())::float8 * 1000 as now`,
  );
  const { waiting, failed, now } = rows[0];
  const overdue = due.length === 0 ? 0 : Math.max(0, (now - due.reduce((a, b) => Math.min(a, b))) / 1_000);
  return { waiting, failed, overdue };
}
