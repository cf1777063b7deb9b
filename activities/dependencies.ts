import type { Pool } from '../db/pool.ts';
import type { RunDependencies } from '../exports/runs/dependencies.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Product } from '../tenancy/product.ts';

/** What activities work with; the worker makes it, tests make their own. */
export interface ActivityDependencies {
  pool: Pool;
  /** The products whose steps of maintenance run, and whose tables are emptied when a project is deleted. */
  products: readonly Product<ActivityDependencies>[];
  schedules: Schedules;
  /** Days after which stored events are deleted. Undefined: never. */
  eventRetentionDays: number | undefined;
  exports: RunDependencies;
}
