import os from 'node:os';
import type { Config } from '../config.ts';
import { createPool } from '../db/pool.ts';
import { createEgress } from '../egress/egress.ts';
import type { RunDependencies } from '../exports/runs/dependencies.ts';
import { createExportMetrics, type ExportMetrics } from '../exports/runs/metrics.ts';
import { createParser } from '../hog/parser/index.ts';
import { parseKeyring } from '../secrets/envelope.ts';

/** How many runs are done at once: those that schedules start, and those of backfills, with verifications. */
export interface Lanes {
  exports: number;
  backfills: number;
}

/** What batch exports share with the rest of the worker. */
export interface SharedTools extends Pick<RunDependencies, 'pool' | 'temporal' | 'logger' | 'patience'> {
  /** Counts for the operators. Without it nobody sees the counts. */
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

/** At its most, a run takes about half of the memory that is counted for it. */
export function exportConcurrency(config: Pick<Config, 'SLUICE_EXPORT_CONCURRENCY'>, memory: number): number {
  return config.SLUICE_EXPORT_CONCURRENCY ?? Math.min(MOST, Math.max(LEAST, Math.floor(memory / 2 / EACH)));
}

/** Backfills get a third of the runs, and each lane gets one at least. */
export function lanesOf(concurrency: number): Lanes {
  const backfills = Math.ceil(concurrency / 3);
  return { exports: Math.max(1, concurrency - backfills), backfills };
}

/** The memory of the machine, or of the container where that is less. */
function memoryOf(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}

/** Puts together what batch exports work with. */
export function createExportTools(
  config: Config,
  { pool, temporal, logger, patience, metrics = createExportMetrics(undefined) }: SharedTools,
): ExportTools {
  const lanes = lanesOf(exportConcurrency(config, memoryOf()));
  const parser = createParser();
  const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW });
  const copyPool = createPool({
    url: config.DATABASE_URL as string,
    // One connection for each run, and one more while an earlier read of it is being given up.
    size: (lanes.exports + lanes.backfills) * 2,
    name: 'exports',
    onError: (error) => logger.warn({ err: error }, 'a connection of an export to Postgres broke'),
  });
  return {
    lanes,
    dependencies: {
      ...{ pool, copyPool, temporal, logger, metrics, parser, egress },
      ...(patience ? { patience } : {}),
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
      await Promise.all([parser.close(), egress.close(), copyPool.end()]);
    },
  };
}
