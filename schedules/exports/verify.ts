import { setTimeout as pause } from 'node:timers/promises';
import {
  type Client,
  WithStartWorkflowOperation,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure, type Workflow } from '@temporalio/common';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { VerifyReport } from '../../exports/rules/verify-report.ts';
import { verificationWorkflowId } from '../../exports/rules/workflow-ids.ts';
import type { VerifyIntervalInput } from '../../exports/temporal.ts';
import { type IntervalText, rangeText } from '../../intervals/index.ts';
import { refuse } from '../../refusals.ts';
import {
  searchAttributes,
  VERIFY_INTERVAL,
  VERIFY_KIND,
  VERIFY_REPORT,
  VERIFY_TAKEN,
} from '../../workflows/names.ts';
import { attributesOf, summaryOf } from './export-schedule.ts';

/**
 * How many verifications of a project may be in progress or wait for a client to receive their report. Backfills use
 * the same workers, and must not wait for hours behind them.
 */
export const MOST_VERIFICATIONS = 20;
const CROWD_RETRY_SECONDS = 60;
const SHORTEST_WAIT = 1_000;
const ENDING = 50;
const DEADLINE_EXCEEDED = 4;

async function isRunning(client: Client, workflowId: string): Promise<boolean> {
  try {
    return (await client.workflow.getHandle(workflowId).describe()).status.name === 'RUNNING';
  } catch (error) {
    ignoreGone(error);
    return false;
  }
}

/** Refuses a verification if there are too many. Temporal's count is a moment behind, so the limit is not exact. */
async function refuseTooMany(client: Client, row: BatchExportRow, workflowId: string): Promise<void> {
  const { count } = await client.workflow.count(
    `${searchAttributes.kind.name} = '${VERIFY_KIND}' and ${searchAttributes.project.name} = ${row.project_id} and ExecutionStatus = 'Running'`,
  );
  if (count < MOST_VERIFICATIONS || (await isRunning(client, workflowId))) return;
  throw refuse.crowded(
    `This team already has ${count} verifications of batch exports running. Wait for some to finish before asking for more.`,
    CROWD_RETRY_SECONDS,
  );
}

/**
 * Verifies an interval, or joins a verification of it that is in progress. Undefined: the wait was too short; calling
 * this again joins the same verification. Throws a Refusal if the interval cannot be verified.
 */
export async function verifyInterval(
  client: Client,
  row: BatchExportRow,
  interval: IntervalText,
  { waitMilliseconds, taskQueue }: { waitMilliseconds: number; taskQueue: string },
): Promise<VerifyReport | undefined> {
  const input: VerifyIntervalInput = { exportId: row.id, interval };
  const workflowId = verificationWorkflowId(row.id, interval);
  await refuseTooMany(client, row, workflowId);
  const operation = () =>
    new WithStartWorkflowOperation(VERIFY_INTERVAL, {
      workflowId,
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'USE_EXISTING',
      typedSearchAttributes: [
        ...attributesOf(row, VERIFY_KIND),
        { key: searchAttributes.intervalEnd, value: new Date(interval.end) },
      ],
      staticSummary: summaryOf(row, `Verify ${rangeText(interval)} of batch export`),
    });
  const take = () => client.workflow.getHandle(workflowId).signal(VERIFY_TAKEN).catch(ignoreGone);
  const deadline = Date.now() + Math.max(SHORTEST_WAIT, waitMilliseconds);
  for (;;) {
    try {
      const report = await client.withDeadline(deadline, () =>
        client.workflow.executeUpdateWithStart<Workflow, VerifyReport, []>(VERIFY_REPORT, {
          startWorkflowOperation: operation(),
        }),
      );
      // From now on, a request for the interval starts a new verification.
      await take();
      return report;
    } catch (error) {
      if (isTimeout(error)) return undefined;
      const { cause } = error as { cause?: unknown };
      // The verification whose report was received is about to end. The next try starts a new one.
      if (cause instanceof ApplicationFailure && cause.type === VERIFY_TAKEN && Date.now() < deadline) {
        await pause(ENDING);
        continue;
      }
      if (!(error instanceof WorkflowUpdateFailedError)) throw error;
      await take();
      throw refuse.invalid(null, error.cause?.message ?? error.message);
    }
  }
}

function ignoreGone(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

function isTimeout(error: unknown): boolean {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return true;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return code === DEADLINE_EXCEEDED || (cause instanceof Error && isTimeout(cause));
}
