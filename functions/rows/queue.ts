import { int4Array, NO_TEXT, textArray, timestampArray, uuidArray } from '../../db/binary-arrays.ts';
import type { Queryable } from '../../db/pool.ts';
import type { Progress } from '../rules/progress.ts';
import { addingCounts, type Count, countsGiven, countValues } from './counts.ts';
import { isForgotten } from './forgotten-persons.ts';

/** An invocation of a function for a stored event. */
export interface NewInvocation {
  id: string;
  projectId: number;
  functionId: string;
  version: number;
  mapping: number | null;
  uuid: string;
  timestamp: string;
  distinctId: string;
  personId: string | null;
  /** JSON. */
  groups: string | null;
  /** Milliseconds. */
  clock: number;
  seed: number;
}

const NO_MAPPING = -1;

const COLUMNS = `id, project_id, function_id, version, mapping, event_uuid, event_timestamp, distinct_id, person_id, groups,
  clock, seed`;
const VALUES = `id, project_id, function_id, version, nullif(mapping, ${NO_MAPPING}), event_uuid, event_timestamp::timestamptz,
  distinct_id, person_id, nullif(groups, '${NO_TEXT}')::json, clock, seed`;
const GIVEN = `$1::uuid[], $2::int[], $3::uuid[], $4::int[], $5::int[], $6::uuid[], $7::text[], $8::text[],
  $9::uuid[], $10::text[], $11::timestamptz[], $12::int[]`;

const given = (invocations: readonly NewInvocation[]): unknown[] => [
  uuidArray(invocations.map((one) => one.id)),
  int4Array(invocations.map((one) => one.projectId)),
  uuidArray(invocations.map((one) => one.functionId)),
  int4Array(invocations.map((one) => one.version)),
  int4Array(invocations.map((one) => one.mapping ?? NO_MAPPING)),
  uuidArray(invocations.map((one) => one.uuid)),
  textArray(invocations.map((one) => one.timestamp)),
  textArray(invocations.map((one) => one.distinctId)),
  uuidArray(invocations.map((one) => one.personId ?? undefined)),
  textArray(invocations.map((one) => one.groups ?? NO_TEXT)),
  timestampArray(invocations.map((one) => one.clock)),
  int4Array(invocations.map((one) => one.seed)),
];

export async function enqueue(queryable: Queryable, invocations: readonly NewInvocation[]): Promise<void> {
  if (invocations.length === 0) return;
  await queryable.query({
    name: 'enqueue-invocations',
    text: `insert into function_queue (${COLUMNS}) select ${VALUES} from unnest(${GIVEN}) as i (${COLUMNS})`,
    values: given(invocations),
  });
}

/** An invocation that is to be attempted now. */
export interface QueueRow {
  seq: number;
  id: string;
  project_id: number;
  function_id: string;
  version: number;
  mapping: number | null;
  event_uuid: string | null;
  event_timestamp: string | null;
  distinct_id: string | null;
  person_id: string | null;
  groups: Record<string, unknown>[] | null;
  globals: Record<string, unknown> | null;
  clock: string;
  seed: number;
  created_at: string;
  attempt: number;
  progress: Progress | null;
  /** How many workers were lost while they had it. */
  lost: number;
  /** The lease that had ended without a result. Null: there was none. */
  was_lease: string | null;
  /** When it was due. */
  was_due: string;
  /** Those with the same line run one after the other. Absent: the order does not matter. */
  line?: string | null;
  /** Those that are delivered together have the same. Absent: it goes alone. */
  batch?: string | null;
  /** Of one that stands for its batch: the others. */
  others?: readonly QueueRow[];
}

const CLAIMED_COLUMNS = [
  ...[
    'seq',
    'id',
    'project_id',
    'function_id',
    'version',
    'mapping',
    'event_uuid',
    'event_timestamp',
    'distinct_id',
  ],
  ...['person_id', 'groups', 'globals', 'clock', 'seed', 'created_at', 'attempt', 'progress', 'lost'],
];

/** What a claim sets of rows `q`, of which `due` knows the lease that had ended. */
export const COUNTING_LOST = 'lost = q.lost + (due.lease is not null)::int';

/** What a claim returns of rows `q`. */
export const CLAIMED = `${CLAIMED_COLUMNS.map((name) => `q.${name}`).join(', ')},
  due.lease as was_lease, due.due_at as was_due`;

/** How many invocations of a function to claim. */
export interface Want {
  projectId: number;
  functionId: string;
  count: number;
  /** In ISO 8601. What was due before is known to be taken. */
  since: string;
}

