import os from 'node:os';
import type { Config } from '../config.ts';
import { createPool } from '../db/pool.ts';
import { createEgress } from '../egress/egress.ts';
import type { RunDependencies } from '../exports/runs/dependencies.ts';
import { createExportMetrics, type ExportMetrics } from '../exports/runs/metrics.ts';
import { createCompiler } from '../models/index.ts';
import { parseKeyring } from '../secrets/envelope.ts';

/**
 * How many runs are in progress at once: those that schedules start, and those of backfills together with
 * verifications.
 */
export interface Lanes {
  exports: number;
  backfills: number;
}

/** What batch exports take from the rest of the worker. */
export interface SharedTools
  extends Pick<RunDependencies, 'pool' | 'temporal' | 'logger' | 'patience' | 'rhythm'> {
  /** The metrics of exports. Without it nobody sees them. */
  metrics?: ExportMetrics | undefined;
}

/** What a worker needs for batch exports. */
export interface ExportTools {
  dependencies: RunDependencies;
  lanes: Lanes;
  close(): Promise<void>;
}

const EACH = 256 * 1024 * 1024;
const [LEAST, MOST] = [2, 8];

/**
 * Returns how many runs may be in progress at once. By default, half of the memory is for runs, 256 MiB for each of
 * them.
 */
export function exportConcurrency(config: Pick<Config, 'SLUICE_EXPORT_CONCURRENCY'>, memory: number): number {
  return config.SLUICE_EXPORT_CONCURRENCY ?? Math.min(MOST, Math.max(LEAST, Math.floor(memory / 2 / EACH)));
}

/** Divides the runs. Backfills get a third of them, and each lane gets at least one. */
export function lanesOf(concurrency: number): Lanes {
  const backfills = Math.ceil(concurrency / 3);
  return { exports: Math.max(1, concurrency - backfills), backfills };
}

/** Returns the memory of the machine, or of the container if that is less. */
function memoryOf(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}

/** Puts together what batch exports need. */
export function createExportTools(
  config: Config,
  { pool, temporal, logger, patience, rhythm, metrics = createExportMetrics(undefined) }: SharedTools,
): ExportTools {
  const lanes = lanesOf(exportConcurrency(config, memoryOf()));
  const compiler = createCompiler();
  const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW });
  const copyPool = createPool({
    url: config.DATABASE_URL as string,
    // One connection for each run, and one more for an earlier read of it that has not stopped yet.
    size: (lanes.exports + lanes.backfills) * 2,
    name: 'exports',
    onError: (error) =>
      logger.warn({ err: error }, 'a connection to Postgres for reading exported rows broke'),
  });
  return {
    lanes,
    dependencies: {
      ...{ pool, copyPool, temporal, logger, metrics, compiler, egress, patience, rhythm },
      keyring: config.SLUICE_ENCRYPTION_KEYS ? parseKeyring(config.SLUICE_ENCRYPTION_KEYS) : undefined,
      exportRoot: config.SLUICE_EXPORT_ROOT,
      eventRetentionDays: config.SLUICE_EVENT_RETENTION_DAYS,
      logDays: config.SLUICE_EXPORT_LOG_DAYS,
      runDays: config.SLUICE_EXPORT_RUN_DAYS,
      repair: config.SLUICE_EXPORT_REPAIR,
      pauseAfter: config.SLUICE_EXPORT_PAUSE_AFTER,
      noticeWebhook: config.SLUICE_NOTICE_WEBHOOK,
      publicUrl: config.SLUICE_PUBLIC_URL,
    },
    async close() {
      await Promise.all([compiler.close(), egress.close(), copyPool.end()]);
    },
  };
}
