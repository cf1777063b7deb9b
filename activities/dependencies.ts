import type { Pool } from '../db/pool.ts';
import type { Surroundings } from '../destinations/destination.ts';
import type { Egress } from '../egress/egress.ts';
import type { Parser } from '../hog/parser/index.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Keyring } from '../secrets/envelope.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Product } from '../tenancy/product.ts';
import type { ExportMetrics } from './exports/metrics.ts';

/** What the activities of batch exports work with. */
export interface ExportDependencies {
  /** For the rows that are exported: connections of their own, so that nobody else waits for one. */
  copyPool: Pool;
  parser: Parser;
  egress: Egress;
  keyring: Keyring | undefined;
  /** SLUICE_EXPORT_ROOT. */
  exportRoot: string;
  /** How long destinations are asked again, where it is not as usual. */
  patience?: Surroundings['patience'];
  metrics: ExportMetrics;
  /** Failed runs after which an export is paused; 0: never. */
  pauseAfter: number;
  noticeWebhook: string | undefined;
  /** Where the API is, for links. */
  publicUrl: string;
}

/** What activities work with; the worker makes it, tests make their own. */
export interface ActivityDependencies {
  pool: Pool;
  /** The products whose steps of maintenance run, and whose tables are emptied when a project is deleted. */
  products: readonly Product<ActivityDependencies>[];
  schedules: Schedules;
  logger: Logger;
  /** Days after which stored events are deleted; undefined: never. */
  eventRetentionDays: number | undefined;
  /** Days after which logs, and runs with their metrics, of batch exports are deleted. */
  exportLogDays: number;
  exportRunDays: number;
  /** Whether missing intervals are started again. */
  exportRepair: boolean;
  exports: ExportDependencies;
}
