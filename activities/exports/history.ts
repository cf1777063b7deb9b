import { Context } from '@temporalio/activity';
import { deleteOldLogs } from '../../exports/rows/logs.ts';
import { RUN_EXPIRIES } from '../../exports/rows/retention.ts';
import type { ActivityDependencies } from '../dependencies.ts';

const ROWS_PER_STATEMENT = 5_000;
const ROWS_PER_RUN = 200_000;
const DAY = 86_400_000;

export function createExportHistoryActivities({
  pool,
  exportLogDays,
  exportRunDays,
}: Pick<ActivityDependencies, 'pool' | 'exportLogDays' | 'exportRunDays'>) {
  return {
    /** Deletes what batch exports said and did long ago, in small statements. */
    async expireExportHistory(): Promise<number> {
      const before = (days: number) => new Date(Date.now() - days * DAY).toISOString();
      const steps = [
        () => deleteOldLogs(pool, before(exportLogDays), ROWS_PER_STATEMENT),
        ...RUN_EXPIRIES.map((expire) => () => expire(pool, before(exportRunDays), ROWS_PER_STATEMENT)),
      ];
      let deleted = 0;
      for (const step of steps) {
        for (;;) {
          Context.current().heartbeat(deleted);
          const some = await step();
          deleted += some;
          if (deleted >= ROWS_PER_RUN) return deleted;
          if (some < ROWS_PER_STATEMENT) break;
        }
      }
      return deleted;
    },
  };
}
