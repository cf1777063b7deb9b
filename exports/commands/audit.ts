import type { Queryable } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit } from '../../tenancy/audit.ts';
import type { ExportKey } from '../rows/batch-exports.ts';

/** Writes down who did what to an export. Call it in the transaction of the change. */
export const auditExport = (
  queryable: Queryable,
  actor: Actor,
  { projectId, exportId }: ExportKey,
  activity: Activity['activity'],
  detail: Record<string, unknown>,
): Promise<void> =>
  audit(queryable, actor, { scope: 'BatchExport', itemId: exportId, projectId, activity, detail });
