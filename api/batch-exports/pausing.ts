import type { FastifyRequest } from 'fastify';
import { type Queryable, transaction } from '../../db/pool.ts';
import type { BackfillRow } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, lockBatchExport, setPaused } from '../../exports/rows/batch-exports.ts';
import { listPauses, type PauseRow } from '../../exports/rows/pauses.ts';
import { listIntervalOutcomes } from '../../exports/rows/run-lists.ts';
import { MAX_JITTER, type OpenInterval } from '../../intervals/index.ts';
import { syncRow } from '../../schedules/exports/sync-row.ts';
import { audit } from '../../tenancy/audit.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { beginBackfill, wholeRange } from './backfills.ts';
import { failedBeforePause, withFailed } from './failed-before-pause.ts';
import { follow } from './follow.ts';
import { keyOf, placeOf } from './places.ts';

/**
 * Since when an export is paused. `last_paused_at` says so unless it went on since then, as after pausing by PATCH, which
 * leaves it; clients can write it too, and it may lie in the future. `pauses`: those that ended after it, or did not.
 */
function pausedSince(row: BatchExportRow, pauses: readonly PauseRow[]): number {
  const said = row.last_paused_at === null ? null : Date.parse(row.last_paused_at);
  const open = pauses.find((one) => one.resumed_at === null);
  if (open === undefined) return said ?? Date.parse(row.created_at);
  const begun = Date.parse(open.paused_at);
  return said === null || pauses.length > 1 ? begun : Math.min(said, begun);
}

/** The whole intervals that ended while the export was paused; null: there is none. */
export function missedWhilePaused(
  row: BatchExportRow,
  now: number,
  pauses: readonly PauseRow[] = [],
): OpenInterval | null {
  // A run starts a little after its interval: the last one before the pause may not have been begun.
  return wholeRange(row, pausedSince(row, pauses) - MAX_JITTER, now);
}

/**
 * The same; what was left to the pause when the export was cut into other intervals during it comes first. Then nothing
 * that ended after that seam is exported.
 */
async function missedSinceSeam(
  queryable: Queryable,
  row: BatchExportRow,
  now: number,
  pauses: readonly PauseRow[],
): Promise<OpenInterval | null> {
  const range = missedWhilePaused(row, now, pauses);
  const { seam_at: seam } = row;
  if (seam === null || Date.parse(seam) >= (range?.start ?? now)) return range;
  const bounds = { after: seam, until: new Date(now).toISOString() };
  const outcomes = await listIntervalOutcomes(queryable, keyOf(row), bounds);
  return outcomes.some((one) => one.completed) ? range : wholeRange(row, Date.parse(seam), now);
}

/** Pauses an export or lets it go on, with what it missed if that is wished. Repeating it changes nothing. */
export async function setExportPaused(
  { pool, schedules }: Pick<ApiDependencies, 'pool' | 'schedules'>,
  request: FastifyRequest,
  paused: boolean,
  withBackfill = false,
): Promise<void> {
  const key = keyOf(request.batchExport);
  const now = Date.now();
  // What lies before the pause stands still, and takes several questions at once.
  const failed = withBackfill ? await failedBeforePause(pool, request.batchExport, now) : null;
  const { row, begun } = await transaction(pool, async (client) => {
    const current = await lockBatchExport(client, key);
    if (!current) throw errors.notFound(`BatchExport ID '${key.exportId}' not found.`);
    const pauses = await listPauses(client, key, current.last_paused_at ?? current.created_at);
    const changed = await setPaused(client, key, paused);
    let begun: { backfill: BackfillRow; isNew: boolean } | undefined;
    if (changed) {
      await audit(client, actorOf(request), {
        scope: 'BatchExport',
        itemId: key.exportId,
        activity: 'updated',
        ...placeOf(request, key.projectId),
        detail: { changes: [{ field: 'paused', before: !paused, after: paused }] },
      });
      if (withBackfill) {
        const missed = withFailed(await missedSinceSeam(client, current, now, pauses), failed);
        if (missed) begun = await beginBackfill(client, request, current, missed);
      }
    }
    return { row: current, begun };
  });
  await follow({ schedules }, request, paused ? 'a paused export' : 'an unpaused export', async () => {
    await syncRow(pool, schedules.exports, row.id);
    if (begun?.isNew) await schedules.exports.startBackfill(row, begun.backfill);
  });
}