/**
 * Claims invocations that are due, the longest due first. Until `seconds` have passed, they belong to `lease`; then they
 * count as lost, and anybody may claim them. What is due is found once: a plan for the table as it was when it was empty
 * would find it again for each row. With `isHeld` they count as in progress; then the function must be locked.
 */
export async function claim(
  queryable: Queryable,
  wants: readonly Want[],
  { lease, seconds, isHeld = false }: { lease: string; seconds: number; isHeld?: boolean },
): Promise<QueueRow[]> {
  const { rows } = await queryable.query({
    name: isHeld ? 'claim-held-invocations' : 'claim-invocations',
    text: `with due as materialized (
       select found.seq, found.lease, found.due_at from unnest($1::int[], $2::uuid[], $3::int[], $4::timestamptz[])
         as w (project_id, function_id, count, since)
       cross join lateral (select c.seq, c.lease, c.due_at from function_queue c
         where c.project_id = w.project_id and c.function_id = w.function_id
           and c.due_at >= w.since and c.due_at <= clock_timestamp()
         order by c.due_at, c.seq limit w.count for update skip locked) found)
     update function_queue q set lease = $5,${isHeld ? ' held = true,' : ''} ${COUNTING_LOST}, due_at = clock_timestamp() + $6 * interval '1 second'
     from due where q.seq = due.seq
     returning ${CLAIMED}`,
    values: [
      wants.map((one) => one.projectId),
      wants.map((one) => one.functionId),
      wants.map((one) => one.count),
      wants.map((one) => one.since),
      lease,
      seconds,
    ],
  });
  return rows.sort((a, b) => a.seq - b.seq);
}

/** A claim of invocations that are not queued yet. */
export interface NewClaim {
  /** The ids of the invocations. */
  ids: ReadonlySet<string>;
  lease: string;
  seconds: number;
}

/** What a turn of the dispatch leads to. */
export interface Dispatched {
  invocations: readonly NewInvocation[];
  claim: NewClaim | undefined;
  counts: readonly Count[];
  /** The batches whose events have been looked at. */
  batches: readonly number[];
}

/**
 * Queues invocations, but for those of functions that keep positions only, which stays so until the transaction ends, and those
 * of persons that were deleted since their events came in. Counts, and deletes batches. It is one statement, because each one
 * waits for the processor when the machine is full. Returns what was claimed, and the functions that keep positions.
 */
export async function queueDispatched(
  queryable: Queryable,
  { invocations, claim, counts, batches }: Dispatched,
): Promise<{ claimed: QueueRow[]; flooded: ReadonlySet<string> }> {
  const none = CLAIMED_COLUMNS.map(() => 'null').join(', ');
  const { rows } = await queryable.query({
    name: 'queue-dispatched-invocations',
    text: `with flooded as materialized (
       select function_id from function_floods where function_id = any($3) for key share),
     done as (delete from function_batches where id = any($16::bigint[])),
     counted as (${addingCounts(countsGiven(17))}),
     queued as (
       insert into function_queue (${COLUMNS}, lease, due_at)
       select ${VALUES}, case is_claimed when 1 then $14::uuid end,
         clock_timestamp() + case is_claimed when 1 then $15::int else 0 end * interval '1 second'
       from unnest(${GIVEN}, $13::int[]) as i (${COLUMNS}, is_claimed)
       where function_id not in (select function_id from flooded)
         and not ${isForgotten({ project: 'i.project_id', person: 'i.person_id', since: 'i.clock' })}
       returning *)
     select ${CLAIMED_COLUMNS.join(', ')}, null::uuid as was_lease, created_at as was_due, null::uuid as flooded
       from queued where lease is not null
     union all select ${none}, null, null, function_id from flooded`,
    values: [
      ...given(invocations),
      int4Array(invocations.map(({ id }) => (claim?.ids.has(id) ? 1 : 0))),
      ...[claim?.lease ?? null, claim?.seconds ?? 0, batches],
      ...countValues(counts),
    ],
  });
  return {
    claimed: rows
      .filter((one) => one.flooded === null)
      .map(({ flooded, ...row }) => row)
      .sort((a, b) => a.seq - b.seq),
    flooded: new Set(rows.flatMap((one) => one.flooded ?? [])),
  };
}

/** A function with waiting invocations. */
export interface Waiting {
  project_id: number;
  function_id: string;
  /** When the first of them is due. */
  due_at: string;
}

