// Invocations beyond those that the queue takes. Of each, only the place of its event is kept.
import type { Queryable } from '../../db/pool.ts';
import { GROUPS } from './events.ts';
import { isForgotten } from './forgotten-persons.ts';
import type { FunctionKey } from './functions.ts';
import type { NewInvocation } from './queue.ts';

/** Whether nobody has deleted the person of event `e` since it came in. */
const KNOWN = `not ${isForgotten({ project: 't.project_id', person: 'e.person_id', since: 'e.created_at' })}`;
/** Whether the function of positions `p` has run since they were kept. If it was switched off meanwhile, they end as well. */
const RUNS = `exists (select from functions f where f.project_id = p.project_id and f.id = p.function_id
  and f.enabled and f.deleted_at is null and f.enabled_at <= p.created_at)`;
const OFF = 'The function was switched off or deleted while this waited.';

/** How many positions a row has at most. */
const IN_A_ROW = 1_000;
/** About the least that a waiting invocation takes, in bytes. */
const LEAST_BYTES = 100;

/**
 * Finds functions of which more than so many invocations wait, or that have a part in too many of their project: from now on
 * they keep positions only. Returns how many.
 */
export async function markFloods(
  queryable: Queryable,
  { most, mostOfProject }: { most: number; mostOfProject: number },
): Promise<number> {
  const { rows } = await queryable.query(
    `select pg_relation_size('function_queue') > $1::bigint * ${LEAST_BYTES} as some`,
    [most],
  );
  if (!rows[0].some) return 0;
  const { rowCount } = await queryable.query(
    `insert into function_floods (project_id, function_id)
     select project_id, function_id from (
       select project_id, function_id, count(*) as waiting, sum(count(*)) over (partition by project_id) as of_project
       from function_queue group by 1, 2) q
     where waiting > $1 or of_project > $2
     on conflict do nothing`,
    [most, mostOfProject],
  );
  return rowCount ?? 0;
}

/** Keeps the positions of invocations that are not queued yet. */
export async function keepPositions(
  queryable: Queryable,
  invocations: readonly NewInvocation[],
): Promise<void> {
  const groups = Map.groupBy(invocations, (one) => `${one.functionId}:${one.version}`);
  for (const all of groups.values()) {
    for (let at = 0; at < all.length; at += IN_A_ROW) {
      const some = all.slice(at, at + IN_A_ROW);
      const [{ projectId, functionId, version }] = some as [NewInvocation];
      await queryable.query(
        `insert into function_positions (project_id, function_id, version, uuids, timestamps, mappings, with_groups, count)
         values ($1, $2, $3, $4, $5, $6, $7, cardinality($4::uuid[]))`,
        [
          ...[projectId, functionId, version, some.map((one) => one.uuid), some.map((one) => one.timestamp)],
          ...[some.map((one) => one.mapping ?? -1), some.some((one) => one.groups !== null)],
        ],
      );
    }
  }
}

/** Locks the function whose positions were looked at longest ago. Undefined: there is none that nobody else looks at. */
export async function lockFlood(queryable: Queryable): Promise<FunctionKey | undefined> {
  const { rows } = await queryable.query(
    `update function_floods set looked_at = clock_timestamp() where (project_id, function_id) = (
       select project_id, function_id from function_floods order by looked_at limit 1 for no key update skip locked)
     returning project_id as "projectId", function_id as "functionId"`,
  );
  return rows[0];
}

export interface Requeued {
  queued: number;
  /** Events that are no longer there, or whose persons were deleted. */
  missing: number;
}

