import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import { searchAttributes } from '../workflows/names.ts';

/** A schedule of the installation itself, which runs a workflow again and again. */
export interface OwnSchedule {
  scheduleId: string;
  workflowType: string;
  kind: string;
  every: '1 minute' | '5 minutes';
  /** Temporal ends a run that takes longer. */
  longest: '10 minutes' | '1 hour';
  summary: string;
}

/** Creates the schedule if it is missing, and corrects it if it is paused or differs from what this version needs. */
export async function ensureOwnSchedule(client: Client, taskQueue: string, own: OwnSchedule): Promise<void> {
  const { scheduleId, kind } = own;
  const typedSearchAttributes = [{ key: searchAttributes.kind, value: kind }];
  const wanted = {
    spec: { intervals: [{ every: own.every }] },
    action: {
      type: 'startWorkflow' as const,
      workflowType: own.workflowType,
      workflowId: scheduleId,
      taskQueue,
      workflowExecutionTimeout: own.longest,
      typedSearchAttributes,
      staticSummary: own.summary,
    },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' as const },
  };
  try {
    await client.schedule.create({
      scheduleId,
      ...wanted,
      typedSearchAttributes,
      state: { triggerImmediately: true },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await client.schedule.getHandle(scheduleId).update((previous) => ({
      ...previous,
      ...wanted,
      state: { paused: false },
    }));
  }
}
