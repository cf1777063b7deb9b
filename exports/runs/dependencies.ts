import type { Pool } from '../../db/pool.ts';
import type { Surroundings } from '../../destinations/destination.ts';
import type { Egress } from '../../egress/egress.ts';
import type { Parser } from '../../hog/parser/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { ExportTemporal } from '../temporal.ts';
import type { ExportMetrics } from './metrics.ts';

/** What the runs of batch exports work with, and their upkeep. */
export interface RunDependencies {
  pool: Pool;
  /** Connections for reading the rows that are exported. They are separate, so that no statement of `pool` waits for them. */
  copyPool: Pool;
  temporal: ExportTemporal;
  logger: Logger;
  metrics: ExportMetrics;
  parser: Parser;
  egress: Egress;
  keyring: Keyring | undefined;
  /** SLUICE_EXPORT_ROOT. */
  exportRoot: string;
  /** How long destinations are asked again before an attempt fails. Without it, as long as usual. */
  patience?: Surroundings['patience'];
  /** Days after which stored events are deleted. Undefined: never. */
  eventRetentionDays: number | undefined;
  /** Days after which the logs of batch exports are deleted. */
  logDays: number;
  /** Days after which runs, backfills, checks and counts of batch exports are deleted. */
  runDays: number;
  /** Whether missing intervals are started again. */
  repair: boolean;
  /** How many failed runs pause an export. 0: none do. */
  pauseAfter: number;
  /** Where failures are posted. Undefined: nowhere. */
  noticeWebhook: string | undefined;
  /** Where the API is, for the links in notices. */
  publicUrl: string;
}
