import { int4Array, textArray, uuidArray } from '../../db/binary-arrays.ts';
import type { Queryable } from '../../db/pool.ts';
import type { AttemptRecord } from '../rules/progress.ts';
import type { FunctionKey } from './functions.ts';
import type { NewInvocation } from './queue.ts';
import { mentions, patternOf } from './reruns.ts';

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

export interface InvocationQuery extends InvocationSelection {
  ascending: boolean;
  position?: { value: string; id: string } | undefined;
  limit: number;
}

function conditionsOf(query: InvocationSelection, values: unknown[]): string[] {
  const { ids, after, before, statuses, eventId, distinctId, search, isOpen } = query;
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = [
    `i.project_id = ${given(query.projectId)}`,
    `i.function_id = ${given(query.functionId)}`,
  ];
  if (ids) conditions.push(`i.id = any(${given(ids)}::uuid[])`);
  if (after !== undefined) conditions.push(`i.at >= ${given(after)}::timestamptz`);
  if (before !== undefined) conditions.push(`i.at < ${given(before)}::timestamptz`);
  if (eventId !== undefined) conditions.push(`i.event_uuid = ${given(eventId)}::uuid`);
  if (distinctId !== undefined) conditions.push(`i.distinct_id = ${given(distinctId)}`);
  if (search) conditions.push(mentions(given(patternOf(search))));
  if (isOpen) conditions.push("i.status = 'failed' and i.dismissed_at is null and i.rerun_at is null");
  else if (statuses && statuses.length > 0) conditions.push(`i.status = any(${given(statuses)})`);
  return conditions;
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

/** Lists invocations that have ended, or those that wait, by the time of their end or of their next attempt. */
export async function listInvocations(
  queryable: Queryable,
  { waiting, ascending, position, limit, ...query }: InvocationQuery & { waiting: boolean },
): Promise<{ rows: InvocationRow[]; next: { value: string; id: string } | undefined }> {
  const values: unknown[] = [];
  const conditions = conditionsOf(query, values);
  const given = (value: unknown) => `$${values.push(value)}`;
  if (position) {
    const sign = ascending ? '>' : '<';
    conditions.push(
      `(i.at, i.id) ${sign} (${given(position.value)}::timestamptz, ${given(position.id)}::uuid)`,
    );
  }
  const order = ascending ? 'asc' : 'desc';
  const { rows } = await queryable.query(
    `select ${SHOWN} from ${waiting ? WAITING : ENDED} i where ${conditions.join(' and ')}
     order by i.at ${order}, i.id ${order} limit ${given(limit + 1)}`,
    values,
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { rows: page, next: rows.length > limit && last ? { value: last.at, id: last.id } : undefined };
}

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

/** Finds invocations of a selection: failed ones that nobody has done anything about, or waiting ones that nobody works at. */
export async function findSome(
  queryable: Queryable,
  selection: InvocationSelection,
  { waiting, limit }: { waiting: boolean; limit: number },
): Promise<string[]> {
  const values: unknown[] = [];
  const conditions = conditionsOf(waiting ? selection : { ...selection, isOpen: true }, values);
  const { rows } = await queryable.query(
    `select i.id from ${waiting ? WAITING : ENDED} i where ${[...conditions, waiting ? FREE : 'true'].join(' and ')}
     order by i.at limit ${Number(limit)}`,
    values,
  );
  return rows.map((row) => row.id);
}

/** Marks failed invocations of a selection with which nothing more is to be done. Returns how many. */
export async function dismissInvocations(
  queryable: Queryable,
  selection: InvocationSelection,
  limit: number,
): Promise<number> {
  const values: unknown[] = [];
  const conditions = conditionsOf({ ...selection, isOpen: true }, values);
  const { rowCount } = await queryable.query(
    `update function_invocations f set dismissed_at = clock_timestamp() from (
       select i.part, i.place from (select tableoid as part, ctid as place, finished_at as at, * from function_invocations) i
       where ${conditions.join(' and ')} order by i.at, i.id limit ${Number(limit)}) chosen
     where f.tableoid = chosen.part and f.ctid = chosen.place and f.dismissed_at is null`,
    values,
  );
  return rowCount ?? 0;
}

/** Ends waiting invocations of a selection that nobody works at. Returns how many, and in which lines others may wait for them. */
export async function cancelInvocations(
  queryable: Queryable,
  selection: InvocationSelection,
  reason: string,
  limit: number,
): Promise<{ count: number; lines: string[] }> {
  const values: unknown[] = [];
  const conditions = conditionsOf(selection, values);
  const given = (value: unknown) => `$${values.push(value)}`;
  const { rows } = await queryable.query(
    `with gone as (
       delete from function_queue q where q.seq = any(array(
         select i.seq from ${WAITING} i where ${conditions.join(' and ')} and ${FREE}
         order by i.seq limit ${given(limit)} for update of i skip locked)) returning q.*),
     listed as (
       insert into function_invocations (project_id, id, function_id, version, mapping, event_uuid, event_timestamp,
         distinct_id, person_id, groups, globals, rerun_of, status, error, attempts, created_at, finished_at)
       select g.project_id, g.id, g.function_id, g.version, g.mapping, g.event_uuid, g.event_timestamp, g.distinct_id,
         g.person_id, g.groups, g.globals, g.rerun_of, 'cancelled', ${given(reason)},
         coalesce(g.progress->'attempts', '[]'), g.created_at, clock_timestamp()
       from gone g)
     select line from gone`,
    values,
  );
  return {
    count: rows.length,
    lines: [...new Set(rows.flatMap(({ line }) => (line === null ? [] : [line])))],
  };
}
