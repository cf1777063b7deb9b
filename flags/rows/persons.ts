import type { Queryable } from '../../db/pool.ts';

/** Larger properties are read only as far as they are needed. */
const WHOLE_UP_TO = 8_192;

export interface PersonsWanted {
  projectId: number;
  /** The names of the properties that are needed. */
  names: readonly string[];
  staticCohorts: readonly number[];
  /** The keys of the flags that count persons by an earlier id. */
  flagKeys: readonly string[];
  /** Persons whose needed properties have more bytes are left out. */
  mostBytes: number;
  /** The most distinct ids of a person. */
  mostDistinctIds: number;
  after: string | null;
  limit: number;
}

export interface PersonForFlags {
  id: string;
  distinct_ids: string[];
  /** JSON. Null: they are too large. */
  properties: string | null;
  static_cohorts: number[];
  hash_keys: Record<string, string>;
}

/** Reads persons in the order of their ids, which follow from hashes, so that the first ones are a sample of all. */
export async function personsForFlags(
  queryable: Queryable,
  wanted: PersonsWanted,
): Promise<PersonForFlags[]> {
  const { rows } = await queryable.query(
    `select id, distinct_ids, case when octet_length(properties) <= $6 then properties end as properties,
       static_cohorts, hash_keys
     from (
       select p.id,
         case when pg_column_size(p.properties) <= ${WHOLE_UP_TO} then p.properties::text
           else coalesce((select jsonb_object_agg(name, p.properties -> name) from unnest($2::text[]) as name
             where p.properties ? name), '{}')::text end as properties,
         array(select d.distinct_id from person_distinct_ids d where d.project_id = $1 and d.person_id = p.id
           order by d.distinct_id limit $7) as distinct_ids,
         array(select c.cohort_id from cohort_people c where c.project_id = $1 and c.person_id = p.id
           and c.cohort_id = any($3::int[])) as static_cohorts,
         coalesce((select json_object_agg(k.flag_key, k.hash_key) from feature_flag_hash_keys k
           where k.project_id = $1 and k.person_id = p.id and k.flag_key = any($4::text[])), '{}') as hash_keys
       from persons p where p.project_id = $1 and ($5::uuid is null or p.id > $5)
       order by p.id limit $8) as page
     order by id`,
    [
      wanted.projectId,
      wanted.names,
      wanted.staticCohorts,
      wanted.flagKeys,
      wanted.after,
      wanted.mostBytes,
      wanted.mostDistinctIds,
      wanted.limit,
    ],
  );
  return rows;
}

/** Reads the groups of a type as if they were persons: each has its key as its only id, and as the property `$group_key`. */
export async function groupsForFlags(
  queryable: Queryable,
  {
    projectId,
    groupTypeIndex,
    names,
    mostBytes,
    after,
    limit,
  }: Pick<PersonsWanted, 'projectId' | 'names' | 'mostBytes' | 'after' | 'limit'> & {
    groupTypeIndex: number;
  },
): Promise<PersonForFlags[]> {
  const { rows } = await queryable.query(
    `select id, distinct_ids, case when octet_length(properties) <= $4 then properties end as properties,
       '{}'::int[] as static_cohorts, '{}'::json as hash_keys
     from (
       select g.group_key as id, array[g.group_key] as distinct_ids,
         (case when pg_column_size(g.properties) <= ${WHOLE_UP_TO} then g.properties
           else coalesce((select jsonb_object_agg(name, g.properties -> name) from unnest($3::text[]) as name
             where g.properties ? name), '{}') end || jsonb_build_object('$group_key', g.group_key))::text as properties
       from groups g where g.project_id = $1 and g.group_type_index = $2 and ($5::text is null or g.group_key > $5)
       order by g.group_key limit $6) as page
     order by id`,
    [projectId, groupTypeIndex, names, mostBytes, after, limit],
  );
  return rows;
}
