import { type Client, ScheduleNotFoundError, WorkflowNotFoundError } from '@temporalio/client';
import type { ListedSchedule, WorkflowFate } from '../../exports/temporal.ts';
import { EXPORT_KIND, searchAttributes } from '../../workflows/names.ts';
import { listedAsWanted, scheduleOf } from './export-schedule.ts';

/** Lists every schedule of a batch export by export id. The list is behind by a moment. */
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

/** Whether the schedule was made by this installation: others may use the same namespace, with a queue of their own. */
export async function isOwnSchedule(client: Client, scheduleId: string, taskQueue: string): Promise<boolean> {
  try {
    const { action } = await client.schedule.getHandle(scheduleId).describe();
    return action.taskQueue === taskQueue;
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    return false;
  }
}

const FATES: Readonly<Record<string, WorkflowFate>> = {
  RUNNING: 'running',
  PAUSED: 'running',
  COMPLETED: 'completed',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'timed-out',
  // The one that went on is another run: of this one there is nothing more to come.
  CONTINUED_AS_NEW: 'completed',
};

export async function workflowFate(
  client: Client,
  workflowId: string,
  runId: string | undefined,
  /** The memo that it must have to be the one that is meant: ids of workflows are used again. */
  memo: Readonly<Record<string, string>> = {},
): Promise<WorkflowFate> {
  try {
    const found = await client.workflow.getHandle(workflowId, runId).describe();
    if (Object.entries(memo).some(([key, value]) => found.memo?.[key] !== value)) return 'unknown';
    return FATES[found.status.name] ?? 'unknown';
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return 'unknown';
  }
}
