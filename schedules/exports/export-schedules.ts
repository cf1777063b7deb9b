import { randomUUID } from 'node:crypto';
import { type Client, type ScheduleSummary, WorkflowNotFoundError } from '@temporalio/client';
import type { BackfillRow } from '../../exports/rows/backfills.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import type { VerifyReport } from '../../exports/rules/verify-report.ts';
import {
  EXPORT_RUN,
  type ExportRunInput,
  type IntervalText,
  type NoticeInput,
  searchAttributes,
} from '../../workflows/names.ts';
import { type StartedBackfillRow, startBackfill } from './backfills.ts';
import { isOwnSchedule, listExportSchedules, looksRight, type WorkflowFate, workflowFate } from './drift.ts';
import { attributesOf, scheduledWorkflowId, summaryOf } from './export-schedule.ts';
import { startNotice } from './notices.ts';
import { removeSchedule, syncSchedule } from './sync.ts';
import { verifyInterval } from './verify.ts';

/** Temporal's names of a run. */
export type RunReference = Pick<RunRow, 'workflow_id' | 'workflow_run_id'>;

/** What Temporal does for batch exports. The rows are the truth; all of this is derived from them. */
export interface ExportSchedules {
  /**
   * Makes the export's schedule what its row says; one that is right already is left alone. Deleted: it goes. False:
   * there was nothing to do.
   */
  sync(row: BatchExportRow): Promise<boolean>;
  /** No schedule is fine: false. */
  remove(exportId: string): Promise<boolean>;
  /** Runs an interval now, whatever the schedule does. */
  startRun(
    row: BatchExportRow,
    interval: IntervalText,
  ): Promise<{ workflowId: string; workflowRunId: string }>;
  /** Asks a run to stop. One that is over, or was never there, is fine. */
  cancelRun(run: RunReference): Promise<void>;
  /** What became of a run, or of a backfill, in Temporal. */
  fateOfRun(run: RunReference): Promise<WorkflowFate>;
  /** The same of the run that the schedule started at the end of an interval. */
  fateOfScheduledRun(exportId: string, intervalEnd: string): Promise<WorkflowFate>;
  fateOfBackfill(backfill: StartedBackfillRow): Promise<WorkflowFate>;
  /** Begins what a row of backfills says. Begun already is fine. */
  startBackfill(row: BatchExportRow, backfill: StartedBackfillRow): Promise<void>;
  /** Asks it to stop; its runs are cancelled first. One that is over, or was never there, is fine. */
  cancelBackfill(backfill: Pick<BackfillRow, 'workflow_id'>): Promise<void>;
  /**
   * Reads an interval again, in the database and at the destination. Undefined: it takes longer than that; asked again,
   * it is the same verification. Throws a VerifyError if it cannot be done.
   */
  verify(
    row: BatchExportRow,
    interval: IntervalText,
    options: { waitMilliseconds: number },
  ): Promise<VerifyReport | undefined>;
  /** Tells the operators of it, once, however often it is asked to with the same `about`. */
  startNotice(notice: NoticeInput, about: string): Promise<void>;
  /** Every schedule of a batch export, by export id; the list is behind by a moment. */
  list(): Promise<Map<string, ScheduleSummary>>;
  /** Whether the list shows what the row says. It does not show everything: `sync` looks closely. */
  looksRight(row: BatchExportRow, listed: ScheduleSummary): boolean;
  /** Whether this installation made the schedule: others may use the same namespace. */
  isOwn(exportId: string): Promise<boolean>;
  /** The page of a run in the Temporal UI. */
  runUrl(run: RunReference): string;
}

export interface ExportSchedulesOptions {
  taskQueue: string;
  namespace: string;
  /** Without a slash at its end. */
  uiUrl: string;
}

export function createExportSchedules(client: Client, options: ExportSchedulesOptions): ExportSchedules {
  const { taskQueue, namespace, uiUrl } = options;

  async function cancel(workflowId: string, runId?: string): Promise<void> {
    try {
      await client.workflow.getHandle(workflowId, runId).cancel();
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }
  return {
    sync: (row) => syncSchedule(client, row, taskQueue),
    remove: (exportId) => removeSchedule(client, exportId),
    async startRun(row, interval) {
      const input: ExportRunInput = { exportId: row.id, interval };
      const handle = await client.workflow.start(EXPORT_RUN, {
        workflowId: `${row.id}-run-${randomUUID()}`,
        taskQueue,
        args: [input],
        typedSearchAttributes: [
          ...attributesOf(row),
          { key: searchAttributes.intervalEnd, value: new Date(interval.end) },
        ],
        staticSummary: summaryOf(row),
      });
      return { workflowId: handle.workflowId, workflowRunId: handle.firstExecutionRunId };
    },
    cancelRun: ({ workflow_id, workflow_run_id }) => cancel(workflow_id, workflow_run_id),
    fateOfRun: ({ workflow_id, workflow_run_id }) => workflowFate(client, workflow_id, workflow_run_id),
    fateOfScheduledRun: (exportId, intervalEnd) =>
      workflowFate(client, scheduledWorkflowId(exportId, intervalEnd), undefined),
    fateOfBackfill: ({ id, workflow_id }) => workflowFate(client, workflow_id, undefined, { backfill: id }),
    startBackfill: (row, backfill) => startBackfill(client, row, backfill, taskQueue),
    cancelBackfill: ({ workflow_id }) => cancel(workflow_id),
    verify: (row, interval, { waitMilliseconds }) =>
      verifyInterval(client, row, interval, { waitMilliseconds, taskQueue }),
    startNotice: (notice, about) => startNotice(client, notice, about, taskQueue),
    list: () => listExportSchedules(client),
    looksRight: (row, listed) => looksRight(row, listed, taskQueue),
    isOwn: (exportId) => isOwnSchedule(client, exportId, taskQueue),
    runUrl: ({ workflow_id, workflow_run_id }) =>
      `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflow_id)}/${encodeURIComponent(workflow_run_id)}`,
  };
}
