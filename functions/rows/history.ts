import { int4Array, textArray, uuidArray } from '../../db/binary-arrays.ts';
import type { Queryable } from '../../db/pool.ts';
import type { AttemptRecord } from '../rules/progress.ts';
import type { FunctionKey } from './functions.ts';
import type { NewInvocation } from './queue.ts';
import { mentions } from './reruns.ts';

export const DISABLED =
  'The function was not run, because it had taken too long before. Save it, and run this again.';

/** Writes down invocations that are not run, so that they can be run later. */
export async function recordRefused(
  queryable: Queryable,
  invocations: readonly NewInvocation[],
  error: string,
): Promise<void> {
  if (invocations.length === 0) return;
  await queryable.query(
    `insert into function_invocations (project_id, id, function_id, version, mapping, event_uuid, event_timestamp,
       distinct_id, person_id, groups, status, error, attempts, created_at, finished_at)
     select project_id, id, function_id, version, nullif(mapping, -1), event_uuid, event_timestamp::timestamptz, distinct_id,
       person_id, nullif(groups, '')::json, 'failed', $11, '[]', clock_timestamp(), clock_timestamp()
     from unnest($1::uuid[], $2::int[], $3::uuid[], $4::int[], $5::int[], $6::uuid[], $7::text[], $8::text[],
       $9::uuid[], $10::text[]) as i (id, project_id, function_id, version, mapping, event_uuid, event_timestamp,
         distinct_id, person_id, groups)`,
    [
      uuidArray(invocations.map((one) => one.id)),
      int4Array(invocations.map((one) => one.projectId)),
      uuidArray(invocations.map((one) => one.functionId)),
      int4Array(invocations.map((one) => one.version)),
      int4Array(invocations.map((one) => one.mapping ?? -1)),
      uuidArray(invocations.map((one) => one.uuid)),
      textArray(invocations.map((one) => one.timestamp)),
      textArray(invocations.map((one) => one.distinctId)),
      uuidArray(invocations.map((one) => one.personId ?? undefined)),
      textArray(invocations.map((one) => one.groups ?? '')),
      error,
    ],
  );
}

/** An invocation that waits or has ended. */
export interface InvocationRow {
  id: string;
  version: number;
  mapping: number | null;
  event_uuid: string | null;
  event_timestamp: string | null;
  distinct_id: string | null;
  person_id: string | null;
  status: 'waiting' | 'succeeded' | 'failed' | 'cancelled';
  error: string | null;
  attempts: AttemptRecord[];
  created_at: string;
  /** When it ended. Of one that waits: when it is due. */
  at: string;
  dismissed_at: string | null;
  rerun_at: string | null;
  rerun_of: string | null;
}

/** Which invocations of a function are meant. */
export interface InvocationSelection extends FunctionKey {
  ids?: readonly string[] | undefined;
  after?: string | undefined;
  before?: string | undefined;
  statuses?: readonly string[] | undefined;
  eventId?: string | undefined;
  distinctId?: string | undefined;
  /** A part of the error, of a request or of an answer. Case does not matter. */
  search?: string | undefined;
  /** Only failed ones with which nobody has done anything: neither dismissed nor run again. */
  isOpen?: boolean | undefined;
}

/** A place in the order of invocations: the time of one, and its id. */
export interface Position {
  value: string;
  id: string;
}

export interface InvocationQuery extends InvocationSelection {
  ascending: boolean;
  position?: Position | undefined;
  limit: number;
}

/**
 * How many invocations one query looks at, with a search and with a condition that is cheaper. No index serves these, so
 * whoever asks goes on where the query has ended.
 */
const LOOKED_AT = { search: 5_000, other: 20_000 };

/** Writes conditions on invocations `i`. The first values are those of the function. */
class Conditions {
  readonly values: unknown[] = [];
  readonly #texts: string[] = [];

  constructor({ projectId, functionId }: FunctionKey) {
    this.add(`i.project_id = ${this.given(projectId)}`);
    this.add(`i.function_id = ${this.given(functionId)}`);
  }

