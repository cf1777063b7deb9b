import { transaction } from '../../db/pool.ts';
import { endRun, RUN_CANCELLED } from '../ending.ts';
import { findBatchExportById } from '../rows/batch-exports.ts';
import type { LogEntry } from '../rows/logs.ts';
import { findRunOfWorkflow } from '../rows/run-lists.ts';
import type { NoticeInput } from '../temporal.ts';
import { type PauseDependencies, pauseIfFailing } from './auto-pause.ts';
import type { RunDependencies } from './dependencies.ts';

export interface FinishRunInput {
  exportId: string;
  workflowRunId: string;
  status: 'Failed' | 'Cancelled';
  error: string | null;
}

export interface FinishRunResult {
  runId: string | null;
  status: string;
  records: number;
  /** The notices to send to the operators. */
  notices: NoticeInput[];
}

/** Writes down how a run ended that did not complete. Pauses the export if too many runs failed. */
export async function finishExportRun(
  deps: PauseDependencies & Pick<RunDependencies, 'noticeWebhook'>,
  { exportId, workflowRunId, status, error }: FinishRunInput,
): Promise<FinishRunResult> {
  const { pool, metrics, noticeWebhook } = deps;
  const row = await findBatchExportById(pool, exportId);
  const run = row && (await findRunOfWorkflow(pool, row.project_id, workflowRunId));
  if (!row || !run) return { runId: null, status, records: 0, notices: [] };
  const failed = `Batch export failed with a non-recoverable error: ${error}`;
  const log: LogEntry = status === 'Failed' ? { level: 'ERROR', message: failed } : RUN_CANCELLED;
  const ended = await transaction(pool, (client) => endRun(client, run, { status, reason: error, log }));
  if (ended) metrics.runs.inc({ status, destination: row.destination_type });
  const now = ended ?? run;
  const notices: NoticeInput[] = [];
  // Also if an earlier try of this activity ended the run, because it may have been killed right after that.
  if (now.status === 'Failed') {
    const about = { projectId: row.project_id, exportId, runId: run.id, at: now.finished_at as string };
    notices.push({ event: 'batch_export.failed', ...about });
    const paused = await pauseIfFailing(deps, row, run.id);
    if (paused) notices.push({ event: 'batch_export.paused', ...about, at: paused });
  }
  return {
    runId: run.id,
    status: now.status,
    records: now.records_completed ?? 0,
    notices: noticeWebhook === undefined ? [] : notices,
  };
}
