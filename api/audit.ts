import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { insertActivity } from '../db/activity-log.ts';
import type { Queryable } from '../db/pool.ts';

export interface Activity {
  /** What kind of thing was changed: `Organization`, `Project`, `PersonalAPIKey` … */
  scope: string;
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
    | 'started';
  organizationId?: string;
  projectId?: number;
  detail?: Record<string, unknown>;
}

/** An address that Postgres can hold: without the interface of a link-local one, and nothing that only looks like one. */
function addressOf(ip: string): string | null {
  const address = ip.split('%', 1)[0] as string;
  return isIP(address) === 0 ? null : address;
}

/** Writes down who changed what, in the transaction of the change. */
export async function audit(queryable: Queryable, request: FastifyRequest, entry: Activity): Promise<void> {
  await insertActivity(queryable, {
    organization_id: entry.organizationId ?? null,
    project_id: entry.projectId ?? null,
    user_id: request.caller.user.id,
    personal_api_key_id: request.caller.key.id,
    ip: addressOf(request.ip),
    request_id: request.id,
    scope: entry.scope,
    item_id: entry.itemId,
    activity: entry.activity,
    detail: entry.detail ?? {},
  });
}

/** The fields that a patch changes, with their old and new values. */
export function changes<T extends object>(
  before: T,
  patch: Partial<T>,
): { changes: Record<string, unknown>[] } {
  const changed = Object.entries(patch)
    .filter(
      ([field, value]) =>
        value !== undefined && JSON.stringify(before[field as keyof T]) !== JSON.stringify(value),
    )
    .map(([field, value]) => ({ field, before: before[field as keyof T] ?? null, after: value }));
  return { changes: changed };
}
