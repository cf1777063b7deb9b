import type { PersonMerge } from '../../db/person-writes.ts';
import type { Queryable, Transaction } from '../../db/pool.ts';

/** Moves what is remembered of absorbed persons. What the other person has already stands. */
export async function moveHashKeys(client: Transaction, merges: readonly PersonMerge[]): Promise<void> {
  await client.query(
    `with merged as (select * from unnest($1::int[], $2::uuid[], $3::uuid[]) as merged (project_id, absorbed_id, into_id)),
     moved as (
       delete from feature_flag_hash_keys k using merged m
       where k.project_id = m.project_id and k.person_id = m.absorbed_id
       returning k.project_id, m.into_id, k.flag_key, k.hash_key)
     insert into feature_flag_hash_keys (project_id, person_id, flag_key, hash_key)
     select distinct on (project_id, into_id, flag_key) project_id, into_id, flag_key, hash_key from moved
     order by project_id, into_id, flag_key, hash_key
     on conflict do nothing`,
    [
      merges.map((one) => one.projectId),
      merges.map((one) => one.absorbedId),
      merges.map((one) => one.intoId),
    ],
  );
}

/** Forgets deleted persons. */
export async function deleteHashKeys(
  client: Transaction,
  projectId: number,
  personIds: readonly string[],
): Promise<void> {
  await client.query(
    'delete from feature_flag_hash_keys where project_id = $1 and person_id = any($2::uuid[])',
    [projectId, personIds],
  );
}

/** By which id to count somebody to the rollout of a flag. */
export interface HashKey {
  hashKey: string;
  /** It is remembered of the first distinct id that was asked about, or of its person. */
  isOwn: boolean;
}

/**
 * Remembers by which id to count who has one of these distinct ids, for each flag for which nothing is remembered of them.
 * What belongs to a stored person is remembered by the person.
 */
export async function rememberHashKeys(
  queryable: Queryable,
  projectId: number,
  distinctIds: readonly string[],
  hashKeys: ReadonlyMap<string, string>,
): Promise<void> {
  await queryable.query(
    `with known as (
       select id as distinct_id, d.person_id from unnest($2::text[]) as id
       left join person_distinct_ids d on d.project_id = $1 and d.distinct_id = id),
     wanted as (select * from unnest($3::text[], $4::text[]) as wanted (flag_key, hash_key)),
     of_persons as (
       insert into feature_flag_hash_keys (project_id, person_id, flag_key, hash_key)
       select distinct on (k.person_id, w.flag_key) $1::int, k.person_id, w.flag_key, coalesce((
           select e.hash_key from feature_flag_early_hash_keys e
           where e.project_id = $1 and e.distinct_id = k.distinct_id and e.flag_key = w.flag_key), w.hash_key)
       from known k, wanted w where k.person_id is not null
       order by k.person_id, w.flag_key
       on conflict do nothing)
     insert into feature_flag_early_hash_keys (project_id, distinct_id, flag_key, hash_key)
     select $1::int, k.distinct_id, w.flag_key, w.hash_key from known k, wanted w
     where k.person_id is null order by 2, 3
     on conflict do nothing`,
    [projectId, distinctIds, [...hashKeys.keys()], [...hashKeys.values()]],
  );
}

/**
 * Reads by which id to count somebody, for each flag of which something is remembered. Of several answers, that of the
 * person of an earlier distinct id of the list counts, then what was remembered before that person was stored.
 */
export async function readHashKeys(
  queryable: Queryable,
  projectId: number,
  distinctIds: readonly string[],
): Promise<Map<string, HashKey>> {
  const { rows } = await queryable.query(
    `with asked as (select id, place from unnest($2::text[]) with ordinality as asked (id, place))
     select distinct on (flag_key) flag_key, hash_key, place = 1 as is_own from (
       select k.flag_key, k.hash_key, a.place, 0 as early from asked a
       join person_distinct_ids d on d.project_id = $1 and d.distinct_id = a.id
       join feature_flag_hash_keys k on k.project_id = $1 and k.person_id = d.person_id
       union all
       select e.flag_key, e.hash_key, a.place, 1 from asked a
       join feature_flag_early_hash_keys e on e.project_id = $1 and e.distinct_id = a.id) found
     order by flag_key, place, early`,
    [projectId, distinctIds],
  );
  return new Map(rows.map((row) => [row.flag_key, { hashKey: row.hash_key, isOwn: row.is_own }]));
}

/** Forgets what was remembered of distinct ids whose persons never came. Returns how many rows are gone. */
export async function expireEarlyHashKeys(
  queryable: Queryable,
  days: number,
  limit: number,
): Promise<number> {
  const { rowCount } = await queryable.query(
    `delete from feature_flag_early_hash_keys where ctid = any(array(
       select ctid from feature_flag_early_hash_keys
       where created_at < clock_timestamp() - make_interval(days => $1) limit $2))`,
    [days, limit],
  );
  return rowCount ?? 0;
}
