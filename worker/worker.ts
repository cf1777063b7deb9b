import path from 'node:path';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createActivities } from '../activities/index.ts';
import type { Config } from '../config.ts';
import type { Pool } from '../db/pool.ts';
import { connectionSettings } from '../schedules/connection.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Logger } from '../telemetry/logger.ts';

export interface WorkerDependencies {
  config: Config;
  pool: Pool;
  schedules: Schedules;
  logger: Logger;
}

export const WORKFLOWS_PATH = path.join(import.meta.dirname, '../workflows/index.ts');

export interface RunningWorker {
  /** Lets activities in flight finish, up to the grace time, and stops. */
  stop(): Promise<void>;
  /** Ends when the worker does; fails when it broke. */
  finished: Promise<void>;
}

/** Starts polling. Fails when Temporal is not there: the caller decides when to try again. */
export async function startWorker({
  config,
  pool,
  schedules,
  logger,
}: WorkerDependencies): Promise<RunningWorker> {
  const connection = await NativeConnection.connect(connectionSettings(config));
  try {
    await schedules.ensure();
    const worker = await Worker.create({
      connection,
      namespace: config.TEMPORAL_NAMESPACE,
      taskQueue: config.SLUICE_TASK_QUEUE,
      workflowsPath: WORKFLOWS_PATH,
      activities: createActivities({
        pool,
        schedules,
        logger,
        eventRetentionDays: config.SLUICE_EVENT_RETENTION_DAYS,
        exportLogDays: config.SLUICE_EXPORT_LOG_DAYS,
        exportRunDays: config.SLUICE_EXPORT_RUN_DAYS,
      }),
      shutdownGraceTime: `${config.SLUICE_SHUTDOWN_SECONDS} seconds`,
    });
    const finished = worker.run().finally(() => connection.close());
    return {
      finished,
      async stop() {
        if (worker.getState() === 'RUNNING') worker.shutdown();
        await finished;
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}
