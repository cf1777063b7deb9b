import { deleteOrganization, lockProjectsOf } from '../db/organizations.ts';
import type { Queryable } from '../db/pool.ts';
import { insertProjectDeletion } from '../db/project-deletions.ts';
import { deleteConfiguration } from '../db/project-tables.ts';
import { deleteProject, projectIdsOf } from '../db/projects.ts';

/**
 * Removes a project with its configuration at once; its schedules are stopped and its data deleted by the
 * maintenance workflow, which finds it in `project_deletions`. False when it is gone already. Run it in a transaction.
 */
export async function removeProject(
  queryable: Queryable,
  projectId: number,
  organizationId: string,
): Promise<boolean> {
  // Nobody may move configuration to the project while it goes.
  await lockProjectsOf(queryable, organizationId);
  if (!(await deleteProject(queryable, projectId))) return false;
  await insertProjectDeletion(queryable, projectId, organizationId);
  await deleteConfiguration(queryable, projectId);
  return true;
}

/**
 * Removes an organization with all its projects; false when it is gone already. Run it in a transaction. A project
 * that is created at the same time is either seen and removed, or refused: it would be lost without a trace.
 */
export async function removeOrganization(queryable: Queryable, organizationId: string): Promise<boolean> {
  if (!(await lockProjectsOf(queryable, organizationId))) return false;
  const projectIds = await projectIdsOf(queryable, organizationId);
  for (const projectId of projectIds) await removeProject(queryable, projectId, organizationId);
  await deleteOrganization(queryable, organizationId);
  return true;
}
