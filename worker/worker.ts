import { NativeConnection, Worker } from '@temporalio/worker';
import { stepsOf, versionsOf } from '../actions/reads/steps-of.ts';
import type { ActivityDependencies } from '../activities/dependencies.ts';
import { createActivities, createHeavyActivities } from '../activities/index.ts';
import { knownCohorts } from '../cohorts/reads/known-cohorts.ts';
import { cohortsToInline } from '../cohorts/reads/reached-cohorts.ts';
import type { Config } from '../config.ts';
import type { Address, Pool } from '../db/pool.ts';
import type { Limits } from '../destinations/limits.ts';
import type { Patience } from '../destinations/retry.ts';
import type { Lane } from '../exports/rows/places.ts';
import { closeExportRoot } from '../exports/runs/export-root.ts';
import type { ExportMetrics } from '../exports/runs/metrics.ts';
import type { Rhythm } from '../exports/runs/rhythm.ts';
import { type Announcement, announcePlaces } from '../exports/runs/worker-place.ts';
import { changeLinkedFlag } from '../flags/runs/linked-flags.ts';
import { createFunctionCompiler } from '../functions/compiler.ts';
import { ReplayMatcher } from '../functions/replay/matcher.ts';
import { PRODUCTS } from '../products.ts';
import { isPassing } from '../schedules/answers.ts';
import { connectionSettings } from '../schedules/connection.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Keyring } from '../secrets/envelope.ts';
import { openKeys } from '../secrets/key-source.ts';
import type { Logger } from '../telemetry/logger.ts';
import { dropHooks, type Product } from '../tenancy/product.ts';
import { backfillsQueue, exportsQueue } from '../workflows/names.ts';
import { createExportTools } from './export-tools.ts';
import { workflowBundle } from './workflow-bundle.ts';

export interface WorkerDependencies {
  config: Config;
  pool: Pool;
  /** The address at which rows are read for exports, as the reader. */
  readerAddress: Address;
  schedules: Schedules;
  /** By default the keys in the settings, as they are now. */
  keyring?: Keyring | undefined;
  logger: Logger;
  /** By default all products of Sluice. */
  products?: readonly Product<ActivityDependencies>[];
  /** The metrics of exports. Without it nobody sees them. */
  exportMetrics?: ExportMetrics;
  /** How long a request to a destination is repeated before the attempt fails. Tests make it shorter. */
  patience?: Patience;
  /** How long destinations are waited for. Tests make it shorter. */
  limits?: Partial<Limits>;
  /** How often attempts report and how long they pause. Tests make both shorter. */
  rhythm?: Rhythm;
  /** Workflows of another version, and how many stay in memory. Tests set both. */
  workflows?: { bundle?: Awaited<ReturnType<typeof workflowBundle>>; inMemory?: number };
}

export interface RunningWorker {
  /** Lets activities in progress finish, up to the grace time, and stops. */
  stop(): Promise<void>;
  /** Resolves when the worker has stopped, and rejects when it broke. */
  finished: Promise<void>;
}

/** The longest time between two heartbeats. An activity hears of a cancellation with the next heartbeat. */
const HEARTBEATS = '3 seconds';

/**
 * How many polls for heavy activities are open. A worker that hangs still receives one activity for each open poll, and
 * each is lost until its heartbeat times out. Two polls keep a worker busy, because such activities take seconds at
 * least.
 */
const POLLS = 2;
/**
 * How many heavy activities a worker takes beyond its places. These only ask for a place, and end within seconds if there
 * is none. So Temporal's slots never decide who works.
 */
const ASKING = 200;
/**
 * How long a step of a workflow waits for the worker that has the workflow in memory, before any worker may take it.
 */
const STICKY = '5 seconds';
/** So many versions of a flag or a cohort are kept, however old they are. */
const VERSIONS_OF_EACH = 100;
/** How much of the activity log of a project, or of an organization beside its projects, is kept. */
const LOG_BOUNDS = { entries: 500_000, bytes: 128 * 1024 * 1024 };

/**
 * Creates what a worker needs in Temporal. What Temporal refuses for good does not stop the worker: it works on what there is,
 * and tries again every minute. What may pass by itself does, so that the caller tries again soon.
 */
async function ensureWhatCanBe(schedules: Schedules, logger: Logger): Promise<void> {
  try {
    await schedules.ensure();
  } catch (err) {
    if (isPassing(err)) throw err;
    logger.warn({ err }, 'schedules could not be checked; this worker works without and tries again');
  }
}

