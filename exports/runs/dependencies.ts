import type { Pool, Queryable } from '../../db/pool.ts';
import type { Surroundings } from '../../destinations/destination.ts';
import type { Egress } from '../../egress/egress.ts';
import type { ModelCompiler } from '../../models/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { ExportTemporal } from '../temporal.ts';
import type { ExportMetrics } from './metrics.ts';
import type { Rhythm } from './rhythm.ts';
import type { Asking } from './worker-place.ts';

/** What the runs of batch exports and their upkeep need. */
export interface RunDependencies {
  pool: Pool;
  /**
   * Connections of the reader, for the rows that are exported. They are separate, so that other statements do not wait
   * for one.
   */
  copyPool: Pool;
  /** A few connections for finding out how much a backfill has to do, which may take long. */
  sizingPool: Pool;
  temporal: ExportTemporal;
  logger: Logger;
  metrics: ExportMetrics;
  /** Compiles filters and columns, which users write. */
  compiler: ModelCompiler;
  /** Finds which of these cohorts a project has, and whether their members are known. */
  cohortStates(
    queryable: Queryable,
    projectId: number,
    ids: readonly number[],
  ): Promise<readonly { id: number; is_known: boolean; count_error: string | null }[]>;
  egress: Egress;
  keyring: Keyring | undefined;
  /** The id of this worker, under which it announces its places. */
  worker: string;
  /** The activities of this worker that ask for a place. */
  asking: Asking;
  /** The directory that exports to files write below. */
  exportRoot: string;
  /** How long a request to a destination is repeated before the attempt fails. Tests make it shorter. */
  patience?: Surroundings['patience'];
  /** How long destinations are waited for. Tests make it shorter. */
  limits?: Surroundings['limits'];
  /** How often attempts report and how long they pause. Without it, as usual. */
  rhythm?: Rhythm;
  /** Days after which stored events are deleted. Undefined: never. */
  eventRetentionDays: number | undefined;
  /** Days after which the logs of batch exports are deleted. */
  logDays: number;
  /** Days after which runs, backfills, checks and counts of batch exports are deleted. */
  runDays: number;
  /** Whether missing intervals are started again. */
  repair: boolean;
  /** The number of failed runs that pauses an export. 0: no export is paused. */
  pauseAfter: number;
  /** The webhook that notices are posted to. Undefined: there are no notices. */
  noticeWebhook: string | undefined;
  /** The address of the API, for the links in notices. */
  publicUrl: string;
}
