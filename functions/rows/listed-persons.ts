import type { Queryable } from '../../db/pool.ts';

/** Finds which of some static cohorts list which of some persons: the ids of the cohorts by the id of the person. */
export async function listedPersons(
  queryable: Queryable,
  projectId: number,
  cohortIds: readonly number[],
  personIds: readonly string[],
): Promise<Map<string, number[]>> {
  const { rows } = await queryable.query({
    name: 'function-listed-persons',
    text: `select person_id, array_agg(cohort_id) as cohorts from cohort_people
           where project_id = $1 and cohort_id = any($2::int[]) and person_id = any($3::uuid[]) group by 1`,
    values: [projectId, cohortIds, personIds],
  });
  return new Map(rows.map((row) => [row.person_id, row.cohorts]));
}
