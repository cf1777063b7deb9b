import type { Queryable, Transaction } from '../../db/pool.ts';

/** A cohort as flags and queries need it. */
export interface CohortDefinitionRow {
  id: number;
  name: string;
  is_static: boolean;
  /** JSON, spelled as it was stored. */
  filters: string;
}

/** The same with what every change of it changes. */
export type StampedCohortRow = Omit<CohortDefinitionRow, 'name'> & { stamp: string };

/**
 * Reads the cohorts of a project that are not deleted. Those that are known with their stamps are not read again: they are the
 * same objects.
 */
export async function readCohortDefinitions<Known extends { id: number; stamp?: string }>(
  queryable: Queryable,
  projectId: number,
  known: readonly Known[],
): Promise<(Known | StampedCohortRow)[]> {
  const stamped = known.filter((one) => one.stamp !== undefined);
  const { rows } = await queryable.query(
    `select c.id, c.stamp::text as stamp, c.is_static,
       case when k.stamp is distinct from c.stamp then c.filters::text end as filters
     from cohorts c left join unnest($2::int[], $3::bigint[]) as k (id, stamp) on k.id = c.id
     where c.project_id = $1 and not c.deleted order by c.id`,
    [projectId, stamped.map((one) => one.id), stamped.map((one) => one.stamp)],
  );
  const byId = new Map(stamped.map((one) => [one.id, one]));
  return rows.map((row) => (row.filters === null ? (byId.get(row.id) as Known) : row));
}

/** Reads the cohorts of a project as they were at a time. */
export async function readCohortDefinitionsAt(
  queryable: Queryable,
  projectId: number,
  at: string,
): Promise<CohortDefinitionRow[]> {
  const { rows } = await queryable.query(
    `select id, document ->> 'name' as name, (document ->> 'is_static')::boolean as is_static,
       (document -> 'filters')::text as filters
     from (select distinct on (cohort_id) cohort_id as id, document from cohort_revisions
       where project_id = $1 and changed_at <= $2 order by cohort_id, version desc) as known
     where not (document ->> 'deleted')::boolean order by id`,
    [projectId, at],
  );
  return rows;
}

/** Reads some cohorts of a project that are not deleted, with their versions. */
export async function listSources(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<(CohortDefinitionRow & { version: number })[]> {
  const { rows } = await queryable.query(
    `select id, name, is_static, filters::text as filters, version from cohorts
     where project_id = $1 and id = any($2::int[]) and not deleted order by id`,
    [projectId, ids],
  );
  return rows;
}

/** Finds the versions of some cohorts of a project that are not deleted. */
export async function listCohortVersions(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<{ id: number; version: number }[]> {
  const { rows } = await queryable.query(
    'select id, version from cohorts where project_id = $1 and id = any($2::int[]) and not deleted',
    [projectId, ids],
  );
  return rows;
}

/** Finds which of these cohorts a project has. They stay until the transaction ends. */
export async function knownCohorts(
  queryable: Transaction,
  projectId: number,
  ids: readonly number[],
): Promise<number[]> {
  const { rows } = await queryable.query(
    'select id from cohorts where project_id = $1 and id = any($2::int[]) and not deleted order by id for share',
    [projectId, ids],
  );
  return rows.map((row) => row.id);
}

/** Whether the members of a cohort are known. */
export interface CohortState {
  id: number;
  /** It is static, or it was counted at least once. */
  is_known: boolean;
  /** Why the last count failed. */
  count_error: string | null;
}

/** Finds which of these cohorts a project has, and whether their members are known. */
export async function cohortStates(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<CohortState[]> {
  const { rows } = await queryable.query(
    `select id, (is_static or counted_at is not null) as is_known, count_error from cohorts
     where project_id = $1 and id = any($2::int[]) and not deleted`,
    [projectId, ids],
  );
  return rows;
}
