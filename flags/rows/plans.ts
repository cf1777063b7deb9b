import type { Queryable } from '../../db/pool.ts';

const TABLES = { change: 'feature_flag_scheduled_changes', rollout: 'feature_flag_rollouts' } as const;

/** Writes down that Temporal has heard of a plan. */
export async function markTold(
  queryable: Queryable,
  { kind, projectId, planId }: { kind: keyof typeof TABLES; projectId: number; planId: string },
): Promise<void> {
  await queryable.query(
    `update ${TABLES[kind]} set is_told = true where project_id = $1 and id::text = $2 and not is_told`,
    [projectId, planId],
  );
}
