import { jsonbArray } from './binary-arrays.ts';
import { instantOf } from './horizon.ts';
import type { Transaction } from './pool.ts';
import { timestamptzText } from './timestamptz.ts';

/** How many group types a project can have. */
export const MOST_GROUP_TYPES = 5;

/** Returns the indexes of a project's group types by their names. */
export async function readGroupTypes(client: Transaction, projectId: number): Promise<Map<string, number>> {
  const { rows } = await client.query(
    'select group_type, group_type_index from group_types where project_id = $1',
    [projectId],
  );
  return new Map(rows.map((row) => [row.group_type, row.group_type_index]));
}

/**
 * Gives a type the lowest free index. If another transaction takes this index at the same time, waits for that
 * transaction and does nothing. The caller then reads the types again.
 */
export async function addGroupType(client: Transaction, projectId: number, type: string): Promise<void> {
  await client.query(
    `insert into group_types (project_id, group_type, group_type_index)
     select $1, $2, free.index from generate_series(0, $3::int - 1) as free (index)
     where not exists (select from group_types where project_id = $1 and group_type_index = free.index)
     order by free.index limit 1
     on conflict do nothing`,
    [projectId, type, MOST_GROUP_TYPES],
  );
}

/** A group to write: created if it does not exist, otherwise its properties are merged with these. */
export interface GroupValues {
  projectId: number;
  groupTypeIndex: number;
  key: string;
  id: string;
  /** Milliseconds. */
  createdAt: number;
  /** JSON. */
  text: string;
}

interface GroupKey {
  project_id: number;
  group_type_index: number;
  group_key: string;
}

const keyOf = (row: GroupKey) => `${row.project_id}:${row.group_type_index}:${row.group_key}`;

/**
 * Writes groups in the order of their keys. `stamp` is the inserted_at of the transaction. Returns the groups that are not
 * written because they would exceed `mostBytes`.
 */
export async function writeGroups(
  client: Transaction,
  groups: readonly GroupValues[],
  stamp: string,
  mostBytes: number,
): Promise<GroupValues[]> {
  const values = [
    groups.map((one) => one.projectId),
    groups.map((one) => one.groupTypeIndex),
    groups.map((one) => one.key),
    groups.map((one) => one.id),
    groups.map((one) => timestamptzText(one.createdAt)),
    jsonbArray(groups.map((one) => one.text)),
  ];
  const { rows: written } = await client.query(
    `insert into groups as known
       (project_id, group_type_index, group_key, id, created_at, updated_at, properties, version, changed_at)
     select project_id, group_type_index, group_key, id, created_at, now(), properties, 0, ${instantOf('$8::bigint')}
     from unnest($1::int[], $2::smallint[], $3::text[], $4::uuid[], $5::timestamptz[], $6::jsonb[])
       as new (project_id, group_type_index, group_key, id, created_at, properties)
     order by project_id, group_type_index, group_key collate "C"
     on conflict (project_id, group_type_index, group_key) do update
     set properties = known.properties || excluded.properties, version = known.version + 1, updated_at = now(),
       changed_at = excluded.changed_at
     where known.properties || excluded.properties <> known.properties
       and octet_length((known.properties || excluded.properties)::text) <= $7
     returning project_id, group_type_index, group_key, version`,
    [...values, mostBytes, stamp],
  );
  const created = written.filter(({ version }) => version === 0);
  if (created.length > 0) await continueVersions(client, created);
  if (written.length === groups.length) return [];
  // The other groups had nothing new, or were refused for their size.
  const { rows: refused } = await client.query(
    `select known.project_id, known.group_type_index, known.group_key
     from unnest($1::int[], $2::smallint[], $3::text[], $4::jsonb[])
       as new (project_id, group_type_index, group_key, properties)
     join groups known using (project_id, group_type_index, group_key)
     where octet_length((known.properties || new.properties)::text) > $5`,
    [values[0], values[1], values[2], values[5], mostBytes],
  );
  const names = new Set(refused.map(keyOf));
  return groups.filter((one) =>
    names.has(keyOf({ project_id: one.projectId, group_type_index: one.groupTypeIndex, group_key: one.key })),
  );
}

/**
 * Gives groups that were deleted before a version behind the one of the deletion. The caller has created them: whoever deletes
 * them next waits for it. So this statement, which begins after that, sees every deletion that came first.
 */
async function continueVersions(client: Transaction, created: readonly GroupKey[]): Promise<void> {
  await client.query(
    `with back as (
       delete from deleted_groups d
       using unnest($1::int[], $2::smallint[], $3::text[]) as new (project_id, group_type_index, group_key)
       where d.project_id = new.project_id and d.group_type_index = new.group_type_index
         and d.group_key = new.group_key collate "C"
       returning d.project_id, d.group_type_index, d.group_key, d.version)
     update groups g set version = back.version + 1 from back
     where g.project_id = back.project_id and g.group_type_index = back.group_type_index
       and g.group_key = back.group_key`,
    [
      created.map((one) => one.project_id),
      created.map((one) => one.group_type_index),
      created.map((one) => one.group_key),
    ],
  );
}
