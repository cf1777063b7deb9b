import type { Queryable } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit } from '../../tenancy/audit.ts';
import type { ActionKey, ActionRow } from '../rows/actions.ts';

/** Writes down who did what to an action. Call it in the transaction of the change. */
export const auditAction = (
  queryable: Queryable,
  actor: Actor,
  { projectId, actionId }: ActionKey,
  activity: Activity['activity'],
  detail: Record<string, unknown>,
): Promise<void> =>
  audit(queryable, actor, { scope: 'Action', itemId: String(actionId), projectId, activity, detail });

/** What the activity log compares before and after a change. */
export const loggedAction = (row: ActionRow) => ({
  name: row.name,
  description: row.description,
  tags: row.tags,
  post_to_slack: row.post_to_slack,
  slack_message_format: row.slack_message_format,
  steps: row.steps,
  pinned_at: row.pinned_at,
  deleted: row.deleted,
});
