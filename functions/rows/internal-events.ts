import type { Queryable, Transaction } from '../../db/pool.ts';
import type { CompiledContent } from '../rules/definition.ts';

/** An event of Sluice itself. */
export interface InternalEventRow {
  id: number;
  project_id: number;
  uuid: string;
  event: string;
  distinct_id: string;
  properties: Record<string, unknown>;
  about: string | null;
  created_at: string;
}

/** Takes the oldest events that nobody else has taken. They are gone when the transaction is committed. */
export async function takeInternalEvents(client: Transaction, limit: number): Promise<InternalEventRow[]> {
  const { rows } = await client.query({
    name: 'take-internal-events',
    text: `delete from function_internal_events e
     using (select id from function_internal_events order by id limit $1 for update skip locked) taken
     where e.id = taken.id
     returning e.id, e.project_id, e.uuid, e.event, e.distinct_id, e.properties, e.about, e.created_at`,
    values: [limit],
  });
  return rows.toSorted((a, b) => a.id - b.id);
}

/** Puts events back behind all others. */
export async function returnInternalEvents(
  client: Transaction,
  events: readonly InternalEventRow[],
): Promise<void> {
  await client.query(
    `insert into function_internal_events (project_id, uuid, event, distinct_id, properties, about, created_at)
     select project_id, uuid, event, distinct_id, properties, about, created_at
     from json_to_recordset($1) as e (project_id int, uuid uuid, event text, distinct_id text, properties json, about uuid,
       created_at timestamptz)`,
    [JSON.stringify(events)],
  );
}

/** A function that wants such events. */
export interface InternalDestination extends Pick<CompiledContent, 'filters' | 'masking'> {
  id: string;
  name: string | null;
  version: number;
  enabled_at: string;
}

export async function internalDestinations(
  queryable: Queryable,
  projectId: number,
): Promise<{ project: { id: number; name: string }; functions: InternalDestination[] } | undefined> {
  const { rows: projects } = await queryable.query('select id, name from projects where id = $1', [
    projectId,
  ]);
  if (!projects[0]) return undefined;
  const { rows } = await queryable.query(
    `select id, name, version, filters, masking, enabled_at from functions
     where project_id = $1 and enabled and deleted_at is null and type = 'internal_destination'
     order by created_at, id`,
    [projectId],
  );
  return { project: projects[0], functions: rows };
}
