import type { Queryable, Transaction } from '../../db/pool.ts';
import type { DeliveryPolicy } from '../rules/policy.ts';

interface Key {
  projectId: number;
  functionId: string;
}

/** A function whose invocations are delivered by a policy. */
export interface Governed {
  project_id: number;
  function_id: string;
  delivery: DeliveryPolicy | null;
  paused: boolean;
}

/** Lists the functions with a policy that may run. */
export async function listGoverned(queryable: Queryable): Promise<Governed[]> {
  const { rows } = await queryable.query({
    name: 'list-governed-functions',
    text: `select project_id, id as function_id, delivery, paused from functions
     where (delivery is not null or paused) and enabled and deleted_at is null`,
  });
  return rows;
}

/** What the workers know of such a function, locked by the transaction that has read it. */
export interface Pace extends Governed {
  /** In how many milliseconds its next attempt may begin. */
  next_in: number;
  /** The time of the database, to the microsecond. */
  now: string;
  /** Whether all of its waiting invocations have to be looked at, to find those without a line. */
  is_unlined: boolean;
}

const columnsOf = (keys: readonly Key[]) => [
  keys.map(({ projectId }) => projectId),
  keys.map(({ functionId }) => functionId),
];

/** How long after it was last done it is made sure again that all invocations have a line. */
const LINED_FULLY = '60 seconds';

/** Locks functions with a policy. Those that another worker has locked are left out, and those that run without one. */
export async function lockPaces(client: Transaction, keys: readonly Key[]): Promise<Pace[]> {
  const { rows } = await client.query({
    name: 'lock-function-paces',
    text: `select p.project_id, p.function_id, f.delivery, f.paused, t.now,
       case when p.next_at > t.now then extract(epoch from p.next_at - t.now)::float8 * 1000 else 0 end as next_in,
       p.lined_for <> f.updated_at or p.lined_fully_at < t.now - interval '${LINED_FULLY}' as is_unlined
     from unnest($1::int[], $2::uuid[]) as w (project_id, function_id)
     join functions f on f.project_id = w.project_id and f.id = w.function_id
     join function_paces p on p.project_id = w.project_id and p.function_id = w.function_id
     cross join (select clock_timestamp() as now) t
     where (f.delivery is not null or f.paused) and f.enabled and f.deleted_at is null
     for update of p skip locked`,
    values: columnsOf(keys),
  });
  return rows;
}

export async function addPaces(queryable: Queryable, keys: readonly Key[]): Promise<void> {
  await queryable.query({
    name: 'add-function-paces',
    text: `insert into function_paces (project_id, function_id)
     select f.project_id, f.id from unnest($1::int[], $2::uuid[]) as w (project_id, function_id)
     join functions f on f.project_id = w.project_id and f.id = w.function_id
     order by 1, 2 on conflict do nothing`,
    values: columnsOf(keys),
  });
}

/** Counts the invocations of functions that are in progress. What a dead worker had does not count when its lease is over. */
export async function countHeld(queryable: Queryable, keys: readonly Key[]): Promise<Map<string, number>> {
  const { rows } = await queryable.query({
    name: 'count-held-invocations',
    text: `select w.function_id, count(distinct coalesce(q.batch, q.id))::int as count from unnest($1::int[], $2::uuid[]) as w (project_id, function_id)
     join function_queue q on q.project_id = w.project_id and q.function_id = w.function_id
       and q.held and q.due_at > clock_timestamp() group by 1`,
    values: columnsOf(keys),
  });
  return new Map(rows.map((row) => [row.function_id, row.count]));
}

/** Writes down when functions may go on because of their rate. `now`: the time from which `nextIn` counts. */
export async function storeNext(
  queryable: Queryable,
  paces: readonly (Key & { now: string; nextIn: number })[],
): Promise<void> {
  await queryable.query({
    name: 'store-function-paces',
    text: `update function_paces p set next_at = w.now + w.next_in * interval '1 millisecond'
     from unnest($1::int[], $2::uuid[], $3::timestamptz[], $4::float8[]) as w (project_id, function_id, now, next_in)
     where p.project_id = w.project_id and p.function_id = w.function_id`,
    values: [...columnsOf(paces), paces.map(({ now }) => now), paces.map(({ nextIn }) => nextIn)],
  });
}
