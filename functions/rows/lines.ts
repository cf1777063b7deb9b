// Functions whose invocations run in order: those with the same line, one after the other.
import type { Queryable } from '../../db/pool.ts';
import { CLAIMED, COUNTING_LOST, type QueueRow } from './queue.ts';

interface Key {
  projectId: number;
  functionId: string;
}

const columnsOf = (keys: readonly Key[]) => [
  keys.map(({ projectId }) => projectId),
  keys.map(({ functionId }) => functionId),
];

/** A transaction that enqueues may be open for so long after the time that it gives its invocations. */
const OPEN = '30 seconds';
/** At most so many invocations are looked at by one claim, those that are due longest. */
const LOOKED_AT = 2_000;
/** What waits for its turn is looked at again when it has waited twice as long, and after this time at the latest. */
const SOONEST = '1 second';
const LATEST = '60 seconds';

/** An earlier invocation with the line of `c`. */
const EARLIER = `exists (select from function_queue e where e.project_id = c.project_id and e.function_id = c.function_id
  and e.line = c.line and e.seq < c.seq)`;
const DUE_LONGEST = `select c.* from function_queue c
  where c.project_id = w.project_id and c.function_id = w.function_id and c.due_at <= clock_timestamp()
  order by c.due_at, c.seq limit ${LOOKED_AT}`;

/**
 * Gives each invocation of functions a line: those that were queued lately, or with `isFully` also all others. Call it
 * with the paces of the functions locked.
 */
export async function lineUp(
  queryable: Queryable,
  functions: readonly (Key & { isFully: boolean })[],
): Promise<void> {
  const isFully = functions.map((one) => one.isFully);
  await queryable.query({
    name: 'line-up-invocations',
    text: `update function_queue q set line = q.distinct_id
     from unnest($1::int[], $2::uuid[], $3::boolean[]) as w (project_id, function_id, fully)
     join function_paces p on p.project_id = w.project_id and p.function_id = w.function_id
     cross join lateral (select c.seq from function_queue c
       where c.project_id = w.project_id and c.function_id = w.function_id and c.line is null and c.distinct_id is not null
         and c.due_at >= case when w.fully then '-infinity' else p.lined_until - interval '${OPEN}' end
         and c.due_at <= case when w.fully then 'infinity' else clock_timestamp() end) c
     where q.seq = c.seq`,
    values: [...columnsOf(functions), isFully],
  });
  await queryable.query({
    name: 'store-lined-up',
    text: `update function_paces p set lined_until = statement_timestamp(), lined_for = f.updated_at,
       lined_fully_at = case when w.fully then statement_timestamp() else p.lined_fully_at end
     from unnest($1::int[], $2::uuid[], $3::boolean[]) as w (project_id, function_id, fully)
     join functions f on f.project_id = w.project_id and f.id = w.function_id
     where p.project_id = w.project_id and p.function_id = w.function_id`,
    values: [...columnsOf(functions), isFully],
  });
}

/**
 * Moves what is due but has an earlier one before it out of the way, so that others need not be searched behind it. Whoever
 * ends the earlier one makes it due again. Returns how many were moved, by function.
 */
export async function standBack(queryable: Queryable, keys: readonly Key[]): Promise<Map<string, number>> {
  const { rows } = await queryable.query({
    name: 'stand-back-invocations',
    text: `with moved as (update function_queue q
       set due_at = clock_timestamp() + least(greatest(clock_timestamp() - q.created_at, interval '${SOONEST}'), interval '${LATEST}')
       from (select c.seq from unnest($1::int[], $2::uuid[]) as w (project_id, function_id)
         cross join lateral (${DUE_LONGEST}) c where c.lease is null and c.line is not null and ${EARLIER}) later
       where q.seq = later.seq and q.due_at <= clock_timestamp() and q.lease is null returning q.function_id)
     select function_id, count(*)::int as count from moved group by 1`,
    values: columnsOf(keys),
  });
  return new Map(rows.map((row) => [row.function_id, row.count]));
}

/** Claims like `claim` the first invocation of each line. What has no line so far is left for the next time. */
export async function claimInOrder(
  queryable: Queryable,
  wants: readonly (Key & { count: number })[],
  { lease, seconds }: { lease: string; seconds: number },
): Promise<QueueRow[]> {
  const { rows } = await queryable.query({
    name: 'claim-invocations-in-order',
    text: `update function_queue q set lease = $4, held = true, ${COUNTING_LOST}, due_at = clock_timestamp() + $5 * interval '1 second'
     from (select found.seq, found.lease, found.due_at from unnest($1::int[], $2::uuid[], $3::int[])
         as w (project_id, function_id, count)
       cross join lateral (select c.seq, c.lease, c.due_at from (${DUE_LONGEST}) c
         where c.distinct_id is null or c.line is not null and not ${EARLIER}
         order by c.due_at, c.seq limit w.count) found) due
     where q.seq = due.seq and q.due_at <= clock_timestamp() returning ${CLAIMED}, q.line`,
    values: [...columnsOf(wants), wants.map(({ count }) => count), lease, seconds],
  });
  return rows;
}

/**
 * Makes the next invocation of lines due, unless it has been attempted already and waits for another reason. Call it after
 * the one before it was taken out, in a statement of its own, so that it sees what was moved meanwhile.
 */
export async function wakeNext(
  queryable: Queryable,
  lines: readonly (Key & { line: string })[],
): Promise<void> {
  if (lines.length === 0) return;
  await queryable.query({
    name: 'wake-next-invocations',
    text: `update function_queue q set due_at = clock_timestamp()
     from (select distinct next.seq from unnest($1::int[], $2::uuid[], $3::text[]) as w (project_id, function_id, line)
       cross join lateral (select c.seq from function_queue c
         where c.project_id = w.project_id and c.function_id = w.function_id and c.line = w.line
         order by c.seq limit 1) next) first
     where q.seq = first.seq and q.due_at > clock_timestamp() and q.lease is null and q.attempt = 0
       and q.progress is null`,
    values: [...columnsOf(lines), lines.map(({ line }) => line)],
  });
}
