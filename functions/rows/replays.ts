import type { Queryable } from '../../db/pool.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import type { Hold, ReplayKind, ReplayStatus } from '../rules/replay.ts';
import type { RerunSelection } from '../rules/rerun.ts';
import type { FunctionKey } from './functions.ts';

/** A replay or a broadcast. */
export interface ReplayRow {
  project_id: number;
  id: string;
  function_id: string;
  kind: ReplayKind;
  dry_run: boolean;
  status: ReplayStatus;
  reason: string | null;
  after: string | null;
  before: string | null;
  horizon: string | null;
  properties: unknown;
  bytecode: Bytecode | null;
  selection: RerunSelection | null;
  /** Of a rerun: which version runs. Null: that of each invocation. */
  version: number | null;
  rate_per_second: number | null;
  page: number;
  last_timestamp: string | null;
  last_id: string | null;
  total: number | null;
  scanned: number;
  matched: number;
  masked: number;
  queued: number;
  filter_errors: number;
  held: Hold | null;
  created_at: string;
  updated_at: string;
  finished_at: string | null;
}

export interface ReplayKey {
  projectId: number;
  replayId: string;
}

const ACTIVE = "status in ('running', 'paused')";

/** Answers whether so many replays of a project are in progress. */
export async function hasActive(queryable: Queryable, projectId: number, atLeast: number): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `select from function_replays where project_id = $1 and ${ACTIVE} offset $2 limit 1`,
    [projectId, atLeast - 1],
  );
  return rowCount === 1;
}

export type NewReplay = Pick<ReplayRow, 'id' | 'kind' | 'dry_run' | 'rate_per_second'> &
  Partial<Pick<ReplayRow, 'after' | 'before' | 'properties' | 'bytecode' | 'selection' | 'version'>>;

/** Begins a replay. Undefined: the function has one in progress. */
export async function insertReplay(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  row: NewReplay,
): Promise<ReplayRow | undefined> {
  const json = (value: unknown) => (value == null ? null : JSON.stringify(value));
  const { rows } = await queryable.query(
    `insert into function_replays (project_id, id, function_id, kind, dry_run, after, before, properties, bytecode,
       selection, version, rate_per_second)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (project_id, function_id, dry_run) where ${ACTIVE} do nothing returning *`,
    [
      ...[projectId, row.id, functionId, row.kind, row.dry_run, row.after ?? null, row.before ?? null],
      ...[json(row.properties), json(row.bytecode), json(row.selection)],
      ...[row.version ?? null, row.rate_per_second],
    ],
  );
  return rows[0];
}

export async function findReplay(
  queryable: Queryable,
  { projectId, replayId }: ReplayKey,
): Promise<ReplayRow | undefined> {
  const { rows } = await queryable.query('select * from function_replays where project_id = $1 and id = $2', [
    projectId,
    replayId,
  ]);
  return rows[0];
}

/** What people call the function of a replay and its project. Null: it has no name, or is gone. */
export interface ReplayNames {
  function_name: string | null;
  project_name: string | null;
}

export async function namesOfReplay(
  queryable: Queryable,
  { project_id, function_id }: Pick<ReplayRow, 'project_id' | 'function_id'>,
): Promise<ReplayNames> {
  const { rows } = await queryable.query(
    `select (select name from functions where project_id = $1 and id = $2) as function_name,
       (select name from projects where id = $1) as project_name`,
    [project_id, function_id],
  );
  return rows[0];
}

export interface ReplayQuery extends FunctionKey {
  kind?: ReplayKind | undefined;
  ascending: boolean;
  position?: { value: string | null; id: string } | undefined;
  limit: number;
}

