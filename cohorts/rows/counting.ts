import type { Queryable, Transaction } from '../../db/pool.ts';

/** Larger properties are read only as far as they are needed. */
const WHOLE_UP_TO = 8_192;
const PAGE_ROWS = 1_000;
const PAGE_BYTES = 16 * 1024 * 1024;

export interface ProjectToCount {
  project_id: number;
  timezone: string;
}

/** Lists the projects that have a cohort that was changed since it was counted, or was last counted so many minutes ago. */
export async function projectsToCount(queryable: Queryable, minutes: number): Promise<ProjectToCount[]> {
  const { rows } = await queryable.query(
    `select p.id as project_id, p.timezone from projects p where exists (
       select from cohorts c where c.project_id = p.id and not c.is_static and not c.deleted
         and (c.counted_at is null or c.counted_at < c.updated_at
           or c.counted_at < clock_timestamp() - make_interval(mins => $1)))
     order by p.id`,
    [minutes],
  );
  return rows;
}

/** The time of the database, which the times of changes come from. */
export async function timeNow(queryable: Queryable): Promise<string> {
  const { rows } = await queryable.query('select clock_timestamp()::text as now');
  return rows[0].now;
}

/** Some persons of a project, in the order of their ids. */
export interface PersonToCount {
  id: string;
  /** JSON: at least the properties that were asked for. */
  properties: string;
  /** Of which of the static cohorts they are members. */
  cohorts: number[];
}

/** Reads the next persons of a project. A page ends early where they have much to read. */
export async function readPersons(
  queryable: Queryable,
  projectId: number,
  after: string | null,
  wanted: { names: readonly string[]; staticCohorts: readonly number[] },
): Promise<PersonToCount[]> {
  const { rows } = await queryable.query({
    name: 'cohort-persons',
    text: `with page as (
       select p.id, case when pg_column_size(p.properties) <= ${WHOLE_UP_TO} then p.properties::text
         else coalesce((select jsonb_object_agg(name, p.properties -> name)
           from unnest($3::text[]) as name where p.properties ? name), '{}')::text end as properties
       from persons p where p.project_id = $1 and ($2::uuid is null or p.id > $2) order by p.id limit ${PAGE_ROWS}),
     sized as (
       select *, row_number() over (order by id) as number, sum(octet_length(properties)) over (order by id) as bytes
       from page)
     select id, properties, array(select cohort_id from cohort_people m
       where m.project_id = $1 and m.person_id = sized.id and m.cohort_id = any($4::int[])) as cohorts
     from sized where bytes <= ${PAGE_BYTES} or number = 1 order by id`,
    values: [projectId, after, wanted.names, wanted.staticCohorts],
  });
  return rows;
}

/**
 * Makes these persons, and no others of this range of ids, members of cohorts that are not static. A range without an end
 * goes to the last id.
 */
export async function storeMembers(
  client: Transaction,
  projectId: number,
  range: { after: string | null; upTo: string | null },
  cohortIds: readonly number[],
  members: readonly { cohortId: number; personId: string }[],
): Promise<void> {
  await client.query(
    `with found as (select * from unnest($5::int[], $6::uuid[]) as found (cohort_id, person_id)),
     gone as (
       delete from cohort_people c where c.project_id = $1 and c.cohort_id = any($2::int[])
         and ($3::uuid is null or c.person_id > $3) and ($4::uuid is null or c.person_id <= $4)
         and not exists (select from found f where f.cohort_id = c.cohort_id and f.person_id = c.person_id))
     insert into cohort_people (project_id, cohort_id, person_id)
     select $1, cohort_id, person_id from found order by 2, 3 on conflict do nothing`,
    [
      ...[projectId, cohortIds, range.after, range.upTo],
      members.map((one) => one.cohortId),
      members.map((one) => one.personId),
    ],
  );
}

/** Stores how many members cohorts have, as of a time, and why that of others is not known. */
export async function storeCounts(
  queryable: Queryable,
  projectId: number,
  at: string,
  cohorts: readonly { id: number; failure: string | null }[],
): Promise<void> {
  await queryable.query(
    `update cohorts c set counted_at = $2, count_error = a.failure,
       count = (select count(*) from cohort_people m where m.project_id = $1 and m.cohort_id = c.id)
     from unnest($3::int[], $4::text[]) as a (id, failure) where c.project_id = $1 and c.id = a.id`,
    [projectId, at, cohorts.map((one) => one.id), cohorts.map((one) => one.failure)],
  );
}