/** Queues invocations of the oldest positions of a function. Undefined: it has no positions. Call it under `lockFlood`. */
export async function requeue(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  limit: number,
): Promise<Requeued | undefined> {
  const { rows } = await queryable.query(
    `with taken as (
       delete from function_positions where id in (
         select id from function_positions where project_id = $1 and function_id = $2 order by id limit $3)
       returning *),
     positions as (
       select t.id, t.project_id, t.version, t.with_groups, t.created_at, p.* from taken t
       cross join lateral unnest(t.uuids, t.timestamps, t.mappings) with ordinality as p (uuid, timestamp, mapping, place)),
     queued as (
       insert into function_queue (id, project_id, function_id, version, mapping, event_uuid, event_timestamp, distinct_id,
         person_id, groups, clock, seed)
       select gen_random_uuid(), $1, $2, t.version, nullif(t.mapping, -1), e.uuid, e.timestamp, e.distinct_id, e.person_id,
         case when t.with_groups then ${GROUPS} end, e.created_at, floor(random() * 2147483647)::int
       from positions t join lateral (select * from events i
         where i.project_id = $1 and i.timestamp = t.timestamp and i.uuid = t.uuid limit 1) e on ${KNOWN}
       order by t.id, t.place returning 1)
     select (select count(*) from taken)::int as rows, (select count(*) from positions)::int as positions,
       (select count(*) from queued)::int as queued`,
    [projectId, functionId, Math.max(1, Math.floor(limit / IN_A_ROW))],
  );
  const { rows: taken, positions, queued } = rows[0];
  return taken === 0 ? undefined : { queued, missing: positions - queued };
}

/**
 * Has invocations cancelled whose positions were kept in a range of time: from now on none of them is queued. `endCancelled`
 * lists them. Returns how many.
 */
export async function cancelPositions(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  { after, before }: { after?: string | undefined; before?: string | undefined },
  reason: string,
): Promise<number> {
  // Whoever queues positions holds this lock, so the next statement sees which of them are left.
  await queryable.query(
    'select from function_floods where project_id = $1 and function_id = $2 for no key update',
    [projectId, functionId],
  );
  const { rows } = await queryable.query(
    `with marked as (
       update function_positions set cancelled = $5
       where project_id = $1 and function_id = $2 and cancelled is null
         and created_at >= coalesce($3::timestamptz, '-infinity') and created_at < coalesce($4::timestamptz, 'infinity')
       returning count)
     select coalesce(sum(count), 0)::int as count from marked`,
    [projectId, functionId, after, before, reason],
  );
  return rows[0].count;
}

/**
 * Lists invocations as cancelled that were to be, and all whose function was switched off since they were kept. Returns how
 * many positions these were. Call it under `lockFlood`.
 */
export async function endCancelled(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  limit: number,
): Promise<number> {
  const { rows } = await queryable.query(
    `with taken as (
       delete from function_positions where id in (
         select id from function_positions p
         where project_id = $1 and function_id = $2 and (cancelled is not null or not ${RUNS}) order by id limit $3)
       returning *),
     listed as (
       insert into function_invocations (project_id, id, function_id, version, mapping, event_uuid, event_timestamp,
         distinct_id, person_id, groups, status, error, attempts, created_at, finished_at)
       select $1, gen_random_uuid(), $2, t.version, nullif(p.mapping, -1), e.uuid, e.timestamp, e.distinct_id, e.person_id,
         case when t.with_groups then ${GROUPS} end, 'cancelled', coalesce(t.cancelled, $4), '[]', t.created_at,
         clock_timestamp()
       from taken t cross join lateral unnest(t.uuids, t.timestamps, t.mappings) as p (uuid, timestamp, mapping)
       join lateral (select * from events i
         where i.project_id = $1 and i.timestamp = p.timestamp and i.uuid = p.uuid limit 1) e on ${KNOWN})
     select coalesce(sum(count), 0)::int as count from taken`,
    [projectId, functionId, Math.max(1, Math.floor(limit / IN_A_ROW)), OFF],
  );
  return rows[0].count;
}

/** From now on the function queues all of its invocations again, unless it has got further positions. */
export async function endFlood(queryable: Queryable, { projectId, functionId }: FunctionKey): Promise<void> {
  // Whoever keeps positions holds this lock, so the next statement sees them.
  await queryable.query('select from function_floods where project_id = $1 and function_id = $2 for update', [
    projectId,
    functionId,
  ]);
  await queryable.query(
    `delete from function_floods where project_id = $1 and function_id = $2
       and not exists (select from function_positions where project_id = $1 and function_id = $2)`,
    [projectId, functionId],
  );
}
