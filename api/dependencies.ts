import type { Config } from '../config.ts';
import type { Pool } from '../db/pool.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Registry } from '../telemetry/metrics.ts';

/** What the HTTP side works with; `main.ts` makes it, tests make their own. */
export interface ApiDependencies {
  config: Config;
  pool: Pool;
  schedules: Schedules;
  logger: Logger;
  registry: Registry;
  /** Whether the database is at this code's version; until then, only health is answered. */
  isPrepared: () => boolean;
  /** Whether the process is on its way out: readiness says no, requests in flight are finished. */
  isDraining: () => boolean;
}
