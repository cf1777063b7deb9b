import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { BackfillReference, ExportBackfillInput } from '../../exports/temporal.ts';
import { BACKFILL_KIND, EXPORT_BACKFILL } from '../../workflows/names.ts';
import { attributesOf, summaryOf } from './export-schedule.ts';

/** Starts the workflow of a backfill. Does nothing if it is already running. */
export async function startBackfill(
  client: Client,
  row: BatchExportRow,
  backfill: BackfillReference,
  taskQueue: string,
): Promise<void> {
  const input: ExportBackfillInput = { exportId: row.id, backfillId: backfill.id };
  try {
    await client.workflow.start(EXPORT_BACKFILL, {
      workflowId: backfill.workflow_id,
      taskQueue,
      args: [input],
      memo: { backfill: backfill.id },
      typedSearchAttributes: attributesOf(row, BACKFILL_KIND),
      staticSummary: summaryOf(row, 'Backfill of batch export'),
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
