import { patched, proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

const {
  keepEventPartitions,
  expireSessions,
  stopDeletedProjects,
  deleteProjectData,
  expireIngestionWarnings,
  repairExportSchedules,
  endOrphanedRuns,
  mendBackfills,
  expireExportHistory,
} = proxyActivities<Activities>({
  startToCloseTimeout: '2 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { maximumAttempts: 3 },
});

export interface MaintenanceReport {
  /** Weeks of events that were made or dropped. */
  changedPartitions: number;
  expiredSessions: number;
  stoppedProjects: number;
  deletedRows: number;
  expiredWarnings: number;
  /** Schedules of batch exports that were not what their rows say. */
  repairedSchedules: number;
  /** Runs and backfills whose workflow is gone. */
  endedOrphans: number;
  mendedBackfills: number;
  /** Rows of logs, runs and metrics of batch exports. */
  expiredExportHistory: number;
  /** Steps that failed after their retries; the next minute tries again. */
  failed: string[];
}

/** Every minute: what no request does. One step that fails does not keep the others from running. */
export async function maintenance(): Promise<MaintenanceReport> {
  const failed: string[] = [];
  const step = async (name: string, work: () => Promise<number>): Promise<number> => {
    try {
      return await work();
    } catch {
      failed.push(name);
      return 0;
    }
  };
  const report = {
    // Runs that began before there were events do without.
    changedPartitions: patched('event-partitions')
      ? await step('keepEventPartitions', keepEventPartitions)
      : 0,
    expiredSessions: await step('expireSessions', expireSessions),
    stoppedProjects: await step('stopDeletedProjects', stopDeletedProjects),
    deletedRows: await step('deleteProjectData', deleteProjectData),
    // Runs that began before warnings expired do without.
    expiredWarnings: patched('ingestion-warnings')
      ? await step('expireIngestionWarnings', expireIngestionWarnings)
      : 0,
    // Runs that began before there were batch exports do without.
    ...(patched('export-upkeep')
      ? {
          repairedSchedules: await step('repairExportSchedules', repairExportSchedules),
          endedOrphans: await step('endOrphanedRuns', endOrphanedRuns),
          mendedBackfills: await step('mendBackfills', mendBackfills),
          expiredExportHistory: await step('expireExportHistory', expireExportHistory),
        }
      : { repairedSchedules: 0, endedOrphans: 0, mendedBackfills: 0, expiredExportHistory: 0 }),
    failed,
  };
  const counts = `${report.changedPartitions} partitions changed, ${report.expiredSessions} sessions expired, ${report.stoppedProjects} projects stopped, ${report.deletedRows} rows deleted, ${report.expiredWarnings} warnings expired, ${report.repairedSchedules} schedules repaired, ${report.endedOrphans} runs and ${report.mendedBackfills} backfills without a workflow, ${report.expiredExportHistory} rows of export history expired`;
  setCurrentDetails(failed.length > 0 ? `${counts}; failed: ${failed.join(', ')}` : counts);
  return report;
}
