import type { FastifyRequest } from 'fastify';
import type { BackfillRow } from '../../db/batch-export-backfills.ts';
import { type BatchExportRow, lockBatchExport, setPaused } from '../../db/batch-exports.ts';
import { transaction } from '../../db/pool.ts';
import { cadenceOfRow } from '../../exports/cadence.ts';
import { intervalAt, MAX_JITTER } from '../../intervals/index.ts';
import { audit } from '../audit.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { beginBackfill, type WholeRange } from './backfills.ts';
import { failedBeforePause, withFailed } from './failed-before-pause.ts';
import { follow, syncExport } from './follow.ts';
import { keyOf, placeOf } from './places.ts';

/** The whole intervals that ended while the export was paused; null: there is none. */
export function missedWhilePaused(row: BatchExportRow, now: number): WholeRange | null {
  const cadence = cadenceOfRow(row);
  // A run starts a little after its interval: the last one before the pause may not have been begun.
  const since = Date.parse(row.last_paused_at ?? row.created_at) - MAX_JITTER;
  // Of what its schedule would have run: nothing that ends before its start or after its end.
  const { start } = intervalAt(cadence, Math.max(since, row.start_at ? Date.parse(row.start_at) - 1 : since));
  const { start: end } = intervalAt(cadence, row.end_at ? Math.min(now, Date.parse(row.end_at)) : now);
  return start < end ? { start, end } : null;
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
      const missed = withBackfill
        ? withFailed(missedWhilePaused(current, now), await failedBeforePause(client, current, now))
        : null;
      if (missed) begun = await beginBackfill(client, request, current, missed);
    }
    return { row: current, begun };
  });
  await follow({ schedules }, request, paused ? 'a paused export' : 'an unpaused export', async () => {
    await syncExport({ pool, schedules }, row.id);
    if (begun?.isNew) await schedules.exports.startBackfill(row, begun.backfill);
  });
}
