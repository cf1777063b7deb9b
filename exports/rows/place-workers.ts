// The workers that have places, what is forgotten of them, and what operators see of who waits.
import type { Queryable } from '../../db/pool.ts';
import type { ExportKey } from './batch-exports.ts';
import { LANES, type Lane, NOW, openRun, type PlaceKey, within } from './places.ts';

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
 * Forgets runs that have ended while they had no place, workers that are gone, and turns of long ago: a weekly export is
 * not new when it comes again. Returns how many runs.
 */
export async function forgetEnded(queryable: Queryable, limit: number): Promise<number> {
  await queryable.query(`delete from batch_export_workers where alive_until < ${NOW} - interval '1 hour'`);
  await queryable.query(`delete from batch_export_turns where given_at < ${NOW} - interval '15 days'`);
  const { rowCount } = await queryable.query(
    `delete from batch_export_places where (project_id, id) in (
       select project_id, id from batch_export_places p
       where kind = 'run' and worker is null and not ${openRun('p.project_id', 'p.id')} limit $1) and worker is null`,
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