  given(value: unknown): string {
    return `$${this.values.push(value)}`;
  }

  add(text: string): void {
    this.#texts.push(text);
  }

  /** Those that come after a place, or with `inclusive` up to it. */
  beyond({ value, id }: Position, sign: '<' | '>' | '<=' | '>='): void {
    this.add(`(i.at, i.id) ${sign} (${this.given(value)}::timestamptz, ${this.given(id)}::uuid)`);
  }

  get all(): string {
    return this.#texts.join(' and ');
  }
}

/** What an index serves: the times, and which ones are open. */
function addIndexed(conditions: Conditions, { ids, after, before, eventId, isOpen }: InvocationSelection) {
  const given = (value: unknown) => conditions.given(value);
  if (ids) conditions.add(`i.id = any(${given(ids)}::uuid[])`);
  if (after !== undefined) conditions.add(`i.at >= ${given(after)}::timestamptz`);
  if (before !== undefined) conditions.add(`i.at < ${given(before)}::timestamptz`);
  if (eventId !== undefined) conditions.add(`i.event_uuid = ${given(eventId)}::uuid`);
  if (isOpen) conditions.add("i.status = 'failed' and i.dismissed_at is null and i.rerun_at is null");
}

/** What has to be looked at in each invocation. */
function addOthers(conditions: Conditions, { statuses, distinctId, search, isOpen }: InvocationSelection) {
  if (distinctId !== undefined) conditions.add(`i.distinct_id = ${conditions.given(distinctId)}`);
  if (!isOpen && statuses && statuses.length > 0) {
    conditions.add(`i.status = any(${conditions.given(statuses)})`);
  }
  if (search) conditions.add(mentions(search, (value) => conditions.given(value)));
}

/** How many invocations to look at. Undefined: an index leads to those that are meant. */
function lookedAt({ ids, eventId, statuses, distinctId, search, isOpen }: InvocationSelection) {
  if (ids || eventId !== undefined) return undefined;
  if (search) return LOOKED_AT.search;
  return distinctId !== undefined || (!isOpen && statuses?.length) ? LOOKED_AT.other : undefined;
}

const ENDED = `(select project_id, function_id, id, version, mapping, event_uuid, event_timestamp, distinct_id, person_id,
    status, error, attempts, created_at, finished_at as at, dismissed_at, rerun_at, rerun_of
  from function_invocations)`;
const WAITING = `(select project_id, function_id, id, version, mapping, event_uuid, event_timestamp, distinct_id, person_id,
    'waiting' as status, null as error, coalesce(progress->'attempts', '[]') as attempts, created_at, due_at as at,
    null::timestamptz as dismissed_at, null::timestamptz as rerun_at, rerun_of, seq, lease
  from function_queue)`;
/** Of waiting ones: nobody works at it, or nobody does any more. */
const FREE = '(i.lease is null or i.at <= clock_timestamp())';
const SHOWN = `i.id, i.version, i.mapping, i.event_uuid, i.event_timestamp, i.distinct_id, i.person_id, i.status, i.error,
  i.attempts, i.created_at, i.at, i.dismissed_at, i.rerun_at, i.rerun_of`;

/**
 * Reads a page of invocations that have ended, or of those that wait, by the time of their end or of their next attempt. A
 * page may have fewer than `limit`, or none, and still be followed by another one: `next`.
 */
