import { egressRefusal } from '../../egress/egress-refused.ts';
import { findBatchExportById } from '../rows/batch-exports.ts';
import { findRun } from '../rows/run-lists.ts';
import type { NoticeInput } from '../temporal.ts';
import type { RunDependencies } from './dependencies.ts';

type NoticeDependencies = Pick<
  RunDependencies,
  'pool' | 'temporal' | 'logger' | 'egress' | 'noticeWebhook' | 'publicUrl' | 'metrics'
>;

/** A notice could not be sent. */
export class NoticeError extends Error {
  override readonly name = 'NoticeError';
  /** Whether the webhook may take the notice later. */
  readonly again: boolean;

  constructor(message: string, again: boolean) {
    super(message);
    this.again = again;
  }
}

const TIMEOUT = 15_000;

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
  const failure = (message: string, again: boolean) => {
    metrics.notices.inc({ result: again ? 'failed' : 'dropped' });
    logger.warn({ event: notice.event, exportId: notice.exportId, again }, message);
    return new NoticeError(message, again);
  };
  const { status } = await egress
    .fetch(noticeWebhook, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Sluice',
        'idempotency-key': idempotencyKey,
      },
      body: JSON.stringify(body),
      timeoutMilliseconds: TIMEOUT,
      maxAnswerBytes: 1024,
    })
    .catch((error) => {
      const refused = egressRefusal(error);
      if (refused) throw failure(`SLUICE_NOTICE_WEBHOOK must not be reached: ${refused.message}`, false);
      const { code } = error as { code?: string };
      throw failure(`SLUICE_NOTICE_WEBHOOK cannot be reached${code ? ` (${code})` : ''}`, true);
    });
  if (status >= 200 && status < 300) {
    metrics.notices.inc({ result: 'sent' });
    return;
  }
  const later = status >= 500 || status === 429 || status === 408;
  throw failure(`SLUICE_NOTICE_WEBHOOK answered ${status}`, later);
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
