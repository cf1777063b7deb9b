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

/** By what persons are named. An email may belong to several persons, and matches in any case. */
export interface NamedPersons {
  personIds: readonly string[];
  distinctIds: readonly string[];
  emails?: readonly string[];
}

/** Adds persons to a static cohort. Returns the names that belong to nobody. */
export async function addMembers(
  queryable: Queryable,
  projectId: number,
  cohortId: number,
  { personIds, distinctIds, emails = [] }: NamedPersons,
): Promise<string[]> {
  const { rows } = await queryable.query(
    `with asked as (
       select p.id::text as name, (select id from persons where project_id = $1 and id = p.id) as person_id
       from unnest($3::uuid[]) as p (id)
       union all
       select d.id, (select m.person_id from person_distinct_ids m where m.project_id = $1 and m.distinct_id = d.id)
       from unnest($4::text[]) as d (id)
       union all
       select e.email, p.id from unnest($5::text[]) as e (email)
       left join lateral (select p.id from persons p where p.project_id = $1 and p.properties ? 'email'
         and lower(left(p.properties ->> 'email', 254)) collate "C" = lower(left(e.email, 254))
         and lower(p.properties ->> 'email') = lower(e.email)) p on true),
     added as (
       insert into cohort_people (project_id, cohort_id, person_id)
       select distinct $1::int, $2::int, person_id from asked where person_id is not null order by 3
       on conflict do nothing)
     select name from asked where person_id is null`,
    [projectId, cohortId, personIds, distinctIds, emails],
  );
  return rows.map((row) => row.name);
}

/** Takes a person out of a static cohort. Answers whether they were in it. */
export async function removeMember(
  queryable: Queryable,
  projectId: number,
  cohortId: number,
  personId: string,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    'delete from cohort_people where project_id = $1 and cohort_id = $2 and person_id = $3',
    [projectId, cohortId, personId],
  );
  return (rowCount ?? 0) > 0;
}

/** Whether a project has a person. */
export async function hasPerson(queryable: Queryable, projectId: number, personId: string): Promise<boolean> {
  const { rows } = await queryable.query('select from persons where project_id = $1 and id = $2', [
    projectId,
    personId,
  ]);
  return rows.length > 0;
}

/** Lists the members of a static cohort, in the order of their ids. */
export async function listMembers(
  queryable: Queryable,
  projectId: number,
  cohortId: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ count: number; ids: string[] }> {
  const counted = await queryable.query(
    'select count(*)::int as count from cohort_people where project_id = $1 and cohort_id = $2',
    [projectId, cohortId],
  );
  const { rows } = await queryable.query(
    `select person_id from cohort_people where project_id = $1 and cohort_id = $2
     order by person_id limit $3 offset $4`,
    [projectId, cohortId, limit, offset],
  );
  return { count: counted.rows[0].count, ids: rows.map((row) => row.person_id) };
}

/** Counts the members of static cohorts, by cohort. */
export async function countMembers(
  queryable: Queryable,
  projectId: number,
  cohortIds: readonly number[],
): Promise<Map<number, number>> {
  const { rows } = await queryable.query(
    `select cohort_id, count(*)::int as count from cohort_people
     where project_id = $1 and cohort_id = any($2::int[]) group by 1`,
    [projectId, cohortIds],
  );
  return new Map(rows.map((row) => [row.cohort_id, row.count]));
}
