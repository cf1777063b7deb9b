import { Context } from '@temporalio/activity';
import { dropExpiredEvents, ensureEventPartitions } from '../db/event-partitions.ts';
import { deleteSomeIngestionWarnings } from '../db/ingestion-warnings.ts';
import { listOpenDeletions, markDataDeleted, markSchedulesStopped } from '../db/project-deletions.ts';
import { deleteSomeData } from '../db/project-tables.ts';
import { deleteExpiredRateLimits } from '../db/rate-limits.ts';
import { deleteExpiredWizardSessions } from '../db/wizard-sessions.ts';
import type { ActivityDependencies } from './dependencies.ts';

const PROJECTS_PER_RUN = 50;
const ROWS_PER_STATEMENT = 5_000;
const ROWS_PER_RUN = 500_000;
/** So many weeks may maintenance stand still before events go to the default partition. */
const WEEKS_AHEAD = 4;
/** A warning helps as long as somebody still looks for the events that it is about. */
const WARNING_DAYS = 90;
const DAY = 86_400_000;

export function createMaintenanceActivities({ pool, schedules, eventRetentionDays }: ActivityDependencies) {
  return {
    /** Makes the partitions of events that will be needed, and drops those whose retention is over. */
    async keepEventPartitions(): Promise<number> {
      const now = new Date();
      const made = await ensureEventPartitions(pool, now, WEEKS_AHEAD);
      if (eventRetentionDays === undefined) return made;
      return made + (await dropExpiredEvents(pool, now, eventRetentionDays));
    },

    /** Deletes wizard sessions and counted requests that are over. */
    async expireSessions(): Promise<number> {
      const sessions = await deleteExpiredWizardSessions(pool);
      await deleteExpiredRateLimits(pool);
      return sessions;
    },

    /** Deletes the schedules of deleted projects and terminates what they have running. */
    async stopDeletedProjects(): Promise<number> {
      const open = (await listOpenDeletions(pool, PROJECTS_PER_RUN)).filter(
        (row) => !row.schedules_stopped_at,
      );
      for (const { project_id } of open) {
        Context.current().heartbeat(project_id);
        await schedules.stopProject(project_id);
        await markSchedulesStopped(pool, project_id);
      }
      return open.length;
    },

    /** Deletes the data of deleted projects, in small statements, after everything that could add to it stopped. */
    async deleteProjectData(): Promise<number> {
      let deleted = 0;
      for (const row of await listOpenDeletions(pool, PROJECTS_PER_RUN)) {
        if (!row.schedules_stopped_at) continue;
        for (;;) {
          Context.current().heartbeat(deleted);
          const some = await deleteSomeData(pool, row.project_id, ROWS_PER_STATEMENT);
          deleted += some;
          if (deleted >= ROWS_PER_RUN) return deleted;
          if (some === 0) break;
        }
        await markDataDeleted(pool, row.project_id);
      }
      return deleted;
    },

    /** Deletes ingestion warnings of long ago, in small statements. */
    async expireIngestionWarnings(): Promise<number> {
      const firstKept = new Date(Date.now() - WARNING_DAYS * DAY).toISOString().slice(0, 10);
      let deleted = 0;
      while (deleted < ROWS_PER_RUN) {
        Context.current().heartbeat(deleted);
        const some = await deleteSomeIngestionWarnings(pool, firstKept, ROWS_PER_STATEMENT);
        if (some === 0) break;
        deleted += some;
      }
      return deleted;
    },
  };
}