async function readPage<Row extends { at: string; id: string }>(
  queryable: Queryable,
  { waiting, ascending, position, limit, ...selection }: InvocationQuery & { waiting: boolean },
  { columns, only = 'true' }: { columns: string; only?: string },
): Promise<{ rows: Row[]; next: Position | undefined }> {
  const table = waiting ? WAITING : ENDED;
  const [further, order] = ascending ? (['>', 'asc'] as const) : (['<', 'desc'] as const);
  const inOrder = `order by i.at ${order}, i.id ${order}`;
  const conditions = new Conditions(selection);
  addIndexed(conditions, selection);
  if (position) conditions.beyond(position, further);
  const most = lookedAt(selection);
  let end: Position | undefined;
  if (most !== undefined) {
    const { rows } = await queryable.query(
      `select i.at as value, i.id from ${table} i where ${conditions.all} ${inOrder} offset ${most - 1} limit 1`,
      conditions.values,
    );
    end = rows[0];
    if (end) conditions.beyond(end, ascending ? '<=' : '>=');
  }
  addOthers(conditions, selection);
  const { rows } = await queryable.query(
    `select ${columns} from ${table} i where ${conditions.all} and ${only} ${inOrder}
     limit ${conditions.given(limit + 1)}`,
    conditions.values,
  );
  if (rows.length <= limit) return { rows, next: end };
  const page: Row[] = rows.slice(0, limit);
  const last = page.at(-1) as Row;
  return { rows: page, next: { value: last.at, id: last.id } };
}

export const listInvocations = (
  queryable: Queryable,
  query: InvocationQuery & { waiting: boolean },
): Promise<{ rows: InvocationRow[]; next: Position | undefined }> =>
  readPage(queryable, query, { columns: SHOWN });

export async function findInvocation(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  id: string,
): Promise<InvocationRow | undefined> {
  for (const table of [WAITING, ENDED]) {
    const { rows } = await queryable.query(
      `select ${SHOWN} from ${table} i where i.project_id = $1 and i.function_id = $2 and i.id = $3 limit 1`,
      [projectId, functionId, id],
    );
    if (rows[0]) return rows[0];
  }
}

/**
 * Finds the first invocations of a selection after a place: failed ones that nobody has done anything about, or waiting ones
 * that nobody works at. `next`: there may be more after it.
 */
export async function findSome(
  queryable: Queryable,
  selection: InvocationSelection,
  { waiting, position, limit }: { waiting: boolean; position?: Position | undefined; limit: number },
): Promise<{ ids: string[]; next: Position | undefined }> {
  const { rows, next } = await readPage<{ at: string; id: string }>(
    queryable,
    { ...selection, isOpen: !waiting, waiting, ascending: true, position, limit },
    { columns: 'i.id, i.at', ...(waiting && { only: FREE }) },
  );
  return { ids: rows.map((row) => row.id), next };
}

/** Marks failed invocations with which nothing more is to be done. Returns how many. */
export async function dismissInvocations(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  ids: readonly string[],
): Promise<number> {
  const { rowCount } = await queryable.query(
    `update function_invocations set dismissed_at = clock_timestamp()
     where id = any($3::uuid[]) and project_id = $1 and function_id = $2
       and status = 'failed' and dismissed_at is null and rerun_at is null`,
    [projectId, functionId, ids],
  );
  return rowCount ?? 0;
}

/** Ends waiting invocations that nobody works at. Returns how many, and in which lines others may wait for them. */
export async function cancelInvocations(
  queryable: Queryable,
  { projectId, functionId }: FunctionKey,
  ids: readonly string[],
  reason: string,
): Promise<{ count: number; lines: string[] }> {
  const { rows } = await queryable.query(
    `with gone as (
       delete from function_queue q where q.seq = any(array(
         select i.seq from ${WAITING} i where i.project_id = $1 and i.function_id = $2 and i.id = any($3::uuid[]) and ${FREE}
         order by i.seq for update of i skip locked)) returning q.*),
     listed as (
       insert into function_invocations (project_id, id, function_id, version, mapping, event_uuid, event_timestamp,
         distinct_id, person_id, groups, globals, rerun_of, status, error, attempts, created_at, finished_at)
       select g.project_id, g.id, g.function_id, g.version, g.mapping, g.event_uuid, g.event_timestamp, g.distinct_id,
         g.person_id, g.groups, g.globals, g.rerun_of, 'cancelled', $4,
         coalesce(g.progress->'attempts', '[]'), g.created_at, clock_timestamp()
       from gone g)
     select line from gone`,
    [projectId, functionId, ids, reason],
  );
  return {
    count: rows.length,
    lines: [...new Set(rows.flatMap(({ line }) => (line === null ? [] : [line])))],
  };
}
