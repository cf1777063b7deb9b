import { containsPattern } from '../../db/like.ts';
import type { Queryable } from '../../db/pool.ts';
import type { FunctionKey } from './functions.ts';
import type { ReplayRow } from './replays.ts';

/**
 * A condition on an invocation `i`: the text is in its error or in what was sent and answered. What does not have it, as JSON
 * writes it, need not be taken apart.
 */
export function mentions(text: string, given: (value: unknown) => string): string {
  const pattern = given(containsPattern(text));
  const written = given(containsPattern(JSON.stringify(text).slice(1, -1)));
  return `(i.error ilike ${pattern} or i.attempts::text ilike ${written} and exists (
    select from json_array_elements(i.attempts) a where a->>'url' ilike ${pattern} or a->>'error' ilike ${pattern}
      or a->>'request_body' ilike ${pattern} or a->>'response_body' ilike ${pattern}))`;
}

/** Invocations `i` among which a rerun looks. */
const IN_RANGE = `i.project_id = $1 and i.function_id = $2
   and i.finished_at >= $3 and i.finished_at < $4 and i.finished_at <= $5`;
/** Those that it takes. What was run again, or needs nothing more, is left out. */
const selected = (statuses: string) =>
  `i.status = any(${statuses}) and i.rerun_at is null and i.dismissed_at is null`;

const rangeOf = (row: ReplayRow, horizon: string): unknown[] => [
  ...[row.project_id, row.function_id, row.after ?? '-infinity', row.before ?? 'infinity', horizon],
];
const statusesOf = (row: ReplayRow): string[] => [row.selection?.status ?? 'failed'].flat();

/** Counts the invocations that a rerun looks at. */
export async function countEnded(queryable: Queryable, row: ReplayRow, horizon: string): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*) from function_invocations i where ${IN_RANGE} and ${selected('$6')}`,
    [...rangeOf(row, horizon), statusesOf(row)],
  );
  return rows[0].count;
}

/** A place among invocations that have ended. */
export interface EndedPosition {
  id: string;
  finished_at: string;
}

/** An invocation that a rerun looks at. `wanted`: whether it mentions what is searched for. */
export interface Ended extends EndedPosition {
  wanted: boolean;
}

/** How many invocations one page looks through. */
const LOOKED_THROUGH = 20_000;

/**
 * Lists the next invocations of a rerun, in the order in which they ended. `last`: all up to it are listed. Null: those up to
 * the end are.
 */
export async function nextEnded(
  queryable: Queryable,
  row: ReplayRow,
  limit: number,
): Promise<{ ended: Ended[]; last: EndedPosition | null }> {
  const { search } = row.selection ?? { search: null };
  const values = rangeOf(row, row.horizon as string);
  const given = (value: unknown) => `$${values.push(value)}`;
  const placed = (sign: string, { finished_at, id }: EndedPosition) =>
    `and (i.finished_at, i.id) ${sign} (${given(finished_at)}::timestamptz, ${given(id)}::uuid)`;
  const inOrder = 'order by i.finished_at, i.id';
  const after =
    row.last_timestamp === null
      ? ''
      : placed('>', { finished_at: row.last_timestamp, id: row.last_id as string });
  // What has other statuses is passed over, and there may be very many of them.
  const { rows: places } = await queryable.query(
    `select i.id, i.finished_at from function_invocations i where ${IN_RANGE} ${after}
     ${inOrder} offset ${LOOKED_THROUGH - 1} limit 1`,
    values,
  );
  const last: EndedPosition | null = places[0] ?? null;
  const until = last ? placed('<=', last) : '';
  const taken = selected(given(statusesOf(row)));
  const wanted = search === null ? 'true' : mentions(search, given);
  const { rows } = await queryable.query(
    `select i.id, i.finished_at, ${wanted} as wanted
     from (select * from function_invocations i where ${IN_RANGE} and ${taken} ${after} ${until}
       ${inOrder} limit ${given(limit)}) i
     ${inOrder}`,
    values,
  );
  return { ended: rows, last: rows.length < limit ? last : rows.at(-1) };
}

export interface Repetition {
  ids: readonly string[];
  /** Null: whatever they came to. */
  statuses: readonly string[] | null;
  /** Null: whenever they ended. */
  window: { after: string; before: string } | null;
  /** Null: each runs in the version in which it ran before. */
  version: number | null;
}

/**
 * Makes new invocations that repeat ended ones, except for those that somebody has run again already. Returns how many.
 */
export async function repeatInvocations(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  { ids, statuses, window, version }: Repetition,
): Promise<number> {
  if (ids.length === 0) return 0;
  const { rowCount } = await queryable.query(
    `with marked as (
       update function_invocations f set rerun_at = clock_timestamp()
       where f.id = any($3::uuid[]) and f.project_id = $1 and f.function_id = $2 and f.rerun_at is null
         and ($4::text[] is null or f.status = any($4))
         and ($6::timestamptz is null or f.finished_at >= $6 and f.finished_at < $7::timestamptz) returning f.*)
     insert into function_queue (id, project_id, function_id, version, mapping, event_uuid, event_timestamp, distinct_id,
       person_id, groups, globals, clock, seed, rerun_of)
     select gen_random_uuid(), m.project_id, m.function_id, coalesce($5::int, m.version), m.mapping,
       m.event_uuid, m.event_timestamp, m.distinct_id, m.person_id, m.groups, m.globals,
       coalesce(m.event_timestamp, m.created_at), floor(random() * 2147483647)::int, m.id
     from marked m order by m.finished_at, m.id`,
    [projectId, functionId, ids, statuses, version, window?.after ?? null, window?.before ?? null],
  );
  return rowCount ?? 0;
}

/** A point in time, and the transaction that writes after it. */
export interface Now {
  instant: string;
  xid: string;
}

/** Returns the time, and a mark for `allWritten`. */
export async function markNow(queryable: Queryable): Promise<Now> {
  const { rows } = await queryable.query(
    'select pg_current_xact_id()::text as xid, clock_timestamp() as instant',
  );
  return rows[0];
}

/** Answers whether every transaction has ended that was writing when the mark was made. */
export async function allWritten(queryable: Queryable, { xid }: Now): Promise<boolean> {
  const { rows } = await queryable.query(
    'select pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8 as over',
    [xid],
  );
  return rows[0].over;
}
