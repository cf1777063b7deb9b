// The place of a worker, as an attempt sees it. A place is a lease: it ends by itself unless the attempt that has it renews
// it.
import type { Pool, Queryable, Transaction } from '../../db/pool.ts';
import { giveFree } from './place-queue.ts';
import {
  type Called,
  type Claim,
  FAILING,
  isProven,
  locked,
  NEXT_FENCE,
  NOW,
  openRun,
  type Place,
  type PlaceKey,
  type PlaceTimes,
  SPARE,
  TURN_OF,
  within,
} from './places.ts';

/**
 * - `held`: the caller has a place of its worker. `attempts` counts this one
 * - `elsewhere`: a place is kept for it, but this worker has none free
 * - `waiting`: there is no place. When there is one, its workflow is told
 * - `over`: the run has ended, so it needs no place
 */
export type Taken =
  | { outcome: 'held'; fence: number; attempts: number }
  | { outcome: 'elsewhere' }
  | { outcome: 'waiting'; since: string }
  | { outcome: 'over' };

/**
 * Takes a place of this worker. Where there is none, and `waits`, the caller stands in the queue from now on. `called`
 * are others who got a place because of that.
 */
export async function takePlace(
  pool: Pool,
  claim: Claim,
  worker: string,
  times: PlaceTimes,
  waits = true,
): Promise<{ taken: Taken; called: Called[] }> {
  return locked(pool, claim.lane, async (client) => {
    const at = await takeFree(client, claim, worker, times);
    if (at) return { taken: { outcome: 'held', ...at }, called: [] };
    if (!waits) return { taken: { outcome: 'elsewhere' }, called: [] };
    const since = await enqueue(client, claim, times);
    if (since === undefined) return { taken: { outcome: 'over' }, called: [] };
    const given = await giveFree(client, claim.lane, times);
    const called = given.filter((one) => one.id !== claim.id || one.project_id !== claim.projectId);
    const own = await takeKept(client, claim, worker, times);
    if (own.held) return { taken: { outcome: 'held', ...own.held }, called };
    return { taken: own.kept ? { outcome: 'elsewhere' } : { outcome: 'waiting', since }, called };
  });
}

/** Takes a place at once if one is free that nobody waits for, or is kept for the caller. */
async function takeFree(
  client: Transaction,
  { projectId, id, exportId, kind, lane, workflowId }: Claim,
  worker: string,
  { lease }: PlaceTimes,
): Promise<{ fence: number; attempts: number } | undefined> {
  const { rows } = await client.query(
    `with room as (
       select coalesce(sum(places), 0) as everywhere, coalesce(sum(places) filter (where id = $7), 0) as here
       from batch_export_workers where lane = $5 and alive_until > ${NOW}),
     taken as (
       select count(*) as everywhere, count(*) filter (where worker = $7) as here
       from batch_export_places
       where lane = $5 and leased_until is not null and (project_id, id) <> ($1::int, $2::uuid)),
     held as (insert into batch_export_places as place
       (project_id, id, batch_export_id, kind, lane, workflow_id, attempts, fence, worker, leased_until)
     select $1::int, $2::uuid, $3::uuid, $4, $5, $6, 1, ${NEXT_FENCE}, $7::uuid, ${within('$8')}
     from room, taken
     where taken.everywhere < room.everywhere and taken.here < room.here
       and ($4 <> 'run' or ${openRun('$1::int', '$2::uuid')})
       and (exists (select from batch_export_places
           where project_id = $1::int and id = $2::uuid and lane = $5 and leased_until > ${NOW})
         or not exists (select from batch_export_places
           where lane = $5 and waiting_since is not null and leased_until is null
             and (project_id, id) <> ($1::int, $2::uuid)))
     on conflict (project_id, id) do update set lane = excluded.lane, workflow_id = excluded.workflow_id,
       attempts = place.attempts + 1, fence = excluded.fence, worker = excluded.worker,
       leased_until = excluded.leased_until, waiting_since = null, queued_at = null
     returning *),
     ${TURN_OF('held')}
     select fence, attempts from held`,
    [projectId, id, exportId, kind, lane, workflowId, worker, lease],
  );
  return rows[0];
}

/**
 * Puts the caller into the queue, where it may stand already. What an earlier attempt at the same work has is kept for
 * it. Returns since when it waits. Undefined: the run has ended.
 */
async function enqueue(
  client: Transaction,
  { projectId, id, exportId, kind, lane, workflowId }: Claim,
  { reservation, ask }: PlaceTimes,
): Promise<string | undefined> {
  const { rows } = await client.query(
    `insert into batch_export_places as place
       (project_id, id, batch_export_id, kind, lane, workflow_id, fence, waiting_since, queued_at, asking_until)
     select $1::int, $2::uuid, $3::uuid, $4, $5, $6, ${NEXT_FENCE}, ${NOW}, ${NOW}, ${within('$8')}
     where $4 <> 'run' or ${openRun('$1::int', '$2::uuid')}
     on conflict (project_id, id) do update set lane = excluded.lane, workflow_id = excluded.workflow_id,
       fence = excluded.fence, worker = null,
       leased_until = case when place.leased_until > ${NOW} and place.lane = excluded.lane then ${within('$7')} end,
       waiting_since = coalesce(place.waiting_since, excluded.waiting_since),
       queued_at = coalesce(place.queued_at, excluded.queued_at), asking_until = excluded.asking_until
     returning waiting_since`,
    [projectId, id, exportId, kind, lane, workflowId, reservation, ask],
  );
  return rows[0]?.waiting_since;
}

