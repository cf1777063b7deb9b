import type { FastifyRequest } from 'fastify';
import type { BackfillRow } from '../../db/batch-export-backfills.ts';
import { listIntervalOutcomes } from '../../db/batch-export-run-lists.ts';
import { type BatchExportRow, lockBatchExport, setPaused } from '../../db/batch-exports.ts';
import { type Pool, transaction } from '../../db/pool.ts';
import { MAX_JITTER } from '../../intervals/index.ts';
import { syncRow } from '../../schedules/exports/sync-row.ts';
import { audit } from '../audit.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { beginBackfill, type WholeRange, wholeRange } from './backfills.ts';
import { failedBeforePause, withFailed } from './failed-before-pause.ts';
import { follow } from './follow.ts';
import { keyOf, placeOf } from './places.ts';

/** The whole intervals that ended while the export was paused; null: there is none. */
export function missedWhilePaused(row: BatchExportRow, now: number): WholeRange | null {
  // A run starts a little after its interval: the last one before the pause may not have been begun.
  return wholeRange(row, Date.parse(row.last_paused_at ?? row.created_at) - MAX_JITTER, now);
}

/**
 * The same; what was left to the pause when the export was cut into other intervals during it comes first. Then nothing
 * that ended after that seam is exported.
 */
async function missed(pool: Pool, row: BatchExportRow, now: number): Promise<WholeRange | null> {
  const range = missedWhilePaused(row, now);
  const { seam_at: seam } = row;
  if (seam === null || Date.parse(seam) >= (range?.start ?? now)) return range;
  const bounds = { after: seam, until: new Date(now).toISOString() };
  const outcomes = await listIntervalOutcomes(pool, keyOf(row), bounds);
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
  const { row, begun } = await transaction(pool, async (client) => {
    const current = await lockBatchExport(client, key);
    if (!current) throw errors.notFound(`BatchExport ID '${key.exportId}' not found.`);
    const changed = await setPaused(client, key, paused);
    let begun: { backfill: BackfillRow; isNew: boolean } | undefined;
    if (changed) {
      await audit(client, request, {
        scope: 'BatchExport',
        itemId: key.exportId,
        activity: 'updated',
        ...placeOf(request, key.projectId),
        detail: { changes: [{ field: 'paused', before: !paused, after: paused }] },
      });
      const now = Date.now();
      const left = withBackfill
        ? withFailed(await missed(pool, current, now), await failedBeforePause(pool, current, now))
        : null;
      if (left) begun = await beginBackfill(client, request, current, left);
    }
    return { row: current, begun };
  });
  await follow({ schedules }, request, paused ? 'a paused export' : 'an unpaused export', async () => {
    await syncRow(pool, schedules.exports, row.id);
    if (begun?.isNew) await schedules.exports.startBackfill(row, begun.backfill);
  });
}
