import type { FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import { projectIdsOf } from './places.ts';

/** The project of a new export: that of the path, or the one that is meant where the path names an organization only. */
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
