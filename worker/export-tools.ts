import { randomUUID } from 'node:crypto';
import { cohortStates } from '../cohorts/reads/known-cohorts.ts';
import { type Config, MOST_RUNS, workerPools } from '../config.ts';
import { type Address, createPool, type PoolLimits } from '../db/pool.ts';
import { createEgress } from '../egress/egress.ts';
import type { Lane } from '../exports/rows/places.ts';
import type { RunDependencies } from '../exports/runs/dependencies.ts';
import { createExportMetrics, type ExportMetrics } from '../exports/runs/metrics.ts';
import { createAsking } from '../exports/runs/worker-place.ts';
import { withWholeQueries } from '../exports/whole-queries.ts';
import { createCompiler } from '../models/index.ts';
import { createQueryCompiler } from '../queries/compiler.ts';
import { compilesWhole } from '../queries/whole.ts';
import type { Keyring } from '../secrets/envelope.ts';
import { openKeys } from '../secrets/key-source.ts';
import { machineMemory } from '../telemetry/machine-memory.ts';

/**
 * How many runs are in progress at once: those that schedules start, and those of backfills together with
 * verifications.
 */
export type Lanes = Readonly<Record<Lane, number>>;

/** What batch exports take from the rest of the worker. */
export interface SharedTools
  extends Pick<RunDependencies, 'pool' | 'temporal' | 'logger' | 'patience' | 'limits' | 'rhythm'> {
  /** By default the keys in the settings, as they are now. */
  keyring?: Keyring | undefined;
  /** The metrics of exports. Without it nobody sees them. */
  metrics?: ExportMetrics | undefined;
  /** The address at which rows are read for exports, as the reader. */
  readerAddress: Address;
}

/** What a worker needs for batch exports. */
export interface ExportTools {
  dependencies: RunDependencies;
  lanes: Lanes;
  close(): Promise<void>;
}

/** How long Postgres lets connections work and wait, in milliseconds. docs/operations.md lists them. */
const LOCK = 10_000;
const SIZING: PoolLimits = { lock: LOCK, statement: 30_000, transaction: 120_000 };

const EACH = 256 * 1024 * 1024;
const LEAST = 2;

/**
 * Returns how many runs may be in progress at once. By default, half of the memory is for runs, 256 MiB for each of
 * them.
 */
export function exportConcurrency(config: Pick<Config, 'SLUICE_EXPORT_CONCURRENCY'>, memory: number): number {
  return (
    config.SLUICE_EXPORT_CONCURRENCY ?? Math.min(MOST_RUNS, Math.max(LEAST, Math.floor(memory / 2 / EACH)))
  );
}

/** Divides the runs. Backfills get a third of them, and each lane gets at least one. */
export function lanesOf(concurrency: number): Lanes {
  const backfills = Math.ceil(concurrency / 3);
  return { exports: Math.max(1, concurrency - backfills), backfills };
}

/** How long a worker may read a query that it exports, in milliseconds. */
const LONGEST_READING = 60_000;

/** Puts together what batch exports need. */
export function createExportTools(
  config: Config,
  {
    pool,
    readerAddress,
    temporal,
    logger,
    patience,
    limits = {
      answer: config.SLUICE_DESTINATION_SECONDS * 1_000,
      idle: config.SLUICE_DESTINATION_SECONDS * 2_000,
    },
    rhythm,
    keyring = openKeys(config).keyring,
    metrics = createExportMetrics(undefined),
  }: SharedTools,
): ExportTools {
  const lanes = lanesOf(exportConcurrency(config, machineMemory()));
  // A query that is exported was read once before, so one that takes long shows that the machine is busy.
  const queryCompiler = createQueryCompiler({ threads: 1, timeoutMs: LONGEST_READING });
  const compiler = withWholeQueries(createCompiler(), {
    compile: compilesWhole({ pool, queryCompiler }),
    seconds: config.SLUICE_EXPORT_QUERY_SECONDS,
  });
  const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW });
  const sizes = workerPools(config, lanes.exports + lanes.backfills);
  const connect = (name: string, size: number, limits: PoolLimits) =>
    createPool({
      url: readerAddress,
      ...{ name, size, limits },
      onError: (error) => logger.warn({ err: error }, `a connection to Postgres (${name}) broke`),
    });
  // A COPY takes as long as its reader needs, and has a limit of its own.
  const copyPool = connect('exports', sizes.exports, { lock: LOCK });
  const sizingPool = connect('sizing', sizes.sizing, SIZING);
  return {
    lanes,
    dependencies: {
      ...{
        pool,
        copyPool,
        sizingPool,
        temporal,
        logger,
        metrics,
        compiler,
        egress,
        patience,
        limits,
        rhythm,
      },
      worker: randomUUID(),
      asking: createAsking(pool),
      cohortStates,
      keyring,
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
      await Promise.all([
        compiler.close(),
        queryCompiler.close(),
        egress.close(),
        copyPool.end(),
        sizingPool.end(),
      ]);
    },
  };
}
