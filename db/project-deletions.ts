import type { Queryable } from './pool.ts';

export interface ProjectDeletionRow {
  project_id: number;
  organization_id: string;
  requested_at: string;
  schedules_stopped_at: string | null;
  data_deleted_at: string | null;
}

export async function insertProjectDeletion(
  queryable: Queryable,
  projectId: number,
  organizationId: string,
): Promise<void> {
  await queryable.query(
    'insert into project_deletions (project_id, organization_id) values ($1, $2) on conflict do nothing',
    [projectId, organizationId],
  );
}

export async function listOpenDeletions(queryable: Queryable, limit: number): Promise<ProjectDeletionRow[]> {
  const { rows } = await queryable.query(
    'select * from project_deletions where data_deleted_at is null order by requested_at, project_id limit $1',
    [limit],
  );
  return rows;
}

export async function markSchedulesStopped(queryable: Queryable, projectId: number): Promise<void> {
  await queryable.query('update project_deletions set schedules_stopped_at = now() where project_id = $1', [
    projectId,
  ]);
}

export async function markDataDeleted(queryable: Queryable, projectId: number): Promise<void> {
  await queryable.query('update project_deletions set data_deleted_at = now() where project_id = $1', [
    projectId,
  ]);
}
