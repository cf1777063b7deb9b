import type { Client } from '@temporalio/client';
import {
  BACKLOG_KIND,
  FUNCTION_DISPATCH,
  FUNCTION_RETRIES,
  MAINTENANCE,
  RECONCILE_EXPORTS,
  RECONCILE_KIND,
} from '../workflows/names.ts';
import { ensureOwnSchedule, type OwnSchedule } from './own-schedule.ts';

export const MAINTENANCE_SCHEDULE = 'sluice-maintenance';
export const DISPATCH_SCHEDULE = 'sluice-function-dispatch';
export const RETRIES_SCHEDULE = 'sluice-function-retries';
export const RECONCILE_SCHEDULE = 'sluice-export-reconcile';

/**
 * Creates or corrects the schedules of the installation itself. `isComplete`: the namespace has all search attributes. If it
 * has not, the schedules do without.
 */
export async function ensureMaintenance(
  client: Client,
  taskQueue: string,
  { isComplete }: { isComplete: boolean },
): Promise<void> {
  const ensure = (own: OwnSchedule) => ensureOwnSchedule(client, taskQueue, own, { isComplete });
  await ensure({
    scheduleId: MAINTENANCE_SCHEDULE,
    workflowType: MAINTENANCE,
    kind: MAINTENANCE,
    every: '1 minute',
    longest: '10 minutes',
    summary: 'What no request does: expiry, deletions, repair',
  });
  await ensure({
    scheduleId: RECONCILE_SCHEDULE,
    workflowType: RECONCILE_EXPORTS,
    kind: RECONCILE_KIND,
    every: '5 minutes',
    longest: '1 hour',
    summary: 'Whether every interval of every batch export was exported',
  });
  for (const [scheduleId, workflowType, summary] of [
    [DISPATCH_SCHEDULE, FUNCTION_DISPATCH, 'Stored events that functions have not seen yet'],
    [RETRIES_SCHEDULE, FUNCTION_RETRIES, 'Invocations of functions that wait'],
  ] as const) {
    await ensure({
      ...{ scheduleId, workflowType, summary },
      ...{ kind: BACKLOG_KIND, every: '1 minute', longest: '10 minutes' },
    });
  }
}
