import type { Queryable } from '../../db/pool.ts';

/** A version of a cohort, as it was at some time. */
export interface PastCohortRow {
  id: number;
  version: number;
  changed_at: string;
  /** JSON. */
  document: string;
}

/** Reads what cohorts were at a time. Those that did not exist yet are left out. */
export async function cohortsAt(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
  at: string,
): Promise<PastCohortRow[]> {
  const { rows } = await queryable.query(
    `select distinct on (cohort_id) cohort_id as id, version, changed_at, document::text as document
     from cohort_revisions where project_id = $1 and cohort_id = any($2::int[]) and changed_at <= $3
     order by cohort_id, version desc`,
    [projectId, ids, at],
  );
  return rows;
}

/** Finds which of these cohorts had versions before a time that are no longer kept, and none that is. */
export async function cohortsForgottenAt(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
  at: string,
): Promise<{ id: number; name: string; since: string }[]> {
  const { rows } = await queryable.query(
    `select * from (
       select distinct on (cohort_id) cohort_id as id, document ->> 'name' as name, changed_at as since, version
       from cohort_revisions where project_id = $1 and cohort_id = any($2::int[]) order by cohort_id, version) as first
     where version > 1 and since > $3 order by id`,
    [projectId, ids, at],
  );
  return rows.map(({ id, name, since }) => ({ id, name, since }));
}

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
