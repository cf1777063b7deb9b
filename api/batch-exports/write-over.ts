import type { FastifyRequest } from 'fastify';
import type { Transaction } from '../../db/pool.ts';
import { targetsCollide, type WriteTarget } from '../../destinations/write-target.ts';
import type { StoredTarget } from '../../exports/reads/write-target.ts';
import { lockStoreWriters } from '../../exports/rows/batch-exports.ts';
import { maySeeProject } from '../../tenancy/actor.ts';
import { actorOf } from '../actor.ts';
import { errors } from '../errors.ts';

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
  const known = await maySeeProject(client, actorOf(request), other.project_id);
  const which = known ? `the batch export "${other.name}" (${other.id})` : 'another batch export';
  throw errors.validation(
    'invalid_input',
    `This batch export would write over the files of ${which}. Give it another prefix.`,
    'destination__config__prefix',
  );
}
