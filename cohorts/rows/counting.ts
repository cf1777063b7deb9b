import type { Queryable, Transaction } from '../../db/pool.ts';
import { lockCohorts } from './cohorts.ts';

/** Larger properties are read only as far as they are needed. */
const WHOLE_UP_TO = 8_192;
const PAGE_ROWS = 1_000;
const PAGE_BYTES = 16 * 1024 * 1024;

export interface ProjectToCount {
  project_id: number;
  timezone: string;
}

/** What an ingest transaction that began before a count may have changed is stored at most so long after it began. */
const UNSEEN_MINUTES = 2;

/**
 * Lists the projects whose cohorts may have other members than were counted: a count is running, a cohort was changed, or so
 * many minutes have passed and persons, members of static cohorts or the time may have changed it. First come those that were
 * worked on longest ago, or never.
 */
export async function projectsToCount(queryable: Queryable, minutes: number): Promise<ProjectToCount[]> {
  const changed = (table: string) => `exists (select from ${table} t where t.project_id = p.id
      and t.changed_at > c.counted_at - make_interval(mins => ${UNSEEN_MINUTES}))`;
  const { rows } = await queryable.query(
    `with c as (
       select project_id, min(counted_at) as counted_at,
         bool_or(counted_at is null or counted_at < updated_at) as is_outdated
       from cohorts where not is_static and not deleted group by project_id)
     select p.id as project_id, p.timezone
     from c join projects p on p.id = c.project_id left join cohort_counts n on n.project_id = p.id
     where n.started_at is not null or c.is_outdated
       or c.counted_at < clock_timestamp() - make_interval(mins => $1)
         and (n.looks_at_time is distinct from false or n.members_changed_at > c.counted_at
           or ${changed('persons')} or ${changed('deleted_distinct_ids')})
     order by n.worked_at nulls first, p.id`,
    [minutes],
  );
  return rows;
}

/** A count of the cohorts of a project that has begun. */
export interface RunningCount {
  /** It decides by the cohorts of this time. It also is what tells one count from another. */
  startedAt: string;
  /** The same in milliseconds. */
  moment: number;
  /** The last person who is decided. Null: nobody is yet. */
  after: string | null;
  /** How many members each cohort has among those who are decided. */
  counts: Map<number, number>;
}

/** Begins a count, or goes on with the one that runs. Changes of cohorts that began before it are over. */
export async function beginCount(client: Transaction, projectId: number): Promise<RunningCount> {
  await lockCohorts(client, projectId);
  const { rows } = await client.query(
    `insert into cohort_counts (project_id, started_at, worked_at) values ($1, clock_timestamp(), clock_timestamp())
     on conflict (project_id) do update
       set started_at = coalesce(cohort_counts.started_at, excluded.started_at), worked_at = excluded.worked_at
     returning started_at::text, extract(epoch from started_at)::float8 * 1000 as moment, after_person, counts`,
    [projectId],
  );
  const { started_at: startedAt, moment, after_person: after, counts } = rows[0];
  const entries = Object.entries(counts as Record<string, number>);
  return { startedAt, moment, after, counts: new Map(entries.map(([id, count]) => [Number(id), count])) };
}

/** Writes down how far a count is. False: it is no longer the one that runs. */
export async function keepCount(
  client: Transaction,
  projectId: number,
  { startedAt, after, counts }: RunningCount,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update cohort_counts set after_person = $3, counts = $4, worked_at = clock_timestamp()
     where project_id = $1 and started_at = $2`,
    [projectId, startedAt, after, JSON.stringify(Object.fromEntries(counts))],
  );
  return (rowCount ?? 0) > 0;
}

/** Ends a count. False: it is no longer the one that runs. */
export async function endCount(
  client: Transaction,
  projectId: number,
  { startedAt }: RunningCount,
  looksAtTime: boolean,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update cohort_counts set started_at = null, after_person = null, counts = '{}', looks_at_time = $3,
       worked_at = clock_timestamp()
     where project_id = $1 and started_at = $2`,
    [projectId, startedAt, looksAtTime],
  );
  return (rowCount ?? 0) > 0;
}

/** Notes that a static cohort of a project got or lost members, for the cohorts that name it. */
export async function noteMembersChanged(queryable: Queryable, projectId: number): Promise<void> {
  await queryable.query(
    `insert into cohort_counts (project_id, members_changed_at) values ($1, clock_timestamp())
     on conflict (project_id) do update set members_changed_at = excluded.members_changed_at`,
    [projectId],
  );
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
  cohorts: readonly { id: number; count: number; failure: string | null }[],
): Promise<void> {
  await queryable.query(
    `update cohorts c set counted_at = $2, count = a.count, count_error = a.failure
     from unnest($3::int[], $4::int[], $5::text[]) as a (id, count, failure)
     where c.project_id = $1 and c.id = a.id`,
    [
      ...[projectId, at, cohorts.map((one) => one.id)],
      cohorts.map((one) => one.count),
      cohorts.map((one) => one.failure),
    ],
  );
}
