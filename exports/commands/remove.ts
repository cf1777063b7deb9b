import { transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { EXPORT_DELETED, endBackfill, endRun, everyOne, stopWorkflows } from '../ending.ts';
import { activeBackfills } from '../rows/backfills.ts';
import { type BatchExportRow, deleteBatchExport, keyOf } from '../rows/batch-exports.ts';
import { activeRuns } from '../rows/run-lists.ts';
import { auditExport } from './audit.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { follow } from './follow.ts';

/** Deletes an export and cancels its runs and backfills. Data that it has exported stays. */
export async function removeExport(
  deps: Pick<ExportCommandDependencies, 'pool' | 'temporal' | 'logger'>,
  actor: Actor,
  row: Pick<BatchExportRow, 'project_id' | 'id' | 'name'>,
): Promise<void> {
  const key = keyOf(row);
  const { backfills, runs } = await transaction(deps.pool, async (client) => {
    if (!(await deleteBatchExport(client, key))) throw refuse.absent();
    const backfills = await activeBackfills(client, key);
    const runs = await activeRuns(client, key);
    for (const run of runs) await endRun(client, run, EXPORT_DELETED);
    for (const backfill of backfills) await endBackfill(client, backfill, EXPORT_DELETED);
    await auditExport(client, actor, key, 'deleted', { name: row.name });
    return { backfills, runs };
  });
  await follow(deps, actor, 'a deleted export', () =>
    everyOne([deps.temporal.remove(row.id), stopWorkflows(deps.temporal, backfills, runs)]),
  );
}
