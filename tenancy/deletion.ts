import { deleteOrganization } from '../db/organizations.ts';
import type { Queryable } from '../db/pool.ts';
import { insertProjectDeletion } from '../db/project-deletions.ts';
import { deleteConfiguration } from '../db/project-tables.ts';
import { deleteProject, projectIdsOf } from '../db/projects.ts';

/**
 * Removes a project with its configuration at once; its schedules are stopped and its data deleted by the
 * maintenance workflow, which finds it in `project_deletions`. Run it in a transaction.
 */
export async function removeProject(
  queryable: Queryable,
  projectId: number,
  organizationId: string,
): Promise<void> {
  await insertProjectDeletion(queryable, projectId, organizationId);
  await deleteConfiguration(queryable, projectId);
  await deleteProject(queryable, projectId);
}

/** Removes an organization with all its projects. Run it in a transaction. */
export async function removeOrganization(queryable: Queryable, organizationId: string): Promise<number[]> {
  const projectIds = await projectIdsOf(queryable, organizationId);
  for (const projectId of projectIds) await removeProject(queryable, projectId, organizationId);
  await deleteOrganization(queryable, organizationId);
  return projectIds;
}
