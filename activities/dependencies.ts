import type { Pool } from '../db/pool.ts';
import type { RunDependencies } from '../exports/runs/dependencies.ts';
import type { Schedules } from '../schedules/schedules.ts';

/** What activities work with; the worker makes it, tests make their own. */
export interface ActivityDependencies {
  pool: Pool;
  schedules: Schedules;
  /** Days after which stored events are deleted. Undefined: never. */
  eventRetentionDays: number | undefined;
  exports: RunDependencies;
}