/** Lists the replays and broadcasts of a function by the time of their creation. */
export async function listReplays(
  queryable: Queryable,
  { projectId, functionId, kind, ascending, position, limit }: ReplayQuery,
): Promise<{ rows: ReplayRow[]; next: { value: string; id: string } | undefined }> {
  const values: unknown[] = [projectId, functionId, kind ?? null, limit + 1];
  let from = '';
  if (position) {
    values.push(position.value, position.id);
    from = `and (created_at, id) ${ascending ? '>' : '<'} ($5::timestamptz, $6::uuid)`;
  }
  const order = ascending ? 'asc' : 'desc';
  const { rows } = await queryable.query(
    `select * from function_replays
     where project_id = $1 and function_id = $2 and ($3::text is null or kind = $3) ${from}
     order by created_at ${order}, id ${order} limit $4`,
    values,
  );
  const page: ReplayRow[] = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    rows: page,
    next: rows.length > limit && last ? { value: last.created_at, id: last.id } : undefined,
  };
}

export interface ReplayChange {
  from: readonly ReplayStatus[];
  to: ReplayStatus;
  reason?: string | null;
  /** The page that comes next. Null: any. */
  page?: number | null;
}

/** Changes the status of a replay that has one of the others. Returns it, or undefined if it had none of them. */
export async function changeReplay(
  queryable: Queryable,
  { projectId, replayId }: ReplayKey,
  { from, to, reason = null, page = null }: ReplayChange,
): Promise<ReplayRow | undefined> {
  const { rows } = await queryable.query(
    `with changed as (
       update function_replays set status = $4, reason = $5, held = null, updated_at = clock_timestamp(),
         finished_at = case when $4 in ('running', 'paused') then null else clock_timestamp() end
       where project_id = $1 and id = $2 and status = any($3) and ($6::bigint is null or page = $6) returning *),
     gone as (
       delete from function_replay_masks m using changed c
       where m.project_id = c.project_id and m.replay_id = c.id and c.finished_at is not null)
     select * from changed`,
    [projectId, replayId, from, to, reason, page],
  );
  return rows[0];
}

/** Writes down what a replay is to look at, once. `total`: null if it is not known. */
export async function beginReplay(
  queryable: Queryable,
  { projectId, replayId }: ReplayKey,
  { horizon, total }: { horizon: string; total: number | null },
): Promise<void> {
  await queryable.query(
    `update function_replays set horizon = $3, total = $4, updated_at = clock_timestamp()
     where project_id = $1 and id = $2 and horizon is null`,
    [projectId, replayId, horizon, total],
  );
}

/** Counts the events of a replay. */
export async function countReplayEvents(
  queryable: Queryable,
  { project_id, after, before }: Pick<ReplayRow, 'project_id' | 'after' | 'before'>,
  horizon: string,
): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*) from events
     where project_id = $1 and timestamp >= $2 and timestamp < $3 and inserted_at <= $4`,
    [project_id, after, before, horizon],
  );
  return rows[0].count;
}

/** The position of an event. */
export interface EventPosition {
  timestamp: string;
  uuid: string;
  /** Whether its name is one that is wanted. */
  wanted: boolean;
}

/** Lists the next events of a replay, oldest first. Names: null wants all. */
export async function nextReplayEvents(
  queryable: Queryable,
  { project_id, after, before, horizon, last_timestamp, last_id }: ReplayRow,
  names: readonly string[] | null,
  limit: number,
): Promise<EventPosition[]> {
  const { rows } = await queryable.query({
    name: 'next-replay-events',
    text: `select timestamp, uuid, $6::text[] is null or event = any($6) as wanted from events
     where project_id = $1 and timestamp >= $2 and timestamp < $3 and inserted_at <= $7
       and ($4::timestamptz is null or (timestamp, uuid) > ($4, $5::uuid))
     order by timestamp, uuid limit $8`,
    values: [
      ...[project_id, last_timestamp ?? after, before, last_timestamp, last_id, names, horizon, limit],
    ],
  });
  return rows;
}

/** What a page adds to a replay, and the last event or person of it. */
export interface DonePage {
  lastTimestamp: string | null;
  lastId: string;
  scanned: number;
  matched: number;
  masked: number;
  queued: number;
  filterErrors: number;
}

/**
 * Moves a replay on by a page, in the transaction that writes what the page leads to. False: somebody else has done this
 * page, the replay no longer runs, or the function does not, and nothing may be written.
 */
export async function advanceReplay(queryable: Queryable, row: ReplayRow, done: DonePage): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update function_replays r set page = r.page + 1, last_timestamp = $4, last_id = $5, scanned = r.scanned + $6,
       matched = r.matched + $7, masked = r.masked + $8, queued = r.queued + $9, filter_errors = r.filter_errors + $10,
       held = null, updated_at = clock_timestamp()
     where r.project_id = $1 and r.id = $2 and r.page = $3 and r.status = 'running'
       and exists (select from functions f where f.project_id = r.project_id and f.id = r.function_id
         and f.deleted_at is null and (f.enabled or r.dry_run))`,
    [
      ...[row.project_id, row.id, row.page, done.lastTimestamp, done.lastId],
      ...[done.scanned, done.matched, done.masked, done.queued, done.filterErrors],
    ],
  );
  return rowCount === 1;
}

