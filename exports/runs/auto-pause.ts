import { type Transaction, transaction } from '../../db/pool.ts';
import { SYSTEM } from '../../tenancy/actor.ts';
import { audit } from '../../tenancy/audit.ts';
import { BACKFILL_CANCELLED, endBackfill, RUN_CANCELLED, type RunEnding, stopWorkflows } from '../ending.ts';
import { activeBackfills, backfillsEndedFor } from '../rows/backfills.ts';
import {
  type BatchExportRow,
  type ExportKey,
  findBatchExportById,
  keyOf,
  setPaused,
} from '../rows/batch-exports.ts';
import { insertLogs, listLogs } from '../rows/logs.ts';
import { countRecentFailures, runsEndedFor } from '../rows/run-lists.ts';
import { RUN_LIMITS } from '../rules/limits.ts';
import { isOnce, lengthOf } from '../rules/once.ts';
import { startedByHand } from '../rules/workflow-ids.ts';
import type { RunDependencies } from './dependencies.ts';

export type PauseDependencies = Pick<
  RunDependencies,
  'pool' | 'temporal' | 'logger' | 'metrics' | 'pauseAfter'
>;

/**
 * Pauses an export if too many of its last runs failed, and cancels its backfills with their runs. Returns when it was
 * paused. Runs from before the last pause do not count, because whoever resumed the export has seen them, and neither do
 * runs that somebody started by hand to try something.
 *
 * One transaction changes the rows. Then the change is brought to Temporal. If an earlier try for the same run was
 * killed in between, this one does the second part.
 */
export async function pauseIfFailing(
  deps: PauseDependencies,
  row: BatchExportRow,
  runId: string,
): Promise<string | undefined> {
  if (deps.pauseAfter === 0 || row.deleted_at !== null || isOnce(row)) return undefined;
  const isPaused = row.paused ? await isPausedBy(deps, row, runId) : await pause(deps, row, runId);
  if (!isPaused) return undefined;
  const now = await findBatchExportById(deps.pool, row.id);
  if (!now) return new Date().toISOString();
  await follow(deps, now);
  return now.last_paused_at ?? new Date().toISOString();
}

/** How the log entry of an automatic pause begins. By this entry a later try knows that the run caused the pause. */
const PAUSED = 'The batch export was automatically paused';

/** Pauses the export if enough runs failed. False: too few failed, or somebody else has just paused it. */
async function pause(
  { pool, logger, metrics, pauseAfter }: PauseDependencies,
  row: BatchExportRow,
  runId: string,
): Promise<boolean> {
  const key = keyOf(row);
  const paused = await transaction(pool, async (client) => {
    const { window } = RUN_LIMITS[lengthOf(row)];
    const failed = await countRecentFailures(client, key, window, row.last_paused_at, startedByHand(row.id));
    if (failed < pauseAfter || !(await setPaused(client, key, true))) return undefined;
    const cancelled = await cancelBackfills(client, key);
    const reason = `${failed} of its last runs failed`;
    const message =
      `${PAUSED} due to exceeding the failure threshold: ${reason}. Correct what their ` +
      'errors name, then unpause it; unpausing with a backfill exports what was missed.';
    await insertLogs(client, key, runId, [{ level: 'ERROR', message }]);
    await audit(client, SYSTEM, {
      ...{ scope: 'BatchExport', itemId: row.id, projectId: row.project_id, activity: 'updated' },
      detail: { changes: [{ field: 'paused', before: false, after: true }], reason },
    });
    return { failed, cancelled };
  });
  if (!paused) return false;
  const { failed, cancelled } = paused;
  metrics.paused.inc();
  metrics.runs.inc({ status: 'Cancelled', destination: row.destination_type }, cancelled);
  logger.warn({ exportId: row.id, failed }, 'a batch export was paused because its runs fail');
  return true;
}

/** Answers whether an earlier try for this run paused the export. If so, cancels backfills that began since. */
async function isPausedBy({ pool }: PauseDependencies, row: BatchExportRow, runId: string): Promise<boolean> {
  const key = keyOf(row);
  const own = await listLogs(pool, { ...key, runId, levels: ['ERROR'], search: PAUSED, limit: 1 });
  if (own.length === 0) return false;
  await transaction(pool, (client) => cancelBackfills(client, key));
  return true;
}

const CANCELLED = 'Cancelled: the batch export was paused because its runs fail';
const ENDING = { status: 'Cancelled', reason: CANCELLED, log: RUN_CANCELLED } satisfies RunEnding;

/** Returns how many runs it cancelled. */
async function cancelBackfills(client: Transaction, key: ExportKey): Promise<number> {
  let runs = 0;
  for (const backfill of await activeBackfills(client, key)) {
    const ended = await endBackfill(client, backfill, { ...ENDING, log: BACKFILL_CANCELLED, runs: ENDING });
    runs += ended?.runs.length ?? 0;
  }
  return runs;
}

/**
 * Brings a pause to Temporal. If that fails, maintenance corrects the schedule, and the workflows find that their rows
 * have ended.
 */
async function follow({ pool, temporal, logger }: PauseDependencies, row: BatchExportRow): Promise<void> {
  const ended = { reason: CANCELLED, since: row.last_paused_at ?? row.created_at };
  const backfills = await backfillsEndedFor(pool, keyOf(row), ended);
  const runs = await runsEndedFor(pool, backfills, ended);
  const steps = [() => stopWorkflows(temporal, backfills, runs), () => temporal.sync(row)];
  for (const step of steps) {
    await step().catch((error) =>
      logger.warn({ err: error }, 'Temporal did not accept the pause of an export'),
    );
  }
}
