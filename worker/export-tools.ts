import os from 'node:os';
import type { ExportDependencies } from '../activities/dependencies.ts';
import { createExportMetrics, type ExportMetrics } from '../activities/exports/metrics.ts';
import type { Config } from '../config.ts';
import { createPool } from '../db/pool.ts';
import { createEgress } from '../egress/egress.ts';
import { createParser } from '../hog/parser/index.ts';
import { parseKeyring } from '../secrets/envelope.ts';
import type { Logger } from '../telemetry/logger.ts';

/** Runs at once: those of schedules, and those of backfills, with verifications. */
export interface Lanes {
  exports: number;
  backfills: number;
}

export interface ExportTools {
  dependencies: ExportDependencies;
  /** How many runs are done at once. */
  lanes: Lanes;
  close(): Promise<void>;
}

const EACH = 256 * 1024 * 1024;
const [LEAST, MOST] = [2, 8];

/** A run takes about half of what is counted for it, at its most. */
export function exportConcurrency(config: Pick<Config, 'SLUICE_EXPORT_CONCURRENCY'>, memory: number): number {
  return config.SLUICE_EXPORT_CONCURRENCY ?? Math.min(MOST, Math.max(LEAST, Math.floor(memory / 2 / EACH)));
}

/** Backfills have a third, and each lane one at least. */
export function lanesOf(concurrency: number): Lanes {
  const backfills = Math.ceil(concurrency / 3);
  return { exports: Math.max(1, concurrency - backfills), backfills };
}

/** Of the machine, or of the container where that is less. */
function memoryOf(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}

/** What a worker needs to carry rows, made and closed with it. */
export function createExportTools(
  config: Config,
  logger: Logger,
  metrics: ExportMetrics = createExportMetrics(undefined),
): ExportTools {
  const lanes = lanesOf(exportConcurrency(config, memoryOf()));
  const parser = createParser();
  const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW });
  const copyPool = createPool({
    url: config.DATABASE_URL as string,
    // One read for each run, and one more while an earlier read of it is being given up.
    size: (lanes.exports + lanes.backfills) * 2,
    name: 'exports',
    onError: (error) => logger.warn({ err: error }, 'a connection of an export to Postgres broke'),
  });
  return {
    lanes,
    dependencies: {
      copyPool,
      parser,
      egress,
      keyring: config.SLUICE_ENCRYPTION_KEYS ? parseKeyring(config.SLUICE_ENCRYPTION_KEYS) : undefined,
      exportRoot: config.SLUICE_EXPORT_ROOT,
      metrics,
      pauseAfter: config.SLUICE_EXPORT_PAUSE_AFTER,
      noticeWebhook: config.SLUICE_NOTICE_WEBHOOK,
      publicUrl: config.SLUICE_PUBLIC_URL,
    },
    async close() {
      await Promise.all([parser.close(), egress.close(), copyPool.end()]);
    },
  };
}
