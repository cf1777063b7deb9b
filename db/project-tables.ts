import type { Queryable } from './pool.ts';

/**
 * Every table whose rows belong to a project, in one place: deleting a project and moving its configuration to
 * another one cover a new table as soon as it is listed here. A test compares this list with the database.
 */
export interface ProjectTable {
  name: string;
  /**
   * `configuration` is moved by environments_rollback and deleted with the project; `data` is deleted in the
   * background after it; `history` outlives the project.
   */
  kind: 'configuration' | 'data' | 'history';
}

export const PROJECT_TABLES: readonly ProjectTable[] = [
  { name: 'activity_log', kind: 'history' },
  { name: 'batch_exports', kind: 'configuration' },
  { name: 'batch_export_runs', kind: 'configuration' },
  { name: 'batch_export_backfills', kind: 'configuration' },
  { name: 'batch_export_logs', kind: 'configuration' },
  { name: 'batch_export_metrics', kind: 'configuration' },
  { name: 'batch_export_pauses', kind: 'configuration' },
  { name: 'batch_export_checks', kind: 'configuration' },
  { name: 'batch_export_health', kind: 'configuration' },
  // Events first: while one is there, so is its id, and it cannot be stored twice.
  { name: 'events', kind: 'data' },
  { name: 'event_ids', kind: 'data' },
  { name: 'person_distinct_ids', kind: 'data' },
  { name: 'deleted_distinct_ids', kind: 'data' },
  { name: 'persons', kind: 'data' },
  { name: 'groups', kind: 'data' },
  { name: 'group_types', kind: 'data' },
  { name: 'ingestion_warnings', kind: 'data' },
  { name: 'project_deletions', kind: 'history' },
  { name: 'wizard_sessions', kind: 'configuration' },
];

/**
 * Moves the configuration of each source project to its target. Nothing moves twice, even if a target is a source as
 * well.
 */
export async function moveConfiguration(
  queryable: Queryable,
  mappings: ReadonlyMap<number, number>,
  tables: readonly ProjectTable[] = PROJECT_TABLES,
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
  tables: readonly ProjectTable[] = PROJECT_TABLES,
): Promise<void> {
  for (const table of tables.filter((one) => one.kind === 'configuration')) {
    await queryable.query(`delete from ${table.name} where project_id = $1`, [projectId]);
  }
}

/** Deletes up to `limit` rows of a deleted project's data; answers how many. Zero: nothing is left. */
export async function deleteSomeData(
  queryable: Queryable,
  projectId: number,
  limit: number,
  tables: readonly ProjectTable[] = PROJECT_TABLES,
): Promise<number> {
  for (const table of tables.filter((one) => one.kind === 'data')) {
    const { rowCount } = await queryable.query(
      `delete from ${table.name} where ctid = any(array(
         select ctid from ${table.name} where project_id = $1 limit $2)) and project_id = $1`,
      [projectId, limit],
    );
    if (rowCount) return rowCount;
  }
  return 0;
}
