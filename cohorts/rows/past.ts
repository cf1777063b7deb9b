import { pastVersions } from '../../db/past-versions.ts';
import type { Queryable } from '../../db/pool.ts';
import { COHORT_VERSIONS } from './forgetting.ts';

export const { at: cohortsAt, forgottenAt: cohortsForgottenAt } = pastVersions(COHORT_VERSIONS, 'name');

/** Finds in which of these static cohorts a person is who was in them at a time already. */
export async function membershipsAt(
  queryable: Queryable,
  projectId: number,
  personId: string,
  cohortIds: readonly number[],
  at: string,
): Promise<number[]> {
  const { rows } = await queryable.query(
    `select cohort_id from cohort_people
     where project_id = $1 and person_id = $2 and cohort_id = any($3::int[]) and added_at <= $4`,
    [projectId, personId, cohortIds, at],
  );
  return rows.map((row) => row.cohort_id);
}
