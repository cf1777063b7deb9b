import { containsPattern, prefixPattern } from './like.ts';
import type { Pool, Queryable, Transaction } from './pool.ts';
import { fits, reading } from './reading.ts';
import type { Asker } from './turns.ts';

export interface PersonRow {
  id: string;
  created_at: string;
  is_identified: boolean;
  properties: Record<string, unknown>;
  /** Before which time of storing events their copied properties are in the person's. Null: no event's are yet. */
  copied_through: string | null;
  /** The first of them in the order of their bytes. */
  distinct_ids: string[];
}

export interface PersonQuery {
  projectId: number;
  distinctId?: string | undefined;
  /** Matches in any case. */
  email?: string | undefined;
  /**
   * The id of a person, the beginning of a distinct_id, an email or a name, or words in the middle of an email or a name.
   * An email or a name matches in any case.
   */
  search?: string | undefined;
  /** The same as `search`, if that is a uuid. */
  searchedId?: string | undefined;
  /** How many distinct ids of each person to return. */
  distinctIds: number;
  limit: number;
  offset: number;
}

/**
 * So many persons whose words are not read yet are looked at by a search, the last changed first. There are more only while
 * maintenance is behind.
 */
const MOST_UNREAD = 20_000;

/** Columns of a PersonRow; `limit` is the place of the number of distinct ids. */
const columns = (limit: string) => `p.id, p.created_at, p.is_identified, p.properties,
  (select through from person_carrying) as copied_through,
  array(select d.distinct_id from person_distinct_ids d
    where d.project_id = p.project_id and d.person_id = p.id order by d.distinct_id limit ${limit}) as distinct_ids`;

export async function findPerson(
  queryable: Queryable,
  projectId: number,
  id: string,
  distinctIds: number,
): Promise<PersonRow | undefined> {
  const { rows } = await queryable.query(
    `select ${columns('$3')} from persons p where p.project_id = $1 and p.id = $2`,
    [projectId, id, distinctIds],
  );
  return rows[0];
}

/** Finds persons by their ids, as many of the first ones as fit into a page. Unknown ids have none. */
export async function findPersonsOf(
  readingPool: Pool,
  asker: Asker,
  ids: readonly string[],
  distinctIds: number,
): Promise<PersonRow[]> {
  if (ids.length === 0) return [];
  return reading(readingPool, asker, async (client) => {
    const { rows } = await client.query(
      `with asked as (
         select p.*, at, sum(octet_length(p.properties::text)) over (order by at rows unbounded preceding) as bytes,
           row_number() over (order by at) as number
         from unnest($2::uuid[]) with ordinality as one (id, at)
         join persons p on p.project_id = $1 and p.id = one.id)
       select ${columns('$3')} from asked p where ${fits('p')} order by at`,
      [asker.projectId, ids, distinctIds],
    );
    return rows;
  });
}

/** Finds the ids of persons by their distinct ids. */
export async function findPersonIds(
  queryable: Queryable,
  projectId: number,
  distinctIds: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await queryable.query(
    'select distinct_id, person_id from person_distinct_ids where project_id = $1 and distinct_id = any($2)',
    [projectId, distinctIds],
  );
  return new Map(rows.map((row) => [row.distinct_id, row.person_id]));
}

/**
 * Returns the SQL of a property as persons are indexed by it (migration 0006): in lower case, as much as an index can
 * hold.
 */
const indexed = (name: 'email' | 'name') =>
  `(p.properties ? '${name}' and lower(left(p.properties ->> '${name}', 254)) collate "C"`;

