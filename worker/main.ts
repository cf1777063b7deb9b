// The worker process. Runs workflows and activities until it is told to stop.
import { setTimeout as pause } from 'node:timers/promises';
import { Runtime } from '@temporalio/worker';
import { registerCarryingMetrics } from '../capture/carrying-metrics.ts';
import { workerPools } from '../config.ts';
import { createEgress } from '../egress/egress.ts';
import { createExportMetrics } from '../exports/runs/metrics.ts';
import { runProcess } from '../lifecycle.ts';
import { PRODUCTS } from '../products.ts';
import { createSchedules } from '../schedules/schedules.ts';
import { createRegistry, serveMetrics } from '../telemetry/metrics.ts';
import { startFunctions } from './function-tools.ts';
import { watchTaskFailures } from './task-failures.ts';
import { temporalLogger } from './temporal-logger.ts';
import { createTemporalMetrics } from './temporal-metrics.ts';
import { type RunningWorker, startWorker } from './worker.ts';

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
const ENSURE_EVERY = 60_000;
/** How long Postgres lets the bookkeeping work and wait, in milliseconds. docs/operations.md lists them. */
const LIMITS = { lock: 10_000, statement: 300_000, transaction: 600_000 };

await runProcess('worker', async ({ config, logger, stopping, database, keys }) => {
  const registry = createRegistry('worker');
  const temporalMetrics = createTemporalMetrics(registry);
  Runtime.install({
    logger: temporalLogger(logger),
    shutdownSignals: [],
    telemetryOptions: { metrics: { buffer: temporalMetrics.buffer } },
  });
  // Only the bookkeeping of runs, heartbeats and maintenance. What may take long has pools of its own: export-tools.ts.
  const pool = database.connect('worker', { size: workerPools(config, 0).bookkeeping, limits: LIMITS });
  const readerAddress = database.addressOf('reader');
  const schedules = createSchedules(config, logger);
  database.registerMetrics(registry);
  const exportMetrics = createExportMetrics(registry);
  registerCarryingMetrics(registry, pool);
  for (const product of PRODUCTS) product.registerMetrics?.(registry, pool);
  const metrics =
    config.SLUICE_METRICS_PORT > 0
      ? await serveMetrics(registry, { host: config.SLUICE_HOST, port: config.SLUICE_METRICS_PORT })
      : undefined;
  await database.prepare();
  await keys.announce(pool);
  // Functions do not wait for Temporal.
  const functions = startFunctions({
    ...{ config, logger, registry, keyring: keys.keyring, address: database.addressOf('server') },
  });

  const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW });
  const url = config.SLUICE_NOTICE_WEBHOOK;
  const failures = watchTaskFailures({
    takeFailures: temporalMetrics.takeFailures,
    taskQueue: config.SLUICE_TASK_QUEUE,
    operators: url === undefined ? undefined : { egress, url },
    logger,
  });

  let worker: RunningWorker | undefined;

  /** Keeps a worker polling. Temporal may be away at the start, and may go away later. */
  async function keepPolling(onFirst: () => void): Promise<void> {
    let wait = FIRST_PAUSE;
    while (!stopping.aborted) {
      try {
        worker = await startWorker({
          ...{ config, pool, readerAddress, schedules, logger, exportMetrics },
          keyring: keys.keyring,
        });
        logger.info({ taskQueue: config.SLUICE_TASK_QUEUE }, 'the worker polls its task queues');
        wait = FIRST_PAUSE;
        onFirst();
        // The signal to stop may have come while the worker was starting.
        if (stopping.aborted) await worker.stop();
        await worker.finished;
      } catch (error) {
        if (stopping.aborted) return;
        logger.warn({ err: error, seconds: wait / 1000 }, 'no worker is running; trying again');
        await pause(wait, undefined, { signal: stopping }).catch(() => undefined);
        wait = Math.min(wait * 2, LONGEST_PAUSE);
      }
    }
  }
  const first = Promise.withResolvers<void>();
  const polling = keepPolling(first.resolve);
  // Maintenance corrects all other schedules, but not its own.
  const ensuring = setInterval(() => {
    schedules.ensure().catch((error) => logger.warn({ err: error }, 'schedules could not be checked'));
  }, ENSURE_EVERY);
  const stop = async () => {
    clearInterval(ensuring);
    const closing = functions.close();
    await worker?.stop().catch((error) => logger.warn({ err: error }, 'the worker did not stop cleanly'));
    await polling;
    await closing;
    metrics?.close();
    temporalMetrics.close();
    await failures.close();
    await egress.close();
    await schedules.close();
    await keys.withdraw();
    await pool.end();
  };
  stopping.addEventListener('abort', () => first.resolve());
  await first.promise;
  return { stop };
});
