import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { ListedSchedule, WorkflowFate } from '../../exports/temporal.ts';
import { EXPORT_KIND, searchAttributes } from '../../workflows/names.ts';
import { describeSchedule } from './describe.ts';
import { listedAsWanted, scheduleOf } from './export-schedule.ts';

/** Lists the schedules of all batch exports by export id. The list is a moment behind. */
export async function listExportSchedules(
  client: Client,
  taskQueue: string,
): Promise<Map<string, ListedSchedule>> {
  const found = new Map<string, ListedSchedule>();
  const query = `${searchAttributes.kind.name} = '${EXPORT_KIND}'`;
  for await (const one of client.schedule.list({ query })) {
    found.set(one.scheduleId, {
      matches: (row) => listedAsWanted(scheduleOf(row, taskQueue, Date.now()), row.paused, one),
    });
  }
  return found;
}

/** Answers whether this installation made a schedule. Others may use the same namespace, with another task queue. */
export async function isOwnSchedule(client: Client, scheduleId: string, taskQueue: string): Promise<boolean> {
  const found = await describeSchedule(client.schedule.getHandle(scheduleId));
  return found?.action.taskQueue === taskQueue;
}

const FATES: Readonly<Record<string, WorkflowFate>> = {
  RUNNING: 'running',
  PAUSED: 'running',
  COMPLETED: 'completed',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'timed-out',
  // The workflow continues in another run. This one has ended.
  CONTINUED_AS_NEW: 'completed',
};

/** Finds out what became of a workflow. If it continues in another run, that one decides. */
export async function workflowFate(
  client: Client,
  workflowId: string,
  runId: string | undefined,
  /** The memo that the workflow must have. Without it, it is another workflow with the same id. */
  memo: Readonly<Record<string, string>> = {},
): Promise<WorkflowFate> {
  try {
    const found = await client.workflow.getHandle(workflowId, runId).describe();
    if (Object.entries(memo).some(([key, value]) => found.memo?.[key] !== value)) return 'unknown';
    if (found.status.name === 'CONTINUED_AS_NEW' && runId !== undefined)
      return await workflowFate(client, workflowId, undefined, memo);
    return FATES[found.status.name] ?? 'unknown';
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return 'unknown';
  }
}
