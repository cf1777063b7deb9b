import {
  booleanArray,
  int4Array,
  int8Array,
  jsonbArray,
  textArray,
  timestampArray,
  uuidArray,
} from './binary-arrays.ts';
import { FollowUp } from './follow-up.ts';
import { instantOf, microsecondsOf } from './horizon.ts';
import type { Transaction } from './pool.ts';

/** A person as ingestion reads and locks it. */
export interface VersionedPersonRow {
  project_id: number;
  id: string;
  /** Milliseconds. */
  created_at: number;
  is_identified: boolean;
  version: number;
  /** Microseconds since 2000, as the horizon counts. */
  changed_at: number;
  /** JSON. */
  properties: string;
}

/** A distinct_id to look up, with its person if the caller knows it already. */
export interface Wanted {
  projectId: number;
  distinctId: string;
  known: { id: string; version: number; changedAt: number } | undefined;
}

// A person that the caller knows as it is costs nothing: its columns are neither computed nor sent. Not only
// the version is compared but the time of the last change too: a person that is deleted and made again may have an old
// version, but never at the same time.
const FIND = `select w.at::int as at, n.*
     from unnest($1::int[], $2::text[], $3::uuid[], $4::bigint[], $5::bigint[]) with ordinality
       as w (project_id, distinct_id, id, version, changed_at, at)
     join person_distinct_ids d on d.project_id = w.project_id and d.distinct_id = w.distinct_id
     join persons p on p.project_id = d.project_id and p.id = d.person_id
     left join lateral (
       select p.project_id, p.id, p.is_identified, p.version,
         (extract(epoch from p.created_at) * 1000)::float8 as created_at,
         ${microsecondsOf('p.changed_at')}::bigint as changed_at,
         p.properties::text as properties
       where p.id is distinct from w.id or p.version <> w.version or p.changed_at <> ${instantOf('w.changed_at')}
     ) n on true`;

type FoundRow = VersionedPersonRow & { at: number };

function findQuery(wanted: readonly Wanted[]) {
  return {
    name: 'find-persons',
    text: FIND,
    values: [
      int4Array(wanted.map((one) => one.projectId)),
      textArray(wanted.map((one) => one.distinctId)),
      uuidArray(wanted.map((one) => one.known?.id)),
      int8Array(wanted.map((one) => one.known?.version)),
      int8Array(wanted.map((one) => one.known?.changedAt)),
    ],
  };
}

/**
 * A person that was found. `at` is its index in the wanted list. `row` is undefined if the caller knows the person as
 * it is.
 */
export interface FoundPerson {
  at: number;
  row: VersionedPersonRow | undefined;
}

const foundOf = (rows: readonly FoundRow[]): FoundPerson[] =>
  rows.map((row) => ({ at: row.at - 1, row: row.id === null ? undefined : row }));

/** Finds the persons of distinct_ids as they are now, without locks. */
export async function findPersons(client: Transaction, wanted: readonly Wanted[]): Promise<FoundPerson[]> {
  const { rows } = await client.query(findQuery(wanted));
  return foundOf(rows);
}

/** Prepares the query of `findPersons` so that it can be sent after a COPY. */
export function findPersonsAfter(wanted: readonly Wanted[]): {
  next: FollowUp<unknown>;
  found: () => Promise<FoundPerson[]>;
} {
  const next = new FollowUp<FoundRow>(findQuery(wanted));
  return { next, found: async () => foundOf(await next.rows) };
}

const LOCK = `select w.at::int as at, p.version
     from unnest($1::int[], $2::uuid[]) with ordinality as w (project_id, id, at)
     join persons p on p.project_id = w.project_id and p.id = w.id
     order by p.project_id, p.id for no key update of p`;

/**
 * Locks persons until the transaction ends, in the order of their keys. Returns their versions, undefined for persons
 * that are gone. No distinct_id comes to a locked person or leaves it.
 */
export async function lockPersons(
  client: Transaction,
  persons: readonly { projectId: number; id: string }[],
): Promise<(number | undefined)[]> {
  const { rows } = await client.query({
    name: 'lock-persons',
    text: LOCK,
    values: [int4Array(persons.map((one) => one.projectId)), uuidArray(persons.map((one) => one.id))],
  });
  const versions: (number | undefined)[] = persons.map(() => undefined);
  for (const { at, version } of rows) versions[at - 1] = version;
  return versions;
}

/** The new state of a person. */
export interface PersonValues {
  projectId: number;
  id: string;
  /** Milliseconds. */
  createdAt: number;
  isIdentified: boolean;
  /** JSON. */
  text: string;
  /** Properties that are copied from events otherwise, and that were set or removed by name. */
  named: ReadonlySet<string>;
}

