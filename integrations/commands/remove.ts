import { transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { shownIntegration } from '../reads/shown.ts';
import { deleteIntegration, type IntegrationKey } from '../rows/integrations.ts';
import { auditIntegration } from './audit.ts';
import type { IntegrationCommandDependencies } from './dependencies.ts';

/** Deletes an integration and its secrets. What uses it goes on without it. */
export async function removeIntegration(
  { pool }: Pick<IntegrationCommandDependencies, 'pool'>,
  actor: Actor,
  key: IntegrationKey,
): Promise<void> {
  await transaction(pool, async (client) => {
    const row = await deleteIntegration(client, key);
    if (!row) throw refuse.absent();
    const { kind, config } = shownIntegration(row);
    await auditIntegration(client, actor, key, 'deleted', { kind, config });
  });
}
