// Who has a place of a worker, and who waits for one. A place is a lease: it ends by itself unless the attempt that has
// it renews it. All statements that give places away run under one lock for each lane.
import { type Pool, type Queryable, type Transaction, transaction } from '../../db/pool.ts';
import type { ExportKey } from './batch-exports.ts';
import { LOCK_KINDS } from './locks.ts';

/** Schedules and "run now" use one lane, backfills and verifications the other. Each has places of its own. */
export const LANES = ['exports', 'backfills'] as const;
export type Lane = (typeof LANES)[number];

export interface PlaceKey {
  projectId: number;
  /** The id of the run or, of a verification, that of its workflow's run. */
  id: string;
}

/** Who asks for a place. */
export interface Claim extends PlaceKey {
  exportId: string;
  kind: 'run' | 'verification';
  lane: Lane;
  /** The workflow that is told when a place is free. */
  workflowId: string;
}

/** A place that an attempt has. */
export interface Place {
  fence: number;
  /** Counts the attempts at the work, from 1, however often its activity was scheduled anew. */
  attempts: number;
  /** For how many milliseconds each renewal keeps the place. */
  lease: number;
}

/** Somebody for whom a place is kept. */
export interface Called {
  project_id: number;
  id: string;
  /** The workflow that has to be told, unless the activity still asks by itself. */
  workflow_id: string;
  asks: boolean;
}

/** How long things about places last, in milliseconds. */
export interface PlaceTimes {
  /** How long an attempt keeps its place without renewing it. */
  lease: number;
  /** How long a place is kept for somebody who was told. */
  reservation: number;
  /** How long an export that fails stands behind the others of equal right. */
  setback: number;
  /** How long an activity itself waits for a place before its workflow does. */
  ask: number;
}

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

const NEXT_FENCE = "nextval('batch_export_fences')";
const NOW = 'clock_timestamp()';
const within = (parameter: string) => `${NOW} + ${parameter} * interval '1 millisecond'`;
const runOf = (project: string, id: string) => `exists (
  select from batch_export_runs r
  where r.project_id = ${project} and r.id = ${id} and r.status in ('Starting', 'Running'))`;

/** Writes down that exports got a place. */
const TURN_OF = (given: string) => `turn as (
  insert into batch_export_turns (project_id, lane, batch_export_id, given_at)
  select project_id, lane, batch_export_id, ${NOW} from ${given}
  on conflict (project_id, lane, batch_export_id) do update set given_at = excluded.given_at)`;

/** How long a process that stands still may hold the lock, in milliseconds. Everybody else waits for it. */
const LONGEST_PAUSE = 5_000;

/** Does work while nobody else gives places of the lane away. */
function locked<T>(pool: Pool, lane: Lane, work: (client: Transaction) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await client.query(
      `select set_config('idle_in_transaction_session_timeout', $3::text, true), pg_advisory_xact_lock($1, $2)`,
      [LOCK_KINDS.places, LANES.indexOf(lane), LONGEST_PAUSE],
    );
    return work(client);
  });
}

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
       and ($4 <> 'run' or ${runOf('$1::int', '$2::uuid')})
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
     where $4 <> 'run' or ${runOf('$1::int', '$2::uuid')}
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

/** Takes the place that is kept for the caller, if this worker has one free. */
async function takeKept(
  client: Transaction,
  { projectId, id, lane }: Claim,
  worker: string,
  { lease }: PlaceTimes,
): Promise<{ kept: boolean; held?: { fence: number; attempts: number } }> {
  const { rows } = await client.query(
    `with held as (
       update batch_export_places set worker = $4::uuid, fence = ${NEXT_FENCE}, leased_until = ${within('$5')},
         attempts = attempts + 1, waiting_since = null, queued_at = null
       where project_id = $1 and id = $2 and leased_until is not null
         and (select count(*) from batch_export_places where lane = $3 and worker = $4::uuid)
           < (select places from batch_export_workers where id = $4::uuid and lane = $3)
       returning fence, attempts)
     select leased_until is not null as kept, held.fence, held.attempts
     from batch_export_places left join held on true where project_id = $1 and id = $2`,
    [projectId, id, lane, worker, lease],
  );
  const [{ kept, fence, attempts }] = rows as [{ kept: boolean; fence: number | null; attempts: number }];
  return fence === null ? { kept } : { kept, held: { fence, attempts } };
}

/** How many places are given away at once. The next caller continues. */
const MOST_GIVEN = 100;

/**
 * Frees what nobody renewed, and keeps every free place for the next one in the queue. If workers have gone, more places
 * are taken than there are: then no place is kept for somebody who does not work yet.
 */