const columnsOf = (persons: readonly PersonValues[]) => [
  int4Array(persons.map((one) => one.projectId)),
  uuidArray(persons.map((one) => one.id)),
  timestampArray(persons.map((one) => one.createdAt)),
  booleanArray(persons.map((one) => one.isIdentified)),
  jsonbArray(persons.map((one) => one.text)),
  jsonbArray(persons.map(({ named }) => JSON.stringify([...named]))),
];

const NEW = `unnest($1::int[], $2::uuid[], $3::timestamptz[], $4::boolean[], $5::jsonb[], $6::jsonb[])
       as new (project_id, id, created_at, is_identified, properties, named)`;

/** When each of the new names was set last. Another transaction with a later stamp may have been faster. */
const namedAt = (
  before: string,
) => `(select jsonb_object_agg(name, greatest($7::bigint, (${before} ->> name)::bigint))
         from jsonb_array_elements_text(new.named) as name)`;

const INSERT_PERSONS = `insert into persons
       (project_id, id, created_at, is_identified, properties, version, changed_at, named_at)
     select project_id, id, created_at, is_identified, properties, 0, ${instantOf('$7::bigint')},
       case when new.named <> '[]' then ${namedAt("'{}'::jsonb")} end
     from ${NEW}`;

export async function insertPersons(
  client: Transaction,
  persons: readonly PersonValues[],
  stamp: string,
): Promise<void> {
  await client.query({
    name: 'insert-persons',
    text: INSERT_PERSONS,
    values: [...columnsOf(persons), stamp],
  });
}

const UPDATE_PERSONS = `update persons p set created_at = new.created_at, is_identified = new.is_identified,
       properties = new.properties, version = p.version + 1, changed_at = ${instantOf('$7::bigint')},
       named_at = case when new.named = '[]' then p.named_at
         else coalesce(p.named_at, '{}') || ${namedAt('p.named_at')} end
     from ${NEW}
     where p.project_id = new.project_id and p.id = new.id`;

/** Updates persons that this transaction has locked. Each gets the next version. */
export async function updatePersons(
  client: Transaction,
  persons: readonly PersonValues[],
  stamp: string,
): Promise<void> {
  await client.query({
    name: 'update-persons',
    text: UPDATE_PERSONS,
    values: [...columnsOf(persons), stamp],
  });
}

export interface Mapping {
  projectId: number;
  distinctId: string;
  personId: string;
}

const INSERT_IDS = `with
     new as (select * from unnest($1::int[], $2::text[], $3::uuid[]) as new (project_id, distinct_id, person_id)),
     deleted as (
       delete from deleted_distinct_ids d using new
       where d.project_id = new.project_id and d.distinct_id = new.distinct_id
       returning d.project_id, d.distinct_id, d.version)
     insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
     select new.project_id, new.distinct_id, new.person_id, coalesce(deleted.version + 1, 0), ${instantOf('$4::bigint')}
     from new left join deleted on deleted.project_id = new.project_id and deleted.distinct_id = new.distinct_id
     order by new.project_id, new.distinct_id collate "C"
     on conflict do nothing`;

/**
 * Inserts distinct_ids that nobody had. Returns false if another transaction inserted one of them first; the caller
 * must then roll back. The order of the keys keeps two transactions with the same new ids from waiting for each other
 * in a circle.
 */
export async function insertDistinctIds(
  client: Transaction,
  mappings: readonly Mapping[],
  stamp: string,
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'insert-distinct-ids',
    text: INSERT_IDS,
    values: [
      int4Array(mappings.map((one) => one.projectId)),
      textArray(mappings.map((one) => one.distinctId)),
      uuidArray(mappings.map((one) => one.personId)),
      stamp,
    ],
  });
  return rowCount === mappings.length;
}

/** A person that became part of another one. */
export interface PersonMerge {
  projectId: number;
  absorbedId: string;
  intoId: string;
}

/** Persons that became part of others, both locked: their distinct_ids go over, and they are gone. */
export async function absorbPersons(
  client: Transaction,
  merges: readonly PersonMerge[],
  stamp: string,
): Promise<void> {
  await client.query(
    `with
     merged as (select * from unnest($1::int[], $2::uuid[], $3::uuid[]) as merged (project_id, absorbed_id, into_id)),
     moved as (
       update person_distinct_ids d
       set person_id = merged.into_id, version = d.version + 1, changed_at = ${instantOf('$4::bigint')}
       from merged where d.project_id = merged.project_id and d.person_id = merged.absorbed_id)
     delete from persons p using merged where p.project_id = merged.project_id and p.id = merged.absorbed_id`,
    [
      merges.map((one) => one.projectId),
      merges.map((one) => one.absorbedId),
      merges.map((one) => one.intoId),
      stamp,
    ],
  );
}
