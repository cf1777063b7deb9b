import { NoticeError, postNotice } from '../../egress/operator-notices.ts';
import { findBatchExportById } from '../rows/batch-exports.ts';
import { findRun } from '../rows/run-lists.ts';
import type { NoticeInput } from '../temporal.ts';
import type { RunDependencies } from './dependencies.ts';

type NoticeDependencies = Pick<
  RunDependencies,
  'pool' | 'temporal' | 'logger' | 'egress' | 'noticeWebhook' | 'publicUrl' | 'metrics'
>;

/**
 * Posts a notice to the webhook of the installation. Reads what the notice says now, because the input contains ids
 * only. The receiver recognizes a repeated notice by its idempotency key.
 */
export async function sendNotice(
  deps: NoticeDependencies,
  notice: NoticeInput,
  idempotencyKey = `${notice.exportId}-${notice.at}`,
): Promise<void> {
  const { egress, noticeWebhook, metrics, logger } = deps;
  if (noticeWebhook === undefined) return;
  const body = await bodyOf(deps, notice);
  // The row was deleted with its project, so nobody needs the notice.
  if (!body) return;
  try {
    await postNotice({ egress, url: noticeWebhook }, body, idempotencyKey);
    metrics.notices.inc({ result: 'sent' });
  } catch (error) {
    if (error instanceof NoticeError) {
      const { again, message } = error;
      metrics.notices.inc({ result: again ? 'failed' : 'dropped' });
      logger.warn({ event: notice.event, exportId: notice.exportId, again }, message);
    }
    throw error;
  }
}

async function bodyOf(
  { pool, temporal, publicUrl }: NoticeDependencies,
  { event, exportId, runId, at, details, projectId }: NoticeInput,
) {
  const row = await findBatchExportById(pool, exportId);
  if (!row) return undefined;
  const run = runId ? await findRun(pool, { projectId: row.project_id, runId }) : undefined;
  const url = `${publicUrl}/api/projects/${projectId}/batch_exports/${exportId}/`;
  return {
    event,
    at,
    project: { id: row.project_id },
    export: {
      id: row.id,
      name: row.name,
      model: row.model,
      interval: row.interval,
      destination: row.destination_type,
      paused: row.paused,
    },
    run: run
      ? {
          id: run.id,
          status: run.status,
          data_interval_start: run.data_interval_start,
          data_interval_end: run.data_interval_end,
          backfill_id: run.backfill_id,
        }
      : null,
    error: run?.latest_error ?? null,
    details: details ?? null,
    urls: {
      export: url,
      run: run ? `${url}runs/${run.id}/` : null,
      logs: run ? `${url}runs/${run.id}/logs/` : `${url}logs/`,
      temporal: run ? temporal.runUrl(run) : null,
    },
  };
}