async function giveFree(client: Transaction, lane: Lane, times: PlaceTimes): Promise<Called[]> {
  await client.query(
    `update batch_export_places set leased_until = null, worker = null, fence = ${NEXT_FENCE},
       queued_at = case when waiting_since is not null then ${NOW} end
     where lane = $1 and leased_until <= ${NOW}`,
    [lane],
  );
  await client.query(
    `update batch_export_places set leased_until = null where (project_id, id) in (
       select project_id, id from batch_export_places
       where lane = $1 and leased_until is not null and worker is null order by queued_at desc
       limit greatest(0, (select count(*) from batch_export_places where lane = $1 and leased_until is not null)
         - (select coalesce(sum(places), 0) from batch_export_workers where lane = $1 and alive_until > ${NOW})))`,
    [lane],
  );
  const given: Called[] = [];
  while (given.length < MOST_GIVEN) {
    const next = await giveNext(client, lane, times);
    if (!next) break;
    given.push(next);
  }
  return given;
}

/**
 * Keeps a free place for the next one in the queue: whose project has the fewest places, then whose export does not
 * fail, then whose project got one longest ago; of a project, whose export has the fewest places, then got one longest
 * ago; then who has waited longest. An export that fails is set back for a time only, so that it gets its turn.
 */
async function giveNext(
  client: Transaction,
  lane: Lane,
  { reservation, setback }: PlaceTimes,
): Promise<Called | undefined> {
  const { rows } = await client.query(
    `with taken as (
       select project_id, batch_export_id, count(*) as places
       from batch_export_places where lane = $1 and leased_until is not null group by 1, 2),
     of_project as (select project_id, sum(places) as places from taken group by 1),
     turns as (select * from batch_export_turns where lane = $1),
     turns_of_project as (select project_id, max(given_at) as given_at from turns group by 1),
     failing as (select distinct project_id, batch_export_id from batch_export_places where failed),
     next as (
       select project_id, w.id from batch_export_places w
       left join of_project p using (project_id)
       left join taken e using (project_id, batch_export_id)
       left join failing f using (project_id, batch_export_id)
       left join turns_of_project tp using (project_id)
       left join turns t using (project_id, batch_export_id)
       where w.lane = $1 and w.waiting_since is not null and w.leased_until is null
         and (select coalesce(sum(places), 0) from taken)
           < (select coalesce(sum(places), 0) from batch_export_workers where lane = $1 and alive_until > ${NOW})
       order by coalesce(p.places, 0),
         f.project_id is not null and w.waiting_since > ${NOW} - $3 * interval '1 millisecond',
         tp.given_at nulls first, coalesce(e.places, 0), t.given_at nulls first, w.queued_at, w.id
       limit 1),
     given as (
       update batch_export_places w set leased_until = ${within('$2')}
       from next where w.project_id = next.project_id and w.id = next.id returning w.*),
     ${TURN_OF('given')}
     select project_id, id, workflow_id, coalesce(asking_until > ${NOW}, false) as asks from given`,
    [lane, reservation, setback],
  );
  return rows[0];
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

/** Says whether an attempt that has a place may keep it. */
export async function renewPlace(
  queryable: Queryable,
  { projectId, id }: PlaceKey,
  { fence, lease }: Pick<Place, 'fence' | 'lease'>,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update batch_export_places set leased_until = ${within('$4')}
     where project_id = $1 and id = $2 and fence = $3`,
    [projectId, id, fence, lease],
  );
  return rowCount === 1;
}

/**
 * Gives a place back at the end of an attempt. If the work is `over`, or its run has ended, nothing of it stays. Returns
 * who gets the place.
 */
export async function releasePlace(
  pool: Pool,
  { projectId, id, lane }: Pick<Claim, 'projectId' | 'id' | 'lane'>,
  fence: number,
  { over, failed }: { over: boolean; failed: boolean },
  times: PlaceTimes,
): Promise<Called[]> {
  return locked(pool, lane, async (client) => {
    const { rows } = await client.query(
      `with gone as (
         delete from batch_export_places p where project_id = $1 and id = $2 and fence = $3
           and ($4 or (kind = 'run' and not ${runOf('p.project_id', 'p.id')}))
         returning 1),
       stays as (
         update batch_export_places p set worker = null, leased_until = null, fence = ${NEXT_FENCE}, failed = failed or $5
         where project_id = $1 and id = $2 and fence = $3
           and not ($4 or (kind = 'run' and not ${runOf('p.project_id', 'p.id')})))
       select exists (select from batch_export_places where lane = $6 and waiting_since is not null) as wanted`,
      [projectId, id, fence, over, failed, lane],
    );
    return rows[0].wanted ? giveFree(client, lane, times) : [];
  });
}

/** Says that a worker lives, and how many places it has. Returns whether anybody waits for one. */
export async function announceWorker(
  queryable: Queryable,
  worker: string,
  places: Readonly<Record<Lane, number>>,
  milliseconds: number,
): Promise<boolean> {
  const { rows } = await queryable.query(
    `with announced as (
       insert into batch_export_workers (id, lane, places, alive_until)
       select $1, one.lane, one.places, ${within('$4')} from unnest($2::text[], $3::int[]) as one (lane, places)
       on conflict (id, lane) do update set places = excluded.places, alive_until = excluded.alive_until)
     select exists (select from batch_export_places where waiting_since is not null) as wanted`,
    [worker, LANES, LANES.map((lane) => places[lane]), milliseconds],
  );
  return rows[0].wanted;
}

/** Says that a worker has stopped. */
export async function withdrawWorker(queryable: Queryable, worker: string): Promise<void> {
  await queryable.query('delete from batch_export_workers where id = $1', [worker]);
}

/**
 * Keeps every free place of a lane for somebody. Returns whom to tell: those, and the ones who were told more than
 * `again` milliseconds ago and have not come.
 */
export async function callWaiting(
  pool: Pool,
  lane: Lane,
  times: PlaceTimes,
  again: number,
): Promise<Called[]> {
  return locked(pool, lane, async (client) => {
    const given = await giveFree(client, lane, times);
    const { rows } = await client.query(
      `select project_id, id, workflow_id, false as asks from batch_export_places
       where lane = $1 and leased_until <= ${within('$2')} and worker is null and not coalesce(asking_until > ${NOW}, false)`,
      [lane, times.reservation - again],
    );
    return [...given, ...rows];
  });
}

/**
 * Forgets runs that have ended while they had no place, workers that are gone, and turns of long ago. Returns how many
 * runs.
 */
export async function forgetEnded(queryable: Queryable, limit: number): Promise<number> {
  await queryable.query(`delete from batch_export_workers where alive_until < ${NOW} - interval '1 hour'`);
  await queryable.query(`delete from batch_export_turns where given_at < ${NOW} - interval '1 day'`);
  const { rowCount } = await queryable.query(
    `delete from batch_export_places where (project_id, id) in (
       select project_id, id from batch_export_places p
       where kind = 'run' and worker is null and not ${runOf('p.project_id', 'p.id')} limit $1) and worker is null`,
    [limit],
  );
  return rowCount ?? 0;
}

/** A verification that has no place. */
export interface IdleVerification extends PlaceKey {
  workflowId: string;
}

/** Lists verifications that wait for a place or for their next attempt. */
export async function listIdleVerifications(
  queryable: Queryable,
  limit: number,
): Promise<IdleVerification[]> {
  const { rows } = await queryable.query(
    `select project_id as "projectId", id, workflow_id as "workflowId" from batch_export_places
     where kind = 'verification' and worker is null order by id limit $1`,
    [limit],
  );
  return rows;
}

/** Forgets a verification whose workflow is gone. */
export async function forgetVerification(
  queryable: Queryable,
  { projectId, id }: PlaceKey,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `delete from batch_export_places
     where project_id = $1 and id = $2 and kind = 'verification' and worker is null`,
    [projectId, id],
  );
  return rowCount === 1;
}

/** How many runs of an export wait for a place, and since when. */
export interface ExportWait {
  runs: number;
  since: string;
}

/** Finds how long the runs of these exports wait, by export id. An export of which none waits is left out. */
export async function findWaits(
  queryable: Queryable,
  exports: readonly ExportKey[],
): Promise<Map<string, ExportWait>> {
  const { rows } = await queryable.query(
    `select batch_export_id, count(*)::int as runs, min(waiting_since) as since
     from batch_export_places
     where kind = 'run' and waiting_since is not null
       and (project_id, batch_export_id) in (select * from unnest($1::int[], $2::uuid[]))
     group by 1`,
    [exports.map((one) => one.projectId), exports.map((one) => one.exportId)],
  );
  return new Map(rows.map(({ batch_export_id: id, ...wait }) => [id, wait]));
}

/** The places of one lane, over all workers. */
export interface LaneState {
  lane: Lane;
  places: number;
  taken: number;
  waiting: number;
  longest_wait_seconds: number;
}

export async function sumPlaces(queryable: Queryable): Promise<LaneState[]> {
  const { rows } = await queryable.query(
    `select lane,
       (select coalesce(sum(places), 0)::int from batch_export_workers w
        where w.lane = one.lane and alive_until > ${NOW}) as places,
       count(p.lane) filter (where leased_until > ${NOW})::int as taken,
       count(p.lane) filter (where waiting_since is not null)::int as waiting,
       coalesce(extract(epoch from ${NOW} - min(waiting_since)), 0)::float8 as longest_wait_seconds
     from unnest($1::text[]) as one (lane) left join batch_export_places p using (lane)
     group by lane order by lane desc`,
    [LANES],
  );
  return rows;
}
