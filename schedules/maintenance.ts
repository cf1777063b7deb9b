import type { Client } from '@temporalio/client';
import { MAINTENANCE, RECONCILE_EXPORTS, RECONCILE_KIND } from '../workflows/names.ts';
import { ensureOwnSchedule } from './own-schedule.ts';

export const MAINTENANCE_SCHEDULE = 'sluice-maintenance';
export const RECONCILE_SCHEDULE = 'sluice-export-reconcile';

/** Creates or corrects the schedules of the installation itself. */
export async function ensureMaintenance(client: Client, taskQueue: string): Promise<void> {
  await ensureOwnSchedule(client, taskQueue, {
    scheduleId: MAINTENANCE_SCHEDULE,
    workflowType: MAINTENANCE,
    kind: MAINTENANCE,
    every: '1 minute',
    longest: '10 minutes',
    summary: 'What no request does: expiry, deletions, repair',
  });
  await ensureOwnSchedule(client, taskQueue, {
    scheduleId: RECONCILE_SCHEDULE,
    workflowType: RECONCILE_EXPORTS,
    kind: RECONCILE_KIND,
    every: '5 minutes',
    longest: '1 hour',
    summary: 'Whether every interval of every batch export was exported',
  });
}
