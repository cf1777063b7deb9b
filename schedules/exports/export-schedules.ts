import { randomUUID } from 'node:crypto';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { RunRow } from '../../db/batch-export-runs.ts';
import type { BatchExportRow } from '../../db/batch-exports.ts';
import {
  EXPORT_RUN,
  type ExportRunInput,
  type IntervalText,
  searchAttributes,
} from '../../workflows/names.ts';
import { attributesOf, summaryOf } from './export-schedule.ts';
import { removeSchedule, syncSchedule } from './sync.ts';

/** Temporal's names of a run. */
export type RunReference = Pick<RunRow, 'workflow_id' | 'workflow_run_id'>;

/** What Temporal does for batch exports. The rows are the truth; all of this is derived from them. */
export interface ExportSchedules {
  /** Makes the export's schedule what its row says; one that is right already is left alone. Deleted: it goes. */
  sync(row: BatchExportRow): Promise<void>;
  /** No schedule is fine. */
  remove(exportId: string): Promise<void>;
  /** Runs an interval now, whatever the schedule does. */
  startRun(
    row: BatchExportRow,
    interval: IntervalText,
  ): Promise<{ workflowId: string; workflowRunId: string }>;
  /** Asks a run to stop. One that is over, or was never there, is fine. */
  cancelRun(run: RunReference): Promise<void>;
  /** Whether Temporal still works on a run: a row that says so may be wrong after a workflow was terminated. */
  isUnderWay(run: RunReference): Promise<boolean>;
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
    async cancelRun({ workflow_id, workflow_run_id }) {
      try {
        await client.workflow.getHandle(workflow_id, workflow_run_id).cancel();
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },
    async isUnderWay({ workflow_id, workflow_run_id }) {
      try {
        const { status } = await client.workflow.getHandle(workflow_id, workflow_run_id).describe();
        return status.name === 'RUNNING' || status.name === 'PAUSED';
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
        return false;
      }
    },
    runUrl: ({ workflow_id, workflow_run_id }) =>
      `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflow_id)}/${encodeURIComponent(workflow_run_id)}`,
  };
}
