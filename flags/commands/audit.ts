import type { Queryable } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, auditAll } from '../../tenancy/audit.ts';
import type { FlagRow } from '../rows/flags.ts';

interface FlagActivity {
  row: Pick<FlagRow, 'project_id' | 'id'>;
  activity: Activity['activity'];
  detail: Record<string, unknown>;
}

/** Writes down who did what to a flag. Call it in the transaction of the change. */
export const auditFlag = (
  queryable: Queryable,
  actor: Actor,
  row: FlagActivity['row'],
  activity: Activity['activity'],
  detail: Record<string, unknown>,
): Promise<void> => auditFlags(queryable, actor, [{ row, activity, detail }]);

/** Writes down who did what to many flags. Call it in the transaction of the changes. */
export const auditFlags = (
  queryable: Queryable,
  actor: Actor,
  entries: readonly FlagActivity[],
): Promise<void> =>
  auditAll(
    queryable,
    actor,
    entries.map(({ row, activity, detail }) => ({
      ...{ scope: 'FeatureFlag', itemId: String(row.id), projectId: row.project_id, activity, detail },
    })),
  );

/** What the activity log compares before and after a change. */
export const loggedFlag = (row: FlagRow) => ({
  key: row.key,
  name: row.name,
  filters: JSON.parse(row.filters) as unknown,
  active: row.active,
  archived: row.archived,
  deleted: row.deleted,
  ensure_experience_continuity: row.ensure_experience_continuity,
  is_remote_configuration: row.is_remote_configuration,
  has_encrypted_payloads: row.has_encrypted_payloads,
  evaluation_runtime: row.evaluation_runtime,
  bucketing_identifier: row.bucketing_identifier,
  // Their order means nothing.
  evaluation_contexts: [...row.evaluation_contexts].sort(),
  tags: row.tags,
  version: row.version,
});
