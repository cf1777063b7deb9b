import { transaction } from '../../db/pool.ts';
import { activeBackfills, markBackfillEnded } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, findBatchExportById, setPaused } from '../../exports/rows/batch-exports.ts';
import { insertLogs, listLogs } from '../../exports/rows/logs.ts';
import { activeRuns, countRecentFailures } from '../../exports/rows/run-lists.ts';
import { RUN_LIMITS } from '../../exports/rules/limits.ts';
import type { ActivityDependencies } from '../dependencies.ts';

const PAUSED = 'The batch export was automatically paused';
const CANCELLED = 'Cancelled: the batch export was paused because its runs fail';

/**
 * Pauses an export of whose last runs too many failed; answers when. Runs from before its last pause do not count:
 * whoever unpaused it has seen them.
 */
export async function pauseIfFailing(
  deps: ActivityDependencies,
  row: BatchExportRow,
  runId: string,
): Promise<string | undefined> {
  const { pool, schedules, logger } = deps;
  const { pauseAfter, metrics } = deps.exports;
  if (pauseAfter === 0 || row.deleted_at !== null) return undefined;
  const key = { projectId: row.project_id, exportId: row.id };
  if (row.paused) {
    // By this run, if an earlier try of the activity got no further: what follows is still to be done.
    const own = await listLogs(pool, { ...key, runId, levels: ['ERROR'], search: PAUSED, limit: 1 });
    if (own.length === 0) return undefined;
  } else {
    const { window } = RUN_LIMITS[row.interval];
    const failed = await countRecentFailures(pool, key, window, row.last_paused_at);
    if (failed < pauseAfter) return undefined;
    const paused = await transaction(pool, async (client) => {
      if (!(await setPaused(client, key, true))) return false;
      const message =
        `${PAUSED} due to exceeding the failure threshold: ${failed} of its last runs failed. Correct what their ` +
        'errors name, then unpause it; unpausing with a backfill exports what was missed.';
      await insertLogs(client, key, runId, [{ level: 'ERROR', message }]);
      return true;
    });
    if (!paused) return undefined;
    metrics.paused.inc();
    logger.warn({ exportId: row.id, failed }, 'a batch export was paused because its runs fail');
  }
  for (const backfill of await activeBackfills(pool, key)) {
    const backfillKey = { projectId: row.project_id, backfillId: backfill.id };
    await markBackfillEnded(pool, backfillKey, 'Cancelled', CANCELLED);
    const runs = await activeRuns(pool, key, backfill.id);
    await attemptAll(deps, [
      () => schedules.exports.cancelBackfill(backfill),
      ...runs.map((run) => () => schedules.exports.cancelRun(run)),
    ]);
  }
  const now = await findBatchExportById(pool, row.id);
  // Temporal may be what fails; maintenance brings the schedule in line with the row.
  if (now) await attemptAll(deps, [() => schedules.exports.sync(now)]);
  return now?.last_paused_at ?? new Date().toISOString();
}

async function attemptAll(
  { logger }: Pick<ActivityDependencies, 'logger'>,
  steps: (() => Promise<unknown>)[],
): Promise<void> {
  for (const step of steps) {
    await step().catch((error) => logger.warn({ err: error }, 'Temporal did not take a change of an export'));
  }
}
