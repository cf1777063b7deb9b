import type { Queryable } from '../../db/pool.ts';
import { prefixPattern } from '../../db/reading.ts';
import type { FunctionKey } from './functions.ts';
import type { ReplayRow } from './replays.ts';

/** A condition on an invocation `i`: the text, as a pattern, is in its error or in what was sent and answered. */
export const mentions = (pattern: string): string => `(i.error ilike ${pattern} or exists (
   select from json_array_elements(i.attempts) a where a->>'url' ilike ${pattern} or a->>'error' ilike ${pattern}
     or a->>'request_body' ilike ${pattern} or a->>'response_body' ilike ${pattern}))`;

/** What contains a text. */
export const patternOf = (text: string): string => `%${prefixPattern(text)}`;

/** Those that a rerun takes, of invocations `i`. What was run again, or needs nothing more, is left out. */
const SELECTED = `i.project_id = $1 and i.function_id = $2 and i.status = any($3) and i.rerun_at is null
   and i.dismissed_at is null and i.finished_at >= $4 and i.finished_at < $5 and i.finished_at <= $6`;

const selectedBy = (row: ReplayRow, horizon: string): unknown[] => [
  ...[row.project_id, row.function_id, [row.selection?.status ?? 'failed'].flat()],
  ...[row.after ?? '-infinity', row.before ?? 'infinity', horizon],
];

/** Counts the invocations that a rerun looks at. */
export async function countEnded(queryable: Queryable, row: ReplayRow, horizon: string): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*) from function_invocations i where ${SELECTED}`,
    selectedBy(row, horizon),
  );
  return rows[0].count;
}

/** An invocation that a rerun looks at. */
export interface EndedPosition {
  id: string;
  finished_at: string;
  /** Whether it mentions what is searched for. */
  wanted: boolean;
}

/** Lists the next invocations of a rerun, in the order in which they ended. */
export async function nextEnded(
  queryable: Queryable,
  row: ReplayRow,
  limit: number,
): Promise<EndedPosition[]> {
  const { search } = row.selection ?? { search: null };
  const values = selectedBy(row, row.horizon as string);
  const given = (value: unknown) => `$${values.push(value)}`;
  const after =
    row.last_timestamp === null
      ? ''
      : `and (i.finished_at, i.id) > (${given(row.last_timestamp)}::timestamptz, ${given(row.last_id)}::uuid)`;
  const { rows } = await queryable.query(
    `select i.id, i.finished_at, ${search === null ? 'true' : mentions(given(patternOf(search)))} as wanted
     from (select * from function_invocations i where ${SELECTED} ${after}
       order by i.finished_at, i.id limit ${given(limit)}) i
     order by i.finished_at, i.id`,
    values,
  );
  return rows;
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
