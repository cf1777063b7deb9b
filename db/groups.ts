import { instantOf, takeStamp } from './horizon.ts';
import { containsPattern, prefixPattern } from './like.ts';
import type { Pool, Queryable, Transaction } from './pool.ts';
import { fits, reading } from './reading.ts';

export interface GroupRow {
  id: string;
  group_type_index: number;
  /** The name of the type; null if the type is gone. */
  group_type: string | null;
  group_key: string;
  properties: Record<string, unknown>;
  created_at: string;
  updated_at: string;
}

const ALL_TYPES = [0, 1, 2, 3, 4];

const COLUMNS = 'id, group_type_index, group_type, group_key, properties, created_at, updated_at';

const SELECT = `select g.id, g.group_type_index, t.group_type, g.group_key, g.properties, g.created_at, g.updated_at
  from groups g left join group_types t on t.project_id = g.project_id and t.group_type_index = g.group_type_index`;

/** Lists groups in the order of their types and keys. */
export async function listGroups(
  readingPool: Pool,
  query: {
    projectId: number;
    groupTypeIndex?: number | undefined;
    /** The beginning of the key, or words of the key or of a property that is a text. Of the words, case does not matter. */
    search?: string | undefined;
    /** A part of the key, in any case. */
    groupKey?: string | undefined;
    limit: number;
    offset: number;
  },
  signal?: AbortSignal,
): Promise<{ count: number; rows: GroupRow[] }> {
  const types = query.groupTypeIndex === undefined ? ALL_TYPES : [query.groupTypeIndex];
  const values: unknown[] = [query.projectId, types];
  const given = (value: unknown) => `$${values.push(value)}`;
  // With all types named, the index on the key finds the matching keys in each of them.
  const conditions = ['g.project_id = $1', 'g.group_type_index = any($2::smallint[])'];
  const { search, groupKey } = query;
  if (groupKey) conditions.push(`g.group_key ilike ${given(containsPattern(groupKey))}`);
  if (search) {
    const inside = `like lower(${given(containsPattern(search))})`;
    // What has all words of a text need not have the text.
    conditions.push(`g.id in (
      select k.id from groups k where k.project_id = $1 and k.group_type_index = any($2::smallint[])
        and k.group_key like ${given(prefixPattern(search))}
      union select w.id from groups w where w.project_id = $1
        and word_vector(w.project_id, group_names(w.group_key, w.properties)) @@ word_query($1, ${given(search)})
        and (lower(w.group_key) ${inside} or exists (
          select from jsonb_each_text(w.properties) as one (name, value) where lower(one.value) ${inside})))`);
  }
  const where = conditions.join(' and ');
  const at = values.length;
  return reading(readingPool, { projectId: query.projectId, signal }, async (client) => {
    const counted = await client.query(`select count(*)::int as count from groups g where ${where}`, values);
    const order = 'order by group_type_index, group_key';
    const { rows } = await client.query(
      `select ${COLUMNS} from (
         select *, sum(octet_length(properties::text)) over (${order} rows unbounded preceding) as bytes,
           row_number() over (${order}) as number
         from (${SELECT} where ${where} order by g.group_type_index, g.group_key limit $${at + 1} offset $${at + 2}) as shown) as g
       where ${fits('g')} ${order}`,
      [...values, query.limit, query.offset],
    );
    return { count: counted.rows[0].count, rows };
  });
}

export async function findGroup(
  queryable: Queryable,
  projectId: number,
  id: string,
): Promise<GroupRow | undefined> {
  const { rows } = await queryable.query(`${SELECT} where g.project_id = $1 and g.id = $2`, [projectId, id]);
  return rows[0];
}

export async function findGroupByKey(
  queryable: Queryable,
  projectId: number,
  groupTypeIndex: number,
  groupKey: string,
): Promise<GroupRow | undefined> {
  const { rows } = await queryable.query(
    `${SELECT} where g.project_id = $1 and g.group_type_index = $2 and g.group_key = $3`,
    [projectId, groupTypeIndex, groupKey],
  );
  return rows[0];
}

/** Finds the names of groups that have one, in their property `name`. */
export async function namesOfGroups(
  queryable: Queryable,
  projectId: number,
  groups: readonly { index: number; key: string }[],
): Promise<{ index: number; key: string; name: string }[]> {
  const { rows } = await queryable.query(
    `select g.group_type_index as index, g.group_key as key, left(g.properties ->> 'name', 400) as name
     from unnest($2::int[], $3::text[]) as asked (index, key)
     join groups g on g.project_id = $1 and g.group_type_index = asked.index and g.group_key = asked.key
     where jsonb_typeof(g.properties -> 'name') = 'string'`,
    [projectId, groups.map((one) => one.index), groups.map((one) => one.key)],
  );
  return rows;
}

/**
 * Deletes a group, in the transaction of the caller. Its last state stays in deleted_groups, with the time of the horizon, so
 * that exports report the deletion. Returns false if there is no such group.
 */
export async function deleteGroup(client: Transaction, projectId: number, id: string): Promise<boolean> {
  const stamp = await takeStamp(client);
  const { rowCount } = await client.query(
    `with gone as (
       delete from groups where project_id = $1 and id = $2
       returning project_id, group_type_index, group_key, version, created_at)
     insert into deleted_groups as known
       (project_id, group_type_index, group_key, version, created_at, changed_at)
     select project_id, group_type_index, group_key, version + 1, created_at, ${instantOf('$3::bigint')} from gone
     on conflict (project_id, group_type_index, group_key) do update set
       version = greatest(known.version + 1, excluded.version),
       created_at = excluded.created_at,
       changed_at = excluded.changed_at`,
    [projectId, id, stamp],
  );
  return rowCount === 1;
}
