import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import { MAINTENANCE, searchAttributes } from '../workflows/names.ts';

export const MAINTENANCE_SCHEDULE = 'sluice-maintenance';

/** The maintenance schedule as this version wants it: made if missing, mended if different or paused. */
export async function ensureMaintenance(client: Client, taskQueue: string): Promise<void> {
  const wanted = {
    spec: { intervals: [{ every: '1 minute' }] },
    action: {
      type: 'startWorkflow' as const,
      workflowType: MAINTENANCE,
      workflowId: MAINTENANCE_SCHEDULE,
      taskQueue,
      workflowExecutionTimeout: '10 minutes',
      typedSearchAttributes: [{ key: searchAttributes.kind, value: MAINTENANCE }],
      staticSummary: 'What no request does: expiry, deletions, repair',
    },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
  };
  try {
    await client.schedule.create({
      scheduleId: MAINTENANCE_SCHEDULE,
      ...wanted,
      typedSearchAttributes: [{ key: searchAttributes.kind, value: MAINTENANCE }],
      state: { triggerImmediately: true },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await client.schedule.getHandle(MAINTENANCE_SCHEDULE).update((previous) => ({
      ...previous,
      ...wanted,
      state: { paused: false },
    }));
  }
}
