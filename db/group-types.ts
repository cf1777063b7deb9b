import type { Queryable } from './pool.ts';
import type { GroupTypeRow } from './projects.ts';

export interface GroupTypeNames {
  group_type_index: number;
  /** Undefined leaves the name as it is. */
  name_singular?: string | null | undefined;
  name_plural?: string | null | undefined;
}

export async function listGroupTypes(queryable: Queryable, projectId: number): Promise<GroupTypeRow[]> {
  const { rows } = await queryable.query(
    `select group_type, group_type_index, name_singular, name_plural from group_types
     where project_id = $1 order by group_type_index`,
    [projectId],
  );
  return rows;
}

/** Changes the names of group types. Returns the indexes that exist. */
export async function renameGroupTypes(
  queryable: Queryable,
  projectId: number,
  names: readonly GroupTypeNames[],
): Promise<Set<number>> {
  const known = new Set<number>();
  for (const { group_type_index: index, name_singular: singular, name_plural: plural } of names) {
    const { rowCount } = await queryable.query(
      `update group_types set
         name_singular = case when $3 then $4 else name_singular end,
         name_plural = case when $5 then $6 else name_plural end
       where project_id = $1 and group_type_index = $2`,
      [projectId, index, singular !== undefined, singular ?? null, plural !== undefined, plural ?? null],
    );
    if (rowCount === 1) known.add(index);
  }
  return known;
}
