import { transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { failedBeforePause, missedByPause } from '../reads/missed.ts';
import {
  type BatchExportRow,
  type ExportKey,
  keyOf,
  listPauses,
  lockBatchExport,
  setPaused,
} from '../rows/batch-exports.ts';
import { withFailed } from '../rules/missed.ts';
import { requireIntervals } from '../rules/once.ts';
import { syncRow } from '../sync-row.ts';
import { auditExport } from './audit.ts';
import { type BegunBackfill, beginBackfill } from './backfill.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { follow } from './follow.ts';

type Dependencies = Pick<ExportCommandDependencies, 'pool' | 'temporal' | 'logger'>;

const absent = ({ exportId }: ExportKey) => refuse.absent(`BatchExport ID '${exportId}' not found.`);
const change = (paused: boolean) => ({ changes: [{ field: 'paused', before: !paused, after: paused }] });

/** Pauses an export. Runs in progress continue. Pausing a paused export changes nothing. */
export async function pauseExport(deps: Dependencies, actor: Actor, key: ExportKey): Promise<void> {
  const { pool, temporal } = deps;
  await transaction(pool, async (client) => {
    const row = await lockBatchExport(client, key);
    if (!row) throw absent(key);
    requireIntervals(row);
    if (await setPaused(client, key, true)) {
      await auditExport(client, actor, key, 'updated', change(true));
    }
  });
  await follow(deps, actor, 'a paused export', () => syncRow(pool, temporal, key.exportId));
}

/**
 * Resumes a paused export. With `backfill`, also exports what it missed, including what failed shortly before the
 * pause. Returns that backfill, or undefined if nothing was missed. Resuming an export that is not paused changes
 * nothing.
 */
export async function unpauseExport(
  deps: Dependencies,
  actor: Actor,
  found: BatchExportRow,
  { backfill }: { backfill: boolean },
): Promise<BegunBackfill | undefined> {
  const { pool, temporal } = deps;
  const key = keyOf(found);
  const now = Date.now();
  // Read before the transaction, to keep that short. What lies before the pause does not change any more.
  const failed = backfill ? await failedBeforePause(pool, found, now) : null;
  const { row, begun } = await transaction(pool, async (client) => {
    const row = await lockBatchExport(client, key);
    if (!row) throw absent(key);
    requireIntervals(row);
    const pauses = await listPauses(client, key, row.last_paused_at ?? row.created_at);
    if (!(await setPaused(client, key, false))) return { row };
    await auditExport(client, actor, key, 'updated', change(false));
    const missed = backfill ? withFailed(await missedByPause(client, row, now, pauses), failed) : null;
    return { row, begun: missed ? await beginBackfill(client, actor, row, missed) : undefined };
  });
  await follow(deps, actor, 'an unpaused export', async () => {
    await syncRow(pool, temporal, key.exportId);
    if (begun?.isNew) await temporal.startBackfill(row, begun.backfill);
  });
  return begun;
}
