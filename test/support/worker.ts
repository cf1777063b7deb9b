import { afterAll, beforeAll } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { Runtime } from '@temporalio/worker';
import { type Config, loadConfig } from '../../config.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { temporalLogger } from '../../worker/temporal-logger.ts';
import { type RunningWorker, startWorker, type WorkerDependencies } from '../../worker/worker.ts';
import { databaseForFile, type TestDatabase } from './database.ts';
import { allocateNamespace } from './temporal.ts';

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
  const logger = createLogger({ name: 'test', level: 'silent' });
  beforeAll(async () => {
    Runtime.install({ logger: temporalLogger(logger), shutdownSignals: [] });
    const { address, namespace } = allocateNamespace();
    world.config = loadConfig({
      DATABASE_URL: world.database.url,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    });
    world.schedules = createSchedules(world.config, logger);
    world.client = new Client({ connection: await Connection.connect({ address }), namespace });
    const { config, schedules, database } = world;
    worker = await startWorker({ config, pool: database.pool, schedules, logger, ...options });
  });
  return world;
}