/**
 * Takes the place that is kept for the caller, if this worker has one free. Of the places that are given away a second
 * time, an export that fails or is not proven takes one only if no worker has another.
 */
async function takeKept(
  client: Transaction,
  { projectId, id, lane }: Claim,
  worker: string,
  { lease }: PlaceTimes,
): Promise<{ kept: boolean; held?: { fence: number; attempts: number } }> {
  const { rows } = await client.query(
    `with place as (
       select worker, project_id = $1 and id = $2 as own,
         f.project_id is not null or not ${isProven('p.project_id', 'p.batch_export_id')} as is_doubtful
       from batch_export_places p left join (${FAILING}) f using (project_id, batch_export_id)
       where lane = $3 and (worker is not null or (project_id = $1 and id = $2))),
     taken as (
       select count(worker) as everywhere, count(*) filter (where worker = $4::uuid) as here,
         count(*) filter (where is_doubtful and (worker = $4::uuid or own)) as doubtful,
         bool_or(is_doubtful) filter (where own) as is_doubtful
       from place),
     room as (
       select sum(places) as everywhere, sum(places) filter (where id = $4::uuid) as here,
         sum(${SPARE}) filter (where id = $4::uuid) as spare
       from batch_export_workers where lane = $3 and alive_until > ${NOW}),
     held as (
       update batch_export_places set worker = $4::uuid, fence = ${NEXT_FENCE}, leased_until = ${within('$5')},
         attempts = attempts + 1, waiting_since = null, queued_at = null
       from taken, room
       where project_id = $1 and id = $2 and leased_until is not null
         and taken.here < room.here + case
           when taken.is_doubtful and taken.everywhere < room.everywhere then 0
           else least(taken.doubtful, room.spare) end
       returning fence, attempts)
     select leased_until is not null as kept, held.fence, held.attempts
     from batch_export_places left join held on true where project_id = $1 and id = $2`,
    [projectId, id, lane, worker, lease],
  );
  const [{ kept, fence, attempts }] = rows as [{ kept: boolean; fence: number | null; attempts: number }];
  return fence === null ? { kept } : { kept, held: { fence, attempts } };
}

/** Lists for which of these, who wait, a place is kept. */
export async function listKept(queryable: Queryable, ids: readonly string[]): Promise<string[]> {
  const { rows } = await queryable.query(
    'select id from batch_export_places where id = any($1) and worker is null and leased_until is not null',
    [ids],
  );
  return rows.map((row) => row.id);
}

/** Ends the asking of an activity. From now on, the workflow is told. True: a place is kept for it already. */
export async function stopAsking(queryable: Queryable, { projectId, id }: PlaceKey): Promise<boolean> {
  const { rows } = await queryable.query(
    `update batch_export_places set asking_until = null where project_id = $1 and id = $2
     returning worker is null and leased_until is not null as kept`,
    [projectId, id],
  );
  return rows[0]?.kept ?? false;
}

/**
 * Says whether an attempt that has a place may keep it. If the attempt `stands`, because nothing moves, its export counts
 * as one that does not get on until the work is over.
 */
export async function renewPlace(
  queryable: Queryable,
  { projectId, id }: PlaceKey,
  { fence, lease }: Pick<Place, 'fence' | 'lease'>,
  stands = false,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_export_places set leased_until = ${within('$4')}, failed = failed or $5
     where project_id = $1 and id = $2 and fence = $3`,
    [projectId, id, fence, lease, stands],
  );
  return rowCount === 1;
}

/** How an attempt ended. */
export interface Ending {
  /** True if no further attempt follows. */
  over: boolean;
  /** Undefined: it was told to stop, which says nothing about its export. */
  completed?: boolean;
}

/**
 * Gives a place back at the end of an attempt. If the work is over, or its run has ended, nothing of it stays. Returns
 * who gets the place.
 */
export async function releasePlace(
  pool: Pool,
  { projectId, id, lane }: Pick<Claim, 'projectId' | 'id' | 'lane'>,
  fence: number,
  { over, completed }: Ending,
  times: PlaceTimes,
): Promise<Called[]> {
  return locked(pool, lane, async (client) => {
    const { rows } = await client.query(
      `with gone as (
         delete from batch_export_places p where project_id = $1 and id = $2 and fence = $3
           and ($4 or (kind = 'run' and not ${openRun('p.project_id', 'p.id')}))
         returning batch_export_id),
       stays as (
         update batch_export_places p set worker = null, leased_until = null, fence = ${NEXT_FENCE},
           failed = failed or coalesce(not $5::boolean, false)
         where project_id = $1 and id = $2 and fence = $3
           and not ($4 or (kind = 'run' and not ${openRun('p.project_id', 'p.id')}))
         returning batch_export_id),
       turn as (
         update batch_export_turns set proven = $5
         where project_id = $1 and lane = $6 and $5::boolean is not null
           and batch_export_id in (select batch_export_id from gone union all select batch_export_id from stays))
       select exists (select from batch_export_places where lane = $6 and waiting_since is not null) as wanted`,
      [projectId, id, fence, over, completed ?? null, lane],
    );
    return rows[0].wanted ? giveFree(client, lane, times) : [];
  });
}
