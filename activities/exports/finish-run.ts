import { transaction } from '../../db/pool.ts';
import { findBatchExportById } from '../../exports/rows/batch-exports.ts';
import { insertLogs } from '../../exports/rows/logs.ts';
import { findRunOfWorkflow } from '../../exports/rows/run-lists.ts';
import { markRunEnded } from '../../exports/rows/runs.ts';
import type { NoticeInput } from '../../exports/temporal.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { pauseIfFailing } from './auto-pause.ts';

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
  /** Whom it concerns is to be told. */
  notices: NoticeInput[];
}

/** Writes down how a run ended that was not completed, and does what follows from it. */
export function createFinishRun(deps: ActivityDependencies) {
  const { pool } = deps;
  const { metrics, noticeWebhook } = deps.exports;

  return async function finishExportRun(input: FinishRunInput): Promise<FinishRunResult> {
    const { exportId, workflowRunId, status, error } = input;
    const row = await findBatchExportById(pool, exportId);
    const run = row && (await findRunOfWorkflow(pool, row.project_id, workflowRunId));
    if (!row || !run) return { runId: null, status, records: 0, notices: [] };
    const key = { projectId: row.project_id, exportId };
    const ended = await transaction(pool, async (client) => {
      const over = await markRunEnded(client, { projectId: row.project_id, runId: run.id }, status, error);
      if (over) {
        const failed = `Batch export failed with a non-recoverable error: ${error}`;
        await insertLogs(client, key, run.id, [
          status === 'Failed'
            ? { level: 'ERROR', message: failed }
            : { level: 'WARNING', message: 'Batch export was cancelled' },
        ]);
      }
      return over;
    });
    if (ended) metrics.runs.inc({ status, destination: row.destination_type });
    const now = ended ?? run;
    const notices: NoticeInput[] = [];
    // Also when it was ended by an earlier try of this very activity, which may have got no further.
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
  };
}
