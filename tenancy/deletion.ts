import { deleteOrganization, lockProjectsOf } from '../db/organizations.ts';
import { type DeletedPerson, type DoomedPersons, deletePersons } from '../db/person-deletions.ts';
import type { Queryable, Transaction } from '../db/pool.ts';
import { insertProjectDeletion } from '../db/project-deletions.ts';
import { deleteConfiguration } from '../db/project-tables.ts';
import { deleteProject, projectIdsOf } from '../db/projects.ts';
import { closeSqlLogins } from '../db/sql-logins.ts';
import { type Product, projectTables } from './product.ts';

/**
 * Removes a project with its configuration at once. The maintenance workflow finds it in `project_deletions`, stops its
 * schedules and deletes its data. Answers false if the project is gone already. Call it in a transaction.
 */
export async function removeProject(
  queryable: Queryable,
  projectId: number,
  organizationId: string,
  products: readonly Product[],
): Promise<boolean> {
  // Nobody may move configuration to the project while it goes.
  await lockProjectsOf(queryable, organizationId);
  if (!(await deleteProject(queryable, projectId))) return false;
  await insertProjectDeletion(queryable, projectId, organizationId);
  await closeSqlLogins(queryable, projectId);
  await deleteConfiguration(queryable, projectId, projectTables(products));
  return true;
}

/**
 * Removes an organization with all its projects. Answers false if it is gone already. Call it in a transaction. A project
 * that is created at the same time is either seen and removed, or refused: it would be lost without a trace.
 */
export async function removeOrganization(
  queryable: Queryable,
  organizationId: string,
  products: readonly Product[],
): Promise<boolean> {
  if (!(await lockProjectsOf(queryable, organizationId))) return false;
  const projectIds = await projectIdsOf(queryable, organizationId);
  for (const projectId of projectIds) await removeProject(queryable, projectId, organizationId, products);
  await deleteOrganization(queryable, organizationId);
  return true;
}

/** Removes persons of a project, and what products know of them. Call it in a transaction. */
export async function removePersons(
  client: Transaction,
  projectId: number,
  doomed: DoomedPersons,
  products: readonly Product[],
): Promise<DeletedPerson[]> {
  const deleted = await deletePersons(client, projectId, doomed);
  const ids = deleted.flatMap(({ id, absorbed }) => [id, ...absorbed]);
  if (ids.length > 0) for (const product of products) await product.personsDeleted?.(client, projectId, ids);
  return deleted;
}
