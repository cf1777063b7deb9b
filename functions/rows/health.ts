// How functions fare: how long their invocations wait, and how many succeed.
import type { Queryable } from '../../db/pool.ts';
import type { FunctionKey } from './functions.ts';

/** So many waiting invocations are counted. */
const MOST_COUNTED = 100_000;

export interface Health {
  /** Up to 100,000. */
  waiting: number;
  /** Kept as positions only. */
  positions: number;
  /** When the oldest of all these was queued. */
  oldest_waiting_at: string | null;
  succeeded: number;
  failed: number;
  lost: number;
}

/** How a function fares. Counts are those of the last `hours`. */
export async function findHealth(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  hours: number,
): Promise<Health> {
  const { rows } = await queryable.query(
    `select q.waiting, p.positions, least(q.oldest, p.oldest) as oldest_waiting_at, m.succeeded, m.failed, m.lost
     from (select count(*)::int as waiting, min(created_at) as oldest from (
         select created_at from function_queue where project_id = $1 and function_id = $2 limit ${MOST_COUNTED}) q) q,
       (select coalesce(sum(count), 0)::bigint as positions, min(created_at) as oldest
         from function_positions where project_id = $1 and function_id = $2 and cancelled is null) p,
       (select coalesce(sum(count) filter (where kind = 'success'), 0)::bigint as succeeded,
           coalesce(sum(count) filter (where kind = 'failure'), 0)::bigint as failed,
           coalesce(sum(count) filter (where name = 'lost'), 0)::bigint as lost
         from function_metrics where project_id = $1 and function_id = $2
           and hour > clock_timestamp() - $3 * interval '1 hour') m`,
    [projectId, functionId, hours],
  );
  return rows[0];
}

/** A function that runs, and something that is measured of it. */
export interface Measured {
  project_id: number;
  function_id: string;
  value: number;
}

/** The functions that have waited for longest, and for how many seconds. Those that are paused wait because somebody wants it. */
export async function oldestWaiting(
  queryable: Queryable,
  limit: number,
  atLeast = 0,
): Promise<(Measured & { since: string })[]> {
  const { rows } = await queryable.query(
    `select w.project_id, w.function_id, w.since,
       extract(epoch from clock_timestamp() - w.since)::float8 as value
     from (select project_id, function_id, min(created_at) as since from (
         select project_id, function_id, created_at from function_queue
         union all select project_id, function_id, created_at from function_positions where cancelled is null) one group by 1, 2) w
     join functions f on f.project_id = w.project_id and f.id = w.function_id
       and f.enabled and not f.paused and f.deleted_at is null
     where w.since <= clock_timestamp() - $2 * interval '1 second'
     order by w.since, w.function_id limit $1`,
    [limit, atLeast],
  );
  return rows;
}

/** The functions of which most has failed in this hour and the one before, and which part has succeeded. */
export async function worstSuccess(queryable: Queryable, limit: number): Promise<Measured[]> {
  const { rows } = await queryable.query(
    `select project_id, function_id, (succeeded / (succeeded + failed))::float8 as value from (
       select project_id, function_id, coalesce(sum(count) filter (where kind = 'success'), 0) as succeeded,
         sum(count) filter (where kind = 'failure') as failed
       from function_metrics where hour >= date_trunc('hour', clock_timestamp(), 'UTC') - interval '1 hour'
         and kind in ('success', 'failure') group by 1, 2) m
     where failed > 0 order by failed desc, function_id limit $1`,
    [limit],
  );
  return rows;
}

/** A function that is disabled because of its cost. */
export interface DisabledNow {
  project_id: number;
  function_id: string;
  since: string;
  state: number;
}

export async function disabledNow(queryable: Queryable, limit: number): Promise<DisabledNow[]> {
  const { rows } = await queryable.query(
    `select s.project_id, s.function_id, s.changed_at as since, s.state from function_states s
     join functions f on f.project_id = s.project_id and f.id = s.function_id and f.enabled and f.deleted_at is null
     where s.state = 4 or s.state = 3 and s.disabled_until > clock_timestamp()
     order by s.changed_at desc limit $1`,
    [limit],
  );
  return rows;
}
