import { afterAll, beforeAll } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { IllegalStateError } from '@temporalio/common';
import { Runtime } from '@temporalio/worker';
import { type Config, loadConfig } from '../../config.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { temporalLogger } from '../../worker/temporal-logger.ts';
import { type RunningWorker, startWorker, type WorkerDependencies } from '../../worker/worker.ts';
import { apiForFile, type TestApi } from './api.ts';
import { asReader, databaseForFile, type TestDatabase } from './database.ts';
import { allocateNamespace, connectTo } from './temporal.ts';

const logger = createLogger({ name: 'test', level: 'silent' });

/** Temporal's library has one runtime in a process, which runs several test files. */
function installRuntime(): void {
  try {
    Runtime.install({ logger: temporalLogger(logger), shutdownSignals: [] });
  } catch (error) {
    if (!(error instanceof IllegalStateError)) throw error;
  }
}

/** A worker in this process, with the workflows that were bundled for the whole run. */
export function startTestWorker(
  dependencies: Omit<WorkerDependencies, 'logger' | 'readerAddress'> &
    Partial<Pick<WorkerDependencies, 'logger'>>,
): Promise<RunningWorker> {
  installRuntime();
  const readerAddress = asReader(dependencies.config.DATABASE_URL as string);
  return startWorker({ logger, readerAddress, ...dependencies });
}

export interface WorkerWorld {
  database: TestDatabase;
  config: Config;
  schedules: Schedules;
  client: Client;
}

/** A database, a namespace of Temporal and a worker for the tests of one file. */
export function workerForFile(options: Pick<WorkerDependencies, 'products'> = {}): WorkerWorld {
  let worker: RunningWorker | undefined;
  // Hooks run in the order of their definition: this one before the database goes.
  afterAll(async () => {
    await worker?.stop();
    await world.schedules?.close();
    await world.client?.connection.close();
  });
  const world = { database: databaseForFile() } as WorkerWorld;
  beforeAll(async () => {
    const { address, namespace } = allocateNamespace();
    world.config = loadConfig({
      DATABASE_URL: world.database.url,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    });
    world.schedules = createSchedules(world.config, logger);
    world.client = await connectTo({ address, namespace });
    const { config, schedules, database } = world;
    worker = await startTestWorker({ config, pool: database.pool, schedules, ...options });
  });
  return world;
}

export interface ApiAndWorker {
  api: TestApi;
  /** Stops the worker that runs, if there is one. */
  stopWorker(): Promise<void>;
  startWorker(): Promise<void>;
}

/** The API and a worker of one database, for the tests of one file. */
export function apiAndWorkerForFile(env?: Record<string, string>): ApiAndWorker {
  let worker: RunningWorker | undefined;
  const stopWorker = async () => {
    await worker?.stop();
    worker = undefined;
  };
  // Hooks run in the order of their definition: this one before the database goes.
  afterAll(stopWorker);
  const api = apiForFile(env);
  const startOne = async () => {
    const { config, pool, schedules } = api;
    worker = await startTestWorker({ config, pool, schedules });
  };
  beforeAll(startOne);
  return { api, stopWorker, startWorker: startOne };
}
