import { isIP } from 'node:net';
import { insertActivities } from '../db/activity-log.ts';
import type { Queryable } from '../db/pool.ts';
import type { Actor } from './actor.ts';

export interface Activity {
  /** What kind of thing was changed: `Organization`, `Project`, `PersonalAPIKey` … */
  scope: string;
  /** Empty if the thing is not stored. */
  itemId: string;
  activity:
    | 'created'
    | 'updated'
    | 'deleted'
    | 'rolled'
    | 'authenticated'
    | 'rolled_back'
    | 'backfilled'
    | 'retried'
    | 'cancelled'
    | 'started'
    | 'tested'
    | 'draft_updated'
    | 'draft_discarded'
    | 'published'
    | 'revision_restored'
    | 'rerun'
    | 'replayed'
    | 'paused'
    | 'broadcast'
    | 'resumed'
    | 'dismissed'
    | 'invocations_cancelled';
  /** Default: the organization of the project. */
  organizationId?: string;
  projectId?: number;
  detail?: Record<string, unknown>;
}

/**
 * Returns the address without its network interface (`%eth0`), which Postgres cannot store. Returns null if it is no
 * address.
 */
function storableAddress(ip: string): string | null {
  const address = ip.split('%', 1)[0] as string;
  return isIP(address) === 0 ? null : address;
}

/** Records who changed what. Call it in the transaction of the change. */
export const audit = (queryable: Queryable, actor: Actor, entry: Activity): Promise<void> =>
  auditAll(queryable, actor, [entry]);

/** Records many changes of one actor at once. Call it in their transaction. */
export async function auditAll(
  queryable: Queryable,
  actor: Actor,
  entries: readonly Activity[],
): Promise<void> {
  const user = actor.kind === 'user' ? actor : undefined;
  const by = {
    actor: actor.kind,
    user_id: user?.userId ?? null,
    personal_api_key_id: user?.keyId ?? null,
    ip: user ? storableAddress(user.address) : null,
    request_id: user?.requestId ?? null,
  };
  const rows = entries.map((entry) => ({
    ...by,
    organization_id: entry.organizationId ?? null,
    project_id: entry.projectId ?? null,
    scope: entry.scope,
    item_id: entry.itemId,
    activity: entry.activity,
    detail: entry.detail ?? {},
  }));
  await insertActivities(queryable, rows);
}

/** Lists the fields that a patch changes, with their old and new values. */
export function changes<T extends object>(
  before: T,
  patch: Partial<T>,
): { changes: { field: string; before: unknown; after: unknown }[] } {
  const changed = Object.entries(patch)
    .filter(
      ([field, value]) =>
        value !== undefined && JSON.stringify(before[field as keyof T]) !== JSON.stringify(value),
    )
    .map(([field, value]) => ({ field, before: before[field as keyof T] ?? null, after: value }));
  return { changes: changed };
}
