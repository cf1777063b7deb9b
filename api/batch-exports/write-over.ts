import type { FastifyRequest } from 'fastify';
import type { Transaction } from '../../db/pool.ts';
import { findMemberProject } from '../../db/projects.ts';
import { targetsCollide, type WriteTarget } from '../../destinations/write-target.ts';
import type { StoredTarget } from '../../exports/reads/write-target.ts';
import { lockStoreWriters } from '../../exports/rows/batch-exports.ts';
import { errors } from '../errors.ts';

/** Whether the caller may know what is in this project. */
async function maySee(client: Transaction, { caller }: FastifyRequest, projectId: number): Promise<boolean> {
  const { scoped_teams: teams, scoped_organizations: organizations } = caller.key;
  if (teams.length > 0 && !teams.includes(projectId)) return false;
  const project = await findMemberProject(client, caller.user.id, projectId);
  return (
    project !== undefined && (organizations.length === 0 || organizations.includes(project.organization_id))
  );
}

/**
 * Refuses an export that would write the same keys as another one. What is saved in the same transaction holds: nobody
 * else saves an export for the same store before it ends.
 */
export async function refuseWritingOver(
  client: Transaction,
  request: FastifyRequest,
  exportId: string,
  target: StoredTarget | null,
): Promise<void> {
  if (target === null) return;
  const writers = await lockStoreWriters(client, target.store);
  const other = writers.find(
    (one) => one.id !== exportId && targetsCollide(target.target, one.write_target as WriteTarget),
  );
  if (!other) return;
  const known = await maySee(client, request, other.project_id);
  const which = known ? `the batch export "${other.name}" (${other.id})` : 'another batch export';
  throw errors.validation(
    'invalid_input',
    `This batch export would write over the files of ${which}. Give it another prefix.`,
    'destination__config__prefix',
  );
}
