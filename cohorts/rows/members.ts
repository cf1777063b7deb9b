import type { PersonMerge } from '../../db/person-writes.ts';
import type { Queryable, Transaction } from '../../db/pool.ts';

/** Makes the persons that absorbed members of static cohorts members. */
export async function moveMembers(client: Transaction, merges: readonly PersonMerge[]): Promise<void> {
  await client.query(
    `with merged as (select * from unnest($1::int[], $2::uuid[], $3::uuid[]) as merged (project_id, absorbed_id, into_id)),
     moved as (
       delete from cohort_people c using merged m
       where c.project_id = m.project_id and c.person_id = m.absorbed_id
       returning c.project_id, c.cohort_id, m.into_id, c.added_at)
     insert into cohort_people (project_id, cohort_id, person_id, added_at)
     select project_id, cohort_id, into_id, min(added_at) from moved group by 1, 2, 3 order by 1, 2, 3
     on conflict do nothing`,
    [
      merges.map((one) => one.projectId),
      merges.map((one) => one.absorbedId),
      merges.map((one) => one.intoId),
    ],
  );
}

/** Takes deleted persons out of all static cohorts. */
export async function forgetPersons(
  client: Transaction,
  projectId: number,
  personIds: readonly string[],
): Promise<void> {
  await client.query('delete from cohort_people where project_id = $1 and person_id = any($2::uuid[])', [
    projectId,
    personIds,
  ]);
}

/** Finds of which of these static cohorts the person of a distinct id is a member. */
export async function membershipsOf(
  queryable: Queryable,
  projectId: number,
  distinctId: string,
  cohortIds: readonly number[],
): Promise<number[]> {
  const { rows } = await queryable.query(
    `select c.cohort_id from person_distinct_ids d
     join cohort_people c on c.project_id = d.project_id and c.person_id = d.person_id
     where d.project_id = $1 and d.distinct_id = $2 and c.cohort_id = any($3::int[])`,
    [projectId, distinctId, cohortIds],
  );
  return rows.map((row) => row.cohort_id);
}