/** Before the first function. */
export const NO_FUNCTION = { project_id: 0, function_id: '00000000-0000-0000-0000-000000000000' };

/** Lists the functions after another one that have waiting invocations, by jumping from one to the next. */
export async function listWaiting(
  queryable: Queryable,
  limit: number,
  after: Pick<Waiting, 'project_id' | 'function_id'> = NO_FUNCTION,
): Promise<Waiting[]> {
  const { rows } = await queryable.query({
    name: 'list-waiting-functions',
    text: `with recursive waiting as (
       (select project_id, function_id, due_at from function_queue where (project_id, function_id) > ($2, $3::uuid)
         order by project_id, function_id, due_at limit 1)
       union all
       select next.project_id, next.function_id, next.due_at from waiting w
       cross join lateral (select q.project_id, q.function_id, q.due_at from function_queue q
         where (q.project_id, q.function_id) > (w.project_id, w.function_id)
         order by q.project_id, q.function_id, q.due_at limit 1) next)
     select * from waiting limit $1`,
    values: [limit, after.project_id, after.function_id],
  });
  return rows;
}

/** Lists which of the functions have invocations that are due after a time of theirs, with the first of them. */
export async function listDueAfter(
  queryable: Queryable,
  functions: readonly Omit<Want, 'count'>[],
): Promise<Waiting[]> {
  const { rows } = await queryable.query({
    name: 'list-functions-due-after',
    text: `select first.* from unnest($1::int[], $2::uuid[], $3::timestamptz[]) as w (project_id, function_id, since)
     cross join lateral (select q.project_id, q.function_id, q.due_at from function_queue q
       where q.project_id = w.project_id and q.function_id = w.function_id and q.due_at > w.since
       order by q.due_at limit 1) first`,
    values: [
      functions.map((one) => one.projectId),
      functions.map((one) => one.functionId),
      functions.map((one) => one.since),
    ],
  });
  return rows;
}

/** Gives back all that was claimed of functions with a lease, as it was. */
export async function giveBack(
  queryable: Queryable,
  functions: readonly { projectId: number; functionId: string }[],
  lease: string,
): Promise<void> {
  await queryable.query({
    name: 'give-invocations-back',
    text: `update function_queue q set lease = null, held = false, due_at = clock_timestamp()
     from unnest($1::int[], $2::uuid[]) as w (project_id, function_id)
     where q.project_id = w.project_id and q.function_id = w.function_id and q.due_at > clock_timestamp() and q.lease = $3`,
    values: [
      functions.map(({ projectId }) => projectId),
      functions.map(({ functionId }) => functionId),
      lease,
    ],
  });
}

/** Of leases that were to be made longer: those that still hold, and whether they are longer now. */
export type Extended = ReadonlyMap<number, boolean>;

/**
 * Makes leases longer, by so many seconds from now. What another statement has locked stays as it is: it may be ending just
 * then, or change hands.
 */
export async function extendLeases(
  queryable: Queryable,
  leases: readonly { seq: number; lease: string }[],
  seconds: number,
): Promise<Extended> {
  const { rows } = await queryable.query({
    name: 'extend-invocation-leases',
    text: `with asked as (select * from unnest($1::bigint[], $2::uuid[]) as a (seq, lease)),
       ours as materialized (select q.seq from asked a join function_queue q on q.seq = a.seq and q.lease = a.lease),
       free as materialized (select q.seq from asked a join function_queue q on q.seq = a.seq and q.lease = a.lease
         for update of q skip locked),
       longer as (update function_queue q set due_at = clock_timestamp() + $3 * interval '1 second'
         from free where q.seq = free.seq returning q.seq)
     select ours.seq, longer.seq is not null as is_longer from ours left join longer on longer.seq = ours.seq`,
    values: [leases.map(({ seq }) => seq), leases.map(({ lease }) => lease), seconds],
  });
  return new Map(rows.map((row) => [row.seq, row.is_longer]));
}

/** Stores how far an invocation is, if its lease still holds, and makes the lease longer. */
export async function keepProgress(
  queryable: Queryable,
  { seq, lease, progress, seconds }: { seq: number; lease: string; progress: Progress; seconds: number },
): Promise<boolean> {
  const { rowCount } = await queryable.query({
    name: 'keep-invocation-progress',
    text: `update function_queue set progress = $3, attempt = 0, due_at = clock_timestamp() + $4 * interval '1 second'
     where seq = $1 and lease = $2`,
    values: [seq, lease, JSON.stringify(progress), seconds],
  });
  return rowCount === 1;
}
