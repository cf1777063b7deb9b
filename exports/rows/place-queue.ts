// Who of those that wait gets the next free place of a worker.
import type { Pool, Transaction } from '../../db/pool.ts';
import {
  type Called,
  FAILING,
  isProven,
  type Lane,
  locked,
  NEXT_FENCE,
  NOW,
  type PlaceTimes,
  SPARE,
  TURN_OF,
  within,
} from './places.ts';

/**
 * What is taken of a lane, and what there is. `spare` of the places are taken by exports that fail or are not proven, and
 * may be given away a second time.
 */
const STATE_OF_LANE = `
  room as (
    select coalesce(sum(places), 0) as places, coalesce(sum(${SPARE}), 0) as most_spare
    from batch_export_workers where lane = $1 and alive_until > ${NOW}),
  failing as (${FAILING}),
  taken as (
    select project_id, batch_export_id, count(*) as places,
      count(*) filter (where f.project_id is not null or not ${isProven('p.project_id', 'p.batch_export_id')}) as doubtful
    from batch_export_places p left join failing f using (project_id, batch_export_id)
    where lane = $1 and leased_until is not null group by 1, 2),
  lane as (
    select room.places, coalesce(sum(taken.places), 0) as taken,
      least(coalesce(sum(taken.doubtful), 0), room.most_spare) as spare
    from room left join taken on true group by room.places, room.most_spare)`;

/** How many places are given away at once. The next caller continues. */
const MOST_GIVEN = 100;

/**
 * Frees what nobody renewed, and keeps every free place for the next one in the queue. If workers have gone, more places
 * are taken than there are: then no place is kept for somebody who does not work yet.
 */
export async function giveFree(client: Transaction, lane: Lane, times: PlaceTimes): Promise<Called[]> {
  await client.query(
    `update batch_export_places set leased_until = null, worker = null, fence = ${NEXT_FENCE},
       queued_at = case when waiting_since is not null then ${NOW} end
     where lane = $1 and leased_until <= ${NOW}`,
    [lane],
  );
  await client.query(
    `with ${STATE_OF_LANE}
     update batch_export_places set leased_until = null where (project_id, id) in (
       select project_id, id from batch_export_places
       where lane = $1 and leased_until is not null and worker is null order by queued_at desc
       limit greatest(0, (select taken - spare - places from lane)))`,
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
 * Keeps a free place for the next one in the queue: whose project has the fewest places, then whose export gets on, then
 * whose project got one longest ago; of a project, whose export has the fewest places, then got one longest ago; then who
 * has waited longest. An export that does not get on is set back for a time only, so that it gets its turn.
 *
 * If all places are taken, there is still one as long as exports that fail or are not proven hold many of them. It is for
 * proven exports.
 */
async function giveNext(
  client: Transaction,
  lane: Lane,
  { reservation, setback }: PlaceTimes,
): Promise<Called | undefined> {
  const { rows } = await client.query(
    `with ${STATE_OF_LANE},
     of_project as (select project_id, sum(places) as places from taken group by 1),
     turns as (select * from batch_export_turns where lane = $1),
     turns_of_project as (select project_id, max(given_at) as given_at from turns group by 1),
     next as (
       select project_id, w.id from lane, batch_export_places w
       left join of_project p using (project_id)
       left join taken e using (project_id, batch_export_id)
       left join failing f using (project_id, batch_export_id)
       left join turns_of_project tp using (project_id)
       left join turns t using (project_id, batch_export_id)
       where w.lane = $1 and w.waiting_since is not null and w.leased_until is null
         and lane.taken < lane.places
           + case when f.project_id is null and ${isProven('w.project_id', 'w.batch_export_id')} then lane.spare else 0 end
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
