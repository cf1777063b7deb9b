import { ApplicationFailure, Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { egressRefusal } from '../../egress/egress-refused.ts';
import { findBatchExportById } from '../../exports/rows/batch-exports.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import type { NoticeInput } from '../../exports/temporal.ts';
import type { ActivityDependencies } from '../dependencies.ts';

const TIMEOUT = 15_000;

/** Posts a notice to the webhook of the installation. What it says is read now, so that a notice is made of ids only. */
export function createSendNotice({ pool, schedules, logger, exports }: ActivityDependencies) {
  const { egress, noticeWebhook, publicUrl, metrics } = exports;

  async function bodyOf({ event, exportId, runId, at, details, projectId }: NoticeInput) {
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
        temporal: run ? schedules.exports.runUrl(run) : null,
      },
    };
  }

  return async function sendNotice(notice: NoticeInput): Promise<void> {
    if (noticeWebhook === undefined) return;
    const body = await bodyOf(notice);
    // Nobody wants to hear of an export that is gone with its project.
    if (!body) return;
    const { info } = Context.current();
    const failure = (message: string, again: boolean) => {
      metrics.notices.inc({ result: again ? 'failed' : 'dropped' });
      logger.warn({ event: notice.event, exportId: notice.exportId, again }, message);
      return ApplicationFailure.create({
        message,
        type: 'notice',
        nonRetryable: !again,
        category: ApplicationFailureCategory.BENIGN,
      });
    };
    const { status } = await egress
      .fetch(noticeWebhook, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'Sluice',
          // The same for every try, so that a receiver can tell that it has this one.
          'idempotency-key': info.workflowExecution?.workflowId ?? `${notice.exportId}-${notice.at}`,
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
  };
}
