import { type Pool, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { audit } from '../../tenancy/audit.ts';
import { findQuota, setQuota } from '../rows/quotas.ts';

/** Sets how many requests for flags an organization may make in a month. Null: as the setting says. Zero: any number. */
export async function changeQuota(
  pool: Pool,
  actor: Actor,
  organizationId: string,
  requests: number | null,
): Promise<void> {
  await transaction(pool, async (client) => {
    const before = await findQuota(client, organizationId);
    if (!before) throw refuse.absent('There is no such organization.');
    await setQuota(client, organizationId, requests);
    await audit(client, actor, {
      scope: 'Organization',
      itemId: organizationId,
      organizationId,
      activity: 'updated',
      detail: { flag_requests_per_month: { before: before.flag_requests_per_month, after: requests } },
    });
  });
}
