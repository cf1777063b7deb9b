import type { Queryable } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit, changes } from '../../tenancy/audit.ts';
import { shownContent } from '../reads/shown-function.ts';
import type { FunctionKey, FunctionRow } from '../rows/functions.ts';

/** Writes down who did what to a function. Call it in the transaction of the change. */
export const auditFunction = (
  queryable: Queryable,
  actor: Actor,
  { projectId, functionId }: FunctionKey,
  activity: Activity['activity'],
  detail: Record<string, unknown>,
): Promise<void> =>
  audit(queryable, actor, { scope: 'HogFunction', itemId: functionId, projectId, activity, detail });

/** What of a function the activity log compares. */
function audited(row: FunctionRow): Record<string, unknown> {
  const { name, description, enabled, icon_url, execution_order: priority, deleted_at } = row;
  return {
    name,
    description,
    enabled,
    icon_url,
    priority,
    deleted: deleted_at !== null,
    ...shownContent(row),
  };
}

/** Lists what a change did. A replaced secret is named, and its value is not shown. */
export function functionChanges(before: FunctionRow, after: FunctionRow, secretsReplaced: boolean) {
  const { changes: found } = changes(audited(before), audited(after));
  const masked = { field: 'encrypted_inputs', before: 'masked', after: 'masked' };
  return { name: after.name, changes: secretsReplaced ? [...found, masked] : found };
}
