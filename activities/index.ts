import type { Pool } from '../db/pool.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Logger } from '../telemetry/logger.ts';
import { createMaintenanceActivities } from './maintenance.ts';

/** What activities work with; the worker makes it, tests make their own. */
export interface ActivityDependencies {
  pool: Pool;
  schedules: Schedules;
  logger: Logger;
}

/** Every activity of Sluice. Each is one step of I/O that can be repeated. */
export function createActivities(deps: ActivityDependencies) {
  return {
    ...createMaintenanceActivities(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;
