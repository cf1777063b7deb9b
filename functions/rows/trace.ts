import type { Queryable } from '../../db/pool.ts';
import type { CompiledContent } from '../rules/definition.ts';
import type { AttemptRecord } from '../rules/progress.ts';
import type { StoredEvent } from '../rules/stored-event.ts';
import { findStoredEvent } from './events.ts';

/** An event with what happened to it before it was stored. */
export interface TracedEvent extends StoredEvent {
  inserted_at: string;
  historical: boolean;
  transformations: { id: string; version: number; properties: string[]; fields?: string[] }[] | null;
}

export async function findTracedEvent(
  queryable: Queryable,
  projectId: number,
  uuid: string,
): Promise<TracedEvent | undefined> {
  const found = await findStoredEvent(queryable, projectId, uuid);
  if (!found) return undefined;
  const { rows } = await queryable.query(
    `select inserted_at, historical, transformations from events
     where project_id = $1 and timestamp = $2 and uuid = $3 limit 1`,
    [projectId, found.timestamp, uuid],
  );
  return rows[0] && { ...found, ...rows[0] };
}

/** A function that may want an event. */
export interface TracedFunction extends Pick<CompiledContent, 'filters' | 'mappings'> {
  id: string;
  name: string | null;
  version: number;
  /** Whether it was enabled when the event was stored. Null: it is not enabled. */
  saw_event: boolean | null;
}

/** Lists functions that react to events, those that ran for the event first. */
export async function functionsToTrace(
  queryable: Queryable,
  projectId: number,
  { uuid, inserted_at }: Pick<TracedEvent, 'uuid' | 'inserted_at'>,
  limit: number,
): Promise<TracedFunction[]> {
  const { rows } = await queryable.query(
    `select f.id, f.name, f.version, f.filters, f.mappings,
       case when f.enabled then f.enabled_at <= $3::timestamptz end as saw_event
     from functions f
     left join (select distinct function_id from function_invocations where project_id = $1 and event_uuid = $2) i
       on i.function_id = f.id
     where f.project_id = $1 and f.type = 'destination' and f.deleted_at is null and (f.enabled or i.function_id is not null)
     order by i.function_id is null, f.created_at, f.id limit $4`,
    [projectId, uuid, inserted_at, limit],
  );
  return rows;
}

/** Returns the names of functions. Those that are deleted have theirs, too. */
export async function functionNames(
  queryable: Queryable,
  projectId: number,
  ids: readonly string[],
): Promise<Map<string, string | null>> {
  const { rows } = await queryable.query(
    'select id, name from functions where project_id = $1 and id = any($2::uuid[])',
    [projectId, ids],
  );
  return new Map(rows.map((row) => [row.id, row.name]));
}

export interface TracedInvocation {
  id: string;
  function_id: string;
  version: number;
  mapping: number | null;
  status: 'waiting' | 'succeeded' | 'failed' | 'cancelled';
  error: string | null;
  attempts: AttemptRecord[];
  created_at: string;
  finished_at: string | null;
  rerun_of: string | null;
}

/** Lists the invocations for an event, in the order of their making. */
export async function invocationsOfEvent(
  queryable: Queryable,
  projectId: number,
  uuid: string,
  limit: number,
): Promise<TracedInvocation[]> {
  const { rows } = await queryable.query(
    `select id, function_id, version, mapping, status, error, attempts, created_at, finished_at, rerun_of
       from function_invocations where project_id = $1 and event_uuid = $2
     union all
     select id, function_id, version, mapping, 'waiting', null, coalesce(progress->'attempts', '[]'), created_at, null,
       rerun_of from function_queue where project_id = $1 and event_uuid = $2
     order by created_at, id limit $3`,
    [projectId, uuid, limit],
  );
  return rows;
}
