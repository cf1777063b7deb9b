import type { Queryable } from '../../db/pool.ts';
import type { ReplayRow } from './replays.ts';

/** A person as a broadcast sees it. */
export interface BroadcastPerson {
  id: string;
  created_at: string;
  distinct_id: string;
  /** As JSON. */
  properties: string;
  /** The static cohorts that list the person, of those that filters name. Absent: nobody has looked. */
  listed_in?: readonly number[];
}

/** Counts the persons of a project. */
export async function countPersons(queryable: Queryable, projectId: number): Promise<number> {
  const { rows } = await queryable.query('select count(*) from persons where project_id = $1', [projectId]);
  return rows[0].count;
}

/** Lists the next persons of a broadcast by their ids, each with one of its distinct ids. */
export async function nextPersons(
  queryable: Queryable,
  { project_id, last_id }: Pick<ReplayRow, 'project_id' | 'last_id'>,
  limit: number,
): Promise<BroadcastPerson[]> {
  const { rows } = await queryable.query({
    name: 'next-broadcast-persons',
    text: `select p.id, p.created_at, p.properties::text as properties, coalesce((
       select d.distinct_id from person_distinct_ids d where d.project_id = p.project_id and d.person_id = p.id
       order by d.distinct_id limit 1), p.id::text) as distinct_id
     from persons p where p.project_id = $1 and ($2::uuid is null or p.id > $2) order by p.id limit $3`,
    values: [project_id, last_id, limit],
  });
  return rows;
}

/** An invocation of a function for a person. */
export interface BroadcastInvocation {
  id: string;
  projectId: number;
  functionId: string;
  version: number;
  mapping: number | null;
  distinctId: string;
  personId: string;
  /** What the program sees. */
  globals: Record<string, unknown>;
  seed: number;
}

/** Puts invocations for persons into the queue. A person that was deleted meanwhile gets none. Returns how many. */
export async function enqueueBroadcast(
  queryable: Queryable,
  invocations: readonly BroadcastInvocation[],
): Promise<number> {
  if (invocations.length === 0) return 0;
  const { rowCount } = await queryable.query({
    name: 'enqueue-broadcast',
    text: `insert into function_queue (id, project_id, function_id, version, mapping, distinct_id, person_id, globals, clock, seed)
     select i.id, i.project_id, i.function_id, i.version, i.mapping, i.distinct_id, i.person_id, i.globals, clock_timestamp(), i.seed
     from json_to_recordset($1) as i (id uuid, project_id int, function_id uuid, version int, mapping smallint,
       distinct_id text, person_id uuid, globals json, seed int)
     join persons p on p.project_id = i.project_id and p.id = i.person_id
     for key share of p`,
    values: [
      JSON.stringify(
        invocations.map((one) => ({
          ...{ id: one.id, project_id: one.projectId, function_id: one.functionId, version: one.version },
          ...{ mapping: one.mapping, distinct_id: one.distinctId, person_id: one.personId, seed: one.seed },
          globals: one.globals,
        })),
      ),
    ],
  });
  return rowCount ?? 0;
}