/** Corrects how many invocations a page has queued: what it found may be gone meanwhile. */
export async function correctQueued(
  queryable: Queryable,
  { project_id, id }: Pick<ReplayRow, 'project_id' | 'id'>,
  difference: number,
): Promise<void> {
  await queryable.query(
    'update function_replays set queued = queued + $3 where project_id = $1 and id = $2',
    [project_id, id, difference],
  );
}

/** Writes down what a running replay waits for. */
export async function holdReplay(
  queryable: Queryable,
  { project_id, id }: Pick<ReplayRow, 'project_id' | 'id'>,
  held: Hold | null,
): Promise<void> {
  await queryable.query(
    `update function_replays set held = $3, updated_at = clock_timestamp()
     where project_id = $1 and id = $2 and status = 'running'`,
    [project_id, id, held],
  );
}

/** Answers whether more than so many invocations of a function wait. */
export async function hasMoreWaiting(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  most: number,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    'select from function_queue where project_id = $1 and function_id = $2 offset $3 limit 1',
    [projectId, functionId, most],
  );
  return rowCount === 1;
}

/**
 * Lists replays that should be under way and have done nothing for some time, longest first. One that has not begun is listed
 * after a quarter of it.
 */
export async function quietReplays(
  queryable: Queryable,
  { seconds, limit }: { seconds: number; limit: number },
): Promise<ReplayRow[]> {
  const { rows } = await queryable.query(
    `select * from function_replays where status = 'running'
       and updated_at < clock_timestamp() - case when horizon is null then $1::float8 / 4 else $1 end * interval '1 second'
     order by updated_at limit $2`,
    [seconds, limit],
  );
  return rows;
}

export interface StoppedQuery {
  /** What to write down if the function was deleted, or switched off. */
  deleted: string;
  switchedOff: string;
  limit: number;
  /** By default all. */
  only?: Pick<ReplayRow, 'project_id' | 'id'>;
}

/** Cancels replays whose function was switched off or deleted. One that only counts needs no enabled function. */
export async function cancelStopped(
  queryable: Queryable,
  { deleted, switchedOff, limit, only }: StoppedQuery,
): Promise<ReplayRow[]> {
  const { rows } = await queryable.query(
    `with stopped as (
       select r.project_id, r.id, case when f.id is null then $2 else $3 end as reason from function_replays r
       left join functions f on f.project_id = r.project_id and f.id = r.function_id and f.deleted_at is null
       where r.${ACTIVE} and (f.id is null or not f.enabled and not r.dry_run)
         and ($4::int is null or r.project_id = $4 and r.id = $5::uuid)
       limit $1 for update of r skip locked),
     gone as (delete from function_replay_masks m using stopped s where m.project_id = s.project_id and m.replay_id = s.id)
     update function_replays r set status = 'cancelled', reason = s.reason, held = null,
       updated_at = clock_timestamp(), finished_at = clock_timestamp()
     from stopped s where r.project_id = s.project_id and r.id = s.id returning r.*`,
    [limit, deleted, switchedOff, only?.project_id ?? null, only?.id ?? null],
  );
  return rows;
}

/** Deletes replays that ended before an instant. Returns how many. */
export async function deleteReplays(queryable: Queryable, before: Date, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    `delete from function_replays where (project_id, id) in (
       select project_id, id from function_replays where finished_at < $1 order by finished_at limit $2)`,
    [before, limit],
  );
  return rowCount ?? 0;
}
