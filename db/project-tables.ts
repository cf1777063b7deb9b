import type { Queryable } from './pool.ts';

/** A table whose rows belong to a project: it has a `project_id`. */
export interface ProjectTable {
  name: string;
  /**
   * `configuration` is moved by environments_rollback and deleted with the project. `data` is deleted in the background
   * after that. `history` outlives the project.
   */
  kind: 'configuration' | 'data' | 'history';
}

/**
 * The tables that belong to no product, in the order in which their rows are deleted. Products list theirs in their
 * manifests; `projectTables` in tenancy/product.ts combines the lists. A test compares them with the database.
 */
export const CORE_TABLES: readonly ProjectTable[] = [
  { name: 'activity_log', kind: 'history' },
  // Events first: while one is there, so is its id, and it cannot be stored twice.
  { name: 'events', kind: 'data' },
  { name: 'event_spans', kind: 'data' },
  { name: 'event_ids', kind: 'data' },
  { name: 'event_id_blocks', kind: 'data' },
  { name: 'person_distinct_ids', kind: 'data' },
  { name: 'deleted_distinct_ids', kind: 'data' },
  { name: 'person_words', kind: 'data' },
  { name: 'person_words_read', kind: 'data' },
  { name: 'persons', kind: 'data' },
  { name: 'groups', kind: 'data' },
  { name: 'deleted_groups', kind: 'data' },
  { name: 'group_types', kind: 'data' },
  { name: 'ingestion_warnings', kind: 'data' },
  { name: 'definitions', kind: 'data' },
  { name: 'project_deletions', kind: 'history' },
  // A login stays with the project whose rows it sees. Its row goes with its role.
  { name: 'sql_logins', kind: 'history' },
  { name: 'wizard_sessions', kind: 'configuration' },
];

/**
 * Moves the configuration of each source project to its target. Nothing moves twice, even if a target is a source as
 * well.
 */
export async function moveConfiguration(
  queryable: Queryable,
  mappings: ReadonlyMap<number, number>,
  tables: readonly ProjectTable[],
): Promise<number> {
  let moved = 0;
  for (const table of tables.filter((one) => one.kind === 'configuration')) {
    const { rowCount } = await queryable.query(
      `update ${table.name} set project_id = mapping.target
       from unnest($1::int[], $2::int[]) as mapping (source, target)
       where project_id = mapping.source and mapping.source <> mapping.target`,
      [[...mappings.keys()], [...mappings.values()]],
    );
    moved += rowCount ?? 0;
  }
  return moved;
}

export async function deleteConfiguration(
  queryable: Queryable,
  projectId: number,
  tables: readonly ProjectTable[],
): Promise<void> {
  for (const table of tables.filter((one) => one.kind === 'configuration')) {
    await queryable.query(`delete from ${table.name} where project_id = $1`, [projectId]);
  }
}