function conditionsOf(query: PersonQuery, values: unknown[]): string {
  const given = (value: unknown) => `$${values.push(value)}`;
  const conditions = ['p.project_id = $1'];
  const { distinctId, email, search, searchedId } = query;
  if (distinctId !== undefined) {
    conditions.push(`p.id = (select d.person_id from person_distinct_ids d
      where d.project_id = $1 and d.distinct_id = ${given(distinctId)})`);
  }
  if (email !== undefined) {
    const text = given(email);
    conditions.push(`${indexed('email')} = lower(left(${text}, 254))
      and lower(p.properties ->> 'email') = lower(${text}))`);
  }
  if (search !== undefined) {
    const pattern = given(prefixPattern(search));
    const text = given(search);
    const id = searchedId === undefined ? '' : `select ${given(searchedId)}::uuid union`;
    const inside = `like lower(${given(containsPattern(search))})`;
    // What has all words of a text need not have the text. One word needs no second look.
    const exact = /^[\x80-\u{10ffff}a-z0-9]+$/iu.test(search)
      ? ''
      : `and exists (select from persons named where named.project_id = $1 and named.id = w.person_id
          and lower(person_names(named.properties)) ${inside})`;
    // Each kind of name is searched in its own index. An OR of them would read every person, and so may a join with what was
    // found, whose number Postgres guesses badly. The words name their project, so no index is asked for it.
    conditions.push(`p.id = any(array(${id}
      select w.person_id from person_words w
        where w.project_id + 0 = $1 and w.words @@ word_query($1, ${text}) ${exact}
      union select changed.id from (
          select unread.id, person_names(unread.properties) as names from persons unread
          where unread.project_id = $1 and unread.changed_at > coalesce(
            (select r.through from person_words_read r where r.project_id = $1), '-infinity')
          order by unread.changed_at desc limit ${MOST_UNREAD}) as changed
        where lower(changed.names) ${inside} and word_vector($1, changed.names) @@ word_query($1, ${text})
      union
      select d.person_id from person_distinct_ids d where d.project_id = $1 and d.distinct_id like ${pattern}
      union select p.id from persons p where p.project_id = $1 and ${indexed('email')} like lower(${pattern}))
      union select p.id from persons p where p.project_id = $1 and ${indexed('name')} like lower(${pattern}))))`);
  }
  return conditions.join(' and ');
}

/** Lists persons, newest first. */
export async function listPersons(
  readingPool: Pool,
  query: PersonQuery,
  signal?: AbortSignal,
): Promise<{ count: number; rows: PersonRow[] }> {
  return reading(readingPool, { projectId: query.projectId, signal }, async (client) => {
    const values: unknown[] = [query.projectId];
    const where = conditionsOf(query, values);
    const counted = await client.query(`select count(*)::int as count from persons p where ${where}`, values);
    const order = 'order by p.created_at desc, p.id desc';
    const { rows } = await client.query(
      `with shown as (
         select p.* from persons p where ${where} ${order}
         limit $${values.length + 1} offset $${values.length + 2}),
       fitting as (
         select p.*, sum(octet_length(p.properties::text)) over (${order} rows unbounded preceding) as bytes,
           row_number() over (${order}) as number from shown p)
       select ${columns(`$${values.length + 3}`)} from fitting p where ${fits('p')} ${order}`,
      [...values, query.limit, query.offset, query.distinctIds],
    );
    return { count: counted.rows[0].count, rows };
  });
}

/** Lists all distinct ids of a person. An unknown person has none. */
export async function distinctIdsOf(
  client: Transaction,
  projectId: number,
  personId: string,
): Promise<string[]> {
  const { rows } = await client.query(
    'select distinct_id from person_distinct_ids where project_id = $1 and person_id = $2',
    [projectId, personId],
  );
  return rows.map((row) => row.distinct_id);
}

/** The first distinct ids of persons, in byte order, by the id of the person. */
export async function firstDistinctIds(
  queryable: Queryable,
  projectId: number,
  personIds: readonly string[],
  most: number,
): Promise<Map<string, string[]>> {
  const { rows } = await queryable.query(
    `select id, array(select d.distinct_id from person_distinct_ids d
       where d.project_id = $1 and d.person_id = id order by d.distinct_id limit $3) as distinct_ids
     from unnest($2::uuid[]) as id`,
    [projectId, personIds, most],
  );
  return new Map(rows.map((row) => [row.id, row.distinct_ids]));
}

/** A person as an event shows it: one distinct id, and some properties. */
export type PersonOutline = Pick<PersonRow, 'is_identified' | 'distinct_ids' | 'properties'>;

/** Finds the persons that distinct ids belong to now, by distinct id, with only these properties. */
export async function outlinePersons(
  queryable: Queryable,
  projectId: number,
  distinctIds: readonly string[],
  properties: readonly string[],
): Promise<Map<string, PersonOutline>> {
  const { rows } = await queryable.query(
    `select m.distinct_id as key, p.is_identified,
       array(select d.distinct_id from person_distinct_ids d
         where d.project_id = p.project_id and d.person_id = p.id order by d.distinct_id limit 1) as distinct_ids,
       coalesce((select jsonb_object_agg(name, p.properties -> name) from unnest($3::text[]) as name
         where p.properties ? name), '{}') as properties
     from person_distinct_ids m join persons p on p.project_id = m.project_id and p.id = m.person_id
     where m.project_id = $1 and m.distinct_id = any($2)`,
    [projectId, distinctIds, properties],
  );
  return new Map(rows.map(({ key, ...person }) => [key, person]));
}
