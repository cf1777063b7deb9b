import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errors } from '../errors.ts';

/** Batch exports stand under their project, and under its organization beside those of its other projects. */
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
    of: 'of all projects of an organization',
    access: { narrowsToProjects: true },
  },
] as const;
/** Runs and backfills stand under their project only. */
export const PROJECT_PLACE = PLACES[0];

export const READ = 'batch_export:read';
export const WRITE = 'batch_export:write';

/** The projects whose exports a request may see: that of the path, or those of the organization of the path. */
export function projectIdsOf({ project, organization, caller }: FastifyRequest): number[] {
  if (project) return [project.id];
  const bounds = caller.key.scoped_teams;
  return organization.projects.map(({ id }) => id).filter((id) => bounds.length === 0 || bounds.includes(id));
}

/** Chooses the project of a new export: that of the path, or the one that is meant where the path names an organization. */
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
