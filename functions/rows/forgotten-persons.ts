// Persons that were deleted while functions had still to see events of theirs.
import type { Queryable } from '../../db/pool.ts';

/** Whether the person of an event was deleted since the event came in, at `since`. */
export const isForgotten = ({ project, person, since }: Record<'project' | 'person' | 'since', string>) =>
  `exists (select from function_forgotten_persons f
    where f.project_id = ${project} and f.person_id = ${person} and f.forgotten_at >= ${since})`;

/** Whether functions of a project have still to see events that were stored until then, or to queue their positions. */
const hasLeft = (project: string, until: string) =>
  `(exists (select from function_floods o where o.project_id = ${project})
    or exists (select from function_late_batches l where l.project_id = ${project})
    or exists (select from function_batches b where ${project} = any(b.projects) and b.noted_at <= ${until}))`;

/**
 * Leaves the events of persons that are deleted out of what functions have still to see, and of what is kept as positions. They
 * are noted, because neither names persons, and there may be very many of them.
 */
export async function forgetPersons(
  queryable: Queryable,
  projectId: number,
  personIds: readonly string[],
): Promise<void> {
  await queryable.query(
    `insert into function_forgotten_persons (project_id, person_id)
     select $1, person_id from unnest($2::uuid[]) as person_id
     where ${hasLeft('$1::int', 'clock_timestamp()')}
     on conflict (project_id, person_id) do update set forgotten_at = clock_timestamp()`,
    [projectId, personIds],
  );
}

/** Deletes notes of persons that nothing needs any more which was there before them. Returns how many. */
export async function deleteForgotten(queryable: Queryable, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    `delete from function_forgotten_persons where ctid = any(array(
       select f.ctid from function_forgotten_persons f
       where not ${hasLeft('f.project_id', 'f.forgotten_at')} limit $1))`,
    [limit],
  );
  return rowCount ?? 0;
}
