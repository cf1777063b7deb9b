// The only place that ends a run or a backfill that did not complete. A user's cancellation, a deletion, an automatic
// pause and a lost workflow all end the rows here, then ask Temporal to stop the workflows.
import type { Transaction } from '../db/pool.ts';
import { type BackfillRow, type EndedBackfillStatus, markBackfillEnded } from './rows/backfills.ts';
import { insertLogs, type LogEntry } from './rows/logs.ts';
import { activeRuns } from './rows/run-lists.ts';
import { markRunEnded, type RunFailure, type RunRow } from './rows/runs.ts';
import type { ExportTemporal } from './temporal.ts';

export interface RunEnding {
  status: RunFailure;
  /** What the run shows as its error. */
  reason: string | null;
  /** What the log of the run says about it. */
  log?: LogEntry;
}

/** How runs and backfills end when their export is deleted. */
export const EXPORT_DELETED = {
  status: 'Cancelled',
  reason: 'The batch export was deleted.',
} as const satisfies RunEnding;

/** The log entry of every cancelled run. */
export const RUN_CANCELLED: LogEntry = { level: 'WARNING', message: 'Batch export was cancelled' };
/** The log entry of every cancelled backfill. */
export const BACKFILL_CANCELLED: LogEntry = { level: 'WARNING', message: 'Backfill was cancelled' };

/**
 * Ends a run and writes its log entry. The attempt at work loses its fence, so it can complete nothing and cleans up.
 * Undefined: the run had ended before, and nothing changed.
 */
export async function endRun(
  client: Transaction,
  run: Pick<RunRow, 'project_id' | 'id' | 'batch_export_id'>,
  { status, reason, log }: RunEnding,
): Promise<RunRow | undefined> {
  const { project_id: projectId, id: runId, batch_export_id: exportId } = run;
  const ended = await markRunEnded(client, { projectId, runId }, status, reason);
  if (ended && log) await insertLogs(client, { projectId, exportId }, runId, [log]);
  return ended;
}

export interface BackfillEnding {
  status: EndedBackfillStatus;
  reason: string | null;
  /** What the log of the export says about it. */
  log?: LogEntry;
  /** How its runs in progress end. Without it they continue. */
  runs?: RunEnding;
}

/** A backfill that was ended, and those of its runs that were ended with it. */
export interface EndedBackfill {
  backfill: BackfillRow;
  runs: RunRow[];
}

/** Ends a backfill and writes its log entry. Undefined: it had ended before, and nothing changed. */
export async function endBackfill(
  client: Transaction,
  backfill: BackfillRow,
  { status, reason, log, runs }: BackfillEnding,
): Promise<EndedBackfill | undefined> {
  const { project_id: projectId, id: backfillId, batch_export_id: exportId } = backfill;
  const key = { projectId, exportId };
  if (!(await markBackfillEnded(client, { projectId, backfillId }, status, reason))) return undefined;
  const ended: RunRow[] = [];
  for (const run of runs ? await activeRuns(client, key, backfillId) : []) {
    if (await endRun(client, run, runs as RunEnding)) ended.push(run);
  }
  if (log) await insertLogs(client, key, null, [log]);
  return { backfill, runs: ended };
}

/**
 * Asks Temporal to cancel the workflows of ended backfills and runs. Backfills come first, because they must not start
 * further runs. Every workflow is asked, even if one request fails. Then this throws the first failure.
 */
export async function stopWorkflows(
  temporal: Pick<ExportTemporal, 'cancelBackfill' | 'cancelRun'>,
  backfills: readonly Pick<BackfillRow, 'workflow_id'>[],
  runs: readonly Pick<RunRow, 'workflow_id' | 'workflow_run_id'>[],
): Promise<void> {
  const stopped = everyOne(backfills.map((one) => temporal.cancelBackfill(one)));
  await stopped.catch(() => undefined);
  await everyOne([stopped, ...runs.map((one) => temporal.cancelRun(one))]);
}

/** Waits until all promises are settled, then throws the first failure. */
export async function everyOne(works: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
}
