import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errors } from '../errors.ts';

/** The paths of batch exports: those of one project, and those of all projects of an organization. */
export const PLACES = [
  {
    prefix: '/api/projects/:project_id/batch_exports/',
    params: z.object({ project_id: z.string() }),
    of: 'of a project',
    access: {},
  },
  {
    prefix: '/api/organizations/:organization_id/batch_exports/',
    params: z.object({ organization_id: z.string() }),
    of: 'of an organization',
    access: { narrowsToProjects: true },
  },
] as const;
/** The path of runs and backfills, which only projects have. */
export const PROJECT_PLACE = PLACES[0];

export const READ = 'batch_export:read';
export const WRITE = 'batch_export:write';

/**
 * Lists the projects whose exports a request may see: the project of the path, or those of the organization of the path
 * that the key allows.
 */
export function projectIdsOf({ project, organization, caller }: FastifyRequest): number[] {
  if (project) return [project.id];
  const bounds = caller.key.scoped_teams;
  return organization.projects.map(({ id }) => id).filter((id) => bounds.length === 0 || bounds.includes(id));
}

/**
 * Chooses the project of a new export. If the path names no project, it is the `team_id` of the body, else the only
 * project that the key allows, else the current project of the user.
 */
export function chooseProject(request: FastifyRequest): number {
  const { project, caller, body } = request;
  if (project) return project.id;
  const allowed = projectIdsOf(request);
  const { team_id: wanted } = body as { team_id?: number };
  if (wanted !== undefined) {
    if (allowed.includes(wanted)) return wanted;
    throw errors.validation('does_not_exist', 'This project does not exist.', 'team_id');
  }
  const [only] = allowed;
  if (only !== undefined && allowed.length === 1) return only;
  const current = caller.user.current_project_id;
  if (current !== null && allowed.includes(current)) return current;
  throw errors.validation(
    'required',
    allowed.length === 0
      ? 'The organization has no project.'
      : 'The organization has several projects; say which one the batch export is for.',
    'team_id',
  );
}