/** Starts polling. Fails if Temporal does not answer. The caller decides when to try again. */
export async function startWorker({
  config,
  pool,
  readerAddress,
  schedules,
  keyring = openKeys(config).keyring,
  logger,
  products = PRODUCTS,
  exportMetrics,
  patience,
  limits,
  rhythm,
  workflows = {},
}: WorkerDependencies): Promise<RunningWorker> {
  const connection = await NativeConnection.connect(connectionSettings(config));
  const temporal = schedules.exports;
  const shared = {
    pool,
    readerAddress,
    keyring,
    temporal,
    logger,
    metrics: exportMetrics,
    patience,
    limits,
    rhythm,
  };
  const tools = createExportTools(config, shared);
  const functionCompiler = createFunctionCompiler({ threads: 1 });
  const matcher = new ReplayMatcher(pool);
  let announcement: Announcement | undefined;
  const close = async () => {
    await announcement?.close();
    await connection.close();
    await functionCompiler.close();
    await matcher.close();
    await tools.close();
  };
  const { exportRoot } = tools.dependencies;
  void closeExportRoot(exportRoot).catch((err) =>
    logger.warn({ err }, `${exportRoot} may be open to others`),
  );
  try {
    await ensureWhatCanBe(schedules, logger);
    const dependencies: ActivityDependencies = {
      pool,
      keyring: tools.dependencies.keyring,
      products,
      schedules,
      eventRetentionDays: config.SLUICE_EVENT_RETENTION_DAYS,
      eventDrops: dropHooks(pool, products, logger),
      versions: {
        newest: VERSIONS_OF_EACH,
        days: config.SLUICE_VERSION_DAYS,
        bytes: config.SLUICE_VERSION_BYTES_PER_PROJECT,
      },
      activityLog: { ...LOG_BOUNDS, days: config.SLUICE_ACTIVITY_LOG_DAYS },
      exports: tools.dependencies,
      functions: {
        pool,
        functionDays: config.SLUICE_FUNCTION_DAYS,
        compiler: functionCompiler,
        actions: { steps: stepsOf, versions: versionsOf },
        cohorts: cohortsToInline,
        keyring: tools.dependencies.keyring,
        logger,
        matcher,
        temporal: schedules.functions,
        site: config.SLUICE_PUBLIC_URL,
        operators:
          config.SLUICE_NOTICE_WEBHOOK === undefined
            ? undefined
            : { egress: tools.dependencies.egress, url: config.SLUICE_NOTICE_WEBHOOK },
        behindSeconds: config.SLUICE_FUNCTION_BEHIND_SECONDS,
      },
      flags: {
        pool,
        keyring: tools.dependencies.keyring,
        limits: { flags: config.SLUICE_FLAGS_PER_PROJECT, bytes: config.SLUICE_FLAG_BYTES_PER_PROJECT },
        knownCohorts,
        temporal: schedules.flags,
        logger,
      },
      surveys: {
        pool,
        flags: {
          change: (client, actor, key, change) =>
            changeLinkedFlag(client, dependencies.flags, actor, key, change),
        },
      },
    };
    const common = {
      connection,
      namespace: config.TEMPORAL_NAMESPACE,
    } as const;
    const light = await Worker.create({
      ...common,
      taskQueue: config.SLUICE_TASK_QUEUE,
      workflowBundle: workflows.bundle ?? (await workflowBundle()),
      ...(workflows.inMemory === undefined ? {} : { maxCachedWorkflows: workflows.inMemory }),
      activities: createActivities(dependencies),
      shutdownGraceTime: `${config.SLUICE_SHUTDOWN_SECONDS} seconds`,
      stickyQueueScheduleToStartTimeout: STICKY,
    });
    const heavy = (taskQueue: string, lane: Lane) =>
      Worker.create({
        ...common,
        taskQueue,
        activities: createHeavyActivities(dependencies, lane),
        maxConcurrentActivityTaskExecutions: tools.lanes[lane] + ASKING,
        maxConcurrentActivityTaskPolls: POLLS,
        // Most activities finish in this time. The others need the rest of it to remove what they have uploaded.
        shutdownGraceTime: '1 second',
        maxHeartbeatThrottleInterval: rhythm?.report ?? HEARTBEATS,
      });
    const workers = [
      light,
      await heavy(exportsQueue(config.SLUICE_TASK_QUEUE), 'exports'),
      await heavy(backfillsQueue(config.SLUICE_TASK_QUEUE), 'backfills'),
    ];
    announcement = await announcePlaces(tools.dependencies, tools.lanes);
    const shutDown = () => {
      // From now on its free places are nobody's.
      void announcement?.close();
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    };
    // If one worker stops, all do: the others would start runs that nobody can finish.
    const runs = workers.map((worker) => worker.run().finally(shutDown));
    const finished = Promise.all(runs).then(() => undefined);
    const closed = Promise.allSettled(runs).then(close);
    const ended = finished.finally(() => closed);
    return {
      finished: ended,
      async stop() {
        shutDown();
        await ended;
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
