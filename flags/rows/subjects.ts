import type { Queryable } from '../../db/pool.ts';

/** Larger properties are read only as far as they are needed. */
const WHOLE_UP_TO = 8_192;

export interface WantedPerson {
  projectId: number;
  distinctId: string;
  /** JSON: the names of the properties that are needed. */
  names: string;
}

export interface WantedGroup {
  projectId: number;
  index: number;
  key: string;
  names: string;
}

const properties = (owner: string) => `case when pg_column_size(${owner}.properties) <= ${WHOLE_UP_TO}
  then ${owner}.properties::text
  else coalesce((select jsonb_object_agg(name, ${owner}.properties -> name)
    from jsonb_array_elements_text(a.names::jsonb) as name where ${owner}.properties ? name), '{}')::text end`;

/** Reads the properties of persons, in the order of the question: JSON, or null where there is no person. */
export async function readPersons(
  queryable: Queryable,
  wanted: readonly WantedPerson[],
): Promise<(string | null)[]> {
  const { rows } = await queryable.query({
    name: 'flag-persons',
    text: `select ${properties('p')} as properties
     from unnest($1::int[], $2::text[], $3::text[]) with ordinality as a (project_id, distinct_id, names, place)
     left join person_distinct_ids d on d.project_id = a.project_id and d.distinct_id = a.distinct_id
     left join persons p on p.project_id = a.project_id and p.id = d.person_id
     order by a.place`,
    values: [
      wanted.map((one) => one.projectId),
      wanted.map((one) => one.distinctId),
      wanted.map((one) => one.names),
    ],
  });
  return rows.map((row) => row.properties);
}

/** The same for groups. */
export async function readGroups(
  queryable: Queryable,
  wanted: readonly WantedGroup[],
): Promise<(string | null)[]> {
  const { rows } = await queryable.query({
    name: 'flag-groups',
    text: `select ${properties('g')} as properties
     from unnest($1::int[], $2::int[], $3::text[], $4::text[]) with ordinality
       as a (project_id, group_type_index, group_key, names, place)
     left join groups g on g.project_id = a.project_id and g.group_type_index = a.group_type_index
       and g.group_key = a.group_key
     order by a.place`,
    values: [
      wanted.map((one) => one.projectId),
      wanted.map((one) => one.index),
      wanted.map((one) => one.key),
      wanted.map((one) => one.names),
    ],
  });
  return rows.map((row) => row.properties);
}
