import type { Pool } from '../db/pool.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Logger } from '../telemetry/logger.ts';

/** What activities work with; the worker makes it, tests make their own. */
export interface ActivityDependencies {
  pool: Pool;
  schedules: Schedules;
  logger: Logger;
  /** Days after which stored events are deleted; undefined: never. */
  eventRetentionDays: number | undefined;
  /** Days after which logs, and runs with their metrics, of batch exports are deleted. */
  exportLogDays: number;
  exportRunDays: number;
}
