import { insertMembership } from '../db/memberships.ts';
import { insertOrganization } from '../db/organizations.ts';
import type { Queryable } from '../db/pool.ts';
import { insertProject, type ProjectRow } from '../db/projects.ts';
import { updateUser } from '../db/users.ts';
import { uuidv7 } from '../db/uuid.ts';
import { OWNER } from './levels.ts';
import { slugCandidate } from './slug.ts';
import { newProjectToken, randomLetters } from './tokens.ts';

const SLUG_ATTEMPTS = 10;

/**
 * Creates an organization with a default project. The user becomes its owner and works in it from now on. Call it in a
 * transaction. Two organizations that are created at once with the same name get different slugs.
 */
export async function createOrganization(
  queryable: Queryable,
  input: { name: string; userId: number; projectName?: string },
): Promise<{ organizationId: string; project: ProjectRow }> {
  const organizationId = uuidv7();
  let inserted = false;
  for (let attempt = 0; attempt < SLUG_ATTEMPTS && !inserted; attempt += 1) {
    const slug = slugCandidate(input.name, attempt, randomLetters);
    inserted = await insertOrganization(queryable, { id: organizationId, name: input.name, slug });
  }
  if (!inserted)
    throw new Error(`no free slug was found for the organization "${input.name}" in ${SLUG_ATTEMPTS} tries`);
  await insertMembership(queryable, {
    id: uuidv7(),
    organization_id: organizationId,
    user_id: input.userId,
    level: OWNER,
  });
  const project = await createProject(queryable, {
    name: input.projectName ?? 'Default project',
    organizationId,
    userId: input.userId,
  });
  return { organizationId, project };
}

/** Creates a project. The user works in it from now on. */
export async function createProject(
  queryable: Queryable,
  input: { name: string; organizationId: string; userId: number; timezone?: string },
): Promise<ProjectRow> {
  const project = await insertProject(queryable, {
    uuid: uuidv7(),
    organization_id: input.organizationId,
    name: input.name,
    api_token: newProjectToken(),
    ...(input.timezone ? { timezone: input.timezone } : {}),
  });
  await updateUser(queryable, input.userId, {
    current_organization_id: input.organizationId,
    current_project_id: project.id,
  });
  return project;
}
