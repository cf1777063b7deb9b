import type { Queryable } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit } from '../../tenancy/audit.ts';
import type { IntegrationKey } from '../rows/integrations.ts';

/** Writes down who did what to an integration. Call it in the transaction of the change. */
export const auditIntegration = (
  queryable: Queryable,
  actor: Actor,
  { projectId, integrationId }: IntegrationKey,
  activity: Activity['activity'],
  detail: Record<string, unknown>,
): Promise<void> =>
  audit(queryable, actor, {
    scope: 'Integration',
    itemId: String(integrationId),
    projectId,
    activity,
    detail,
  });

/** What stands for secrets in the activity log. */
const MASKED = 'masked';

/** Says that secrets were replaced. Nobody learns whether they differ from the old ones. */
export const maskedChanges = (keys: readonly string[]) =>
  keys.map((key) => ({ field: `config__${key}`, before: MASKED, after: MASKED }));
