import { randomUUID } from 'node:crypto';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { LRUCache } from 'lru-cache';
import { scheduledWorkflowId, startedWorkflowId } from '../../exports/rules/workflow-ids.ts';
import type { ExportRunInput, ExportTemporal } from '../../exports/temporal.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { EXPORT_RUN, PLACE_FREE, searchAttributes } from '../../workflows/names.ts';
import { startBackfill } from './backfills.ts';
import { isOwnSchedule, listExportSchedules, workflowFate } from './drift.ts';
import { attributesOf, summaryOf } from './export-schedule.ts';
import { mayHaveFired } from './fired.ts';
import { namingMissing } from './missing.ts';
import { startNotice } from './notices.ts';
import { removeSchedule, syncSchedule } from './sync.ts';
import { verifyInterval } from './verify.ts';

export interface ExportSchedulesOptions {
  taskQueue: string;
  namespace: string;
  /** Without a slash at its end. */
  uiUrl: string;
  logger: Logger;
  isReachable(): boolean;
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
}

/** Implements with Temporal's client what batch exports need from Temporal. */
export function createExportSchedules(client: Client, options: ExportSchedulesOptions): ExportTemporal {
  const { taskQueue, namespace, uiUrl, logger, isReachable, within } = options;
  /** What the log said of the firing times of a schedule. It says it once, not every minute. */
  const said = new LRUCache<string, string>({ max: 1_000 });

  function tell(exportId: string, difference: string | undefined): void {
    if (difference === undefined) said.delete(exportId);
    else if (said.get(exportId) !== difference) {
      said.set(exportId, difference);
      logger.warn(
        { exportId },
        `the schedule of a batch export does not fire when its intervals end: ${difference}`,
      );
    }
  }

  /** `firstRunId` is the run with which the workflow began. A later one with the same id is not cancelled. */
  async function cancel(workflowId: string, firstRunId?: string): Promise<void> {
    const chain = firstRunId === undefined ? {} : { firstExecutionRunId: firstRunId };
    try {
      await client.workflow.getHandle(workflowId, undefined, chain).cancel();
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }
  return {
    isReachable,
    within,
    sync: (row) => syncSchedule(client, row, taskQueue, (difference) => tell(row.id, difference)),
    remove: (exportId) => removeSchedule(client, exportId),
    mayHaveFired: (exportId, at) => mayHaveFired(client, namespace, exportId, at),
    async startRun(row, interval, by) {
      const input: ExportRunInput = { exportId: row.id, interval };
      const handle = await namingMissing(client, namespace, () =>
        client.workflow.start(EXPORT_RUN, {
          workflowId: startedWorkflowId(row.id, by, randomUUID()),
          taskQueue,
          args: [input],
          typedSearchAttributes: [
            ...attributesOf(row),
            { key: searchAttributes.intervalEnd, value: new Date(interval.end) },
          ],
          staticSummary: summaryOf(row),
        }),
      );
      return { workflowId: handle.workflowId, workflowRunId: handle.firstExecutionRunId };
    },
    cancelRun: ({ workflow_id, workflow_run_id }) => cancel(workflow_id, workflow_run_id),
    async callToPlace({ workflow_id }) {
      try {
        await client.workflow.getHandle(workflow_id).signal(PLACE_FREE);
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },
    fateOfRun: ({ workflow_id, workflow_run_id }) => workflowFate(client, workflow_id, workflow_run_id),
    fateOfScheduledRun: (exportId, intervalEnd) =>
      workflowFate(client, scheduledWorkflowId(exportId, intervalEnd), undefined),
    fateOfBackfill: ({ id, workflow_id }) => workflowFate(client, workflow_id, undefined, { backfill: id }),
    startBackfill: (row, backfill) => startBackfill(client, row, backfill, taskQueue),
    cancelBackfill: ({ workflow_id }) => cancel(workflow_id),
    verify: (row, interval, { waitMilliseconds }) =>
      namingMissing(client, namespace, () =>
        verifyInterval(client, row, interval, { waitMilliseconds, taskQueue }),
      ),
    startNotice: (notice, about) => startNotice(client, notice, about, taskQueue),
    list: () => listExportSchedules(client, taskQueue),
    isOwn: (exportId) => isOwnSchedule(client, exportId, taskQueue),
    runUrl: ({ workflow_id, workflow_run_id }) =>
      `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflow_id)}/${encodeURIComponent(workflow_run_id)}`,
  };
}
