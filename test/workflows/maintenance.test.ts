import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { Runtime } from '@temporalio/worker';
import { type Config, loadConfig } from '../../config.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { temporalLogger } from '../../worker/temporal-logger.ts';
import { type RunningWorker, startWorker } from '../../worker/worker.ts';
import { searchAttributes } from '../../workflows/names.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { allocateNamespace } from '../support/temporal.ts';

// Hooks run in the order of their definition: this one before the database goes.
afterAll(async () => {
  await worker?.stop();
  await schedules?.close();
  await client?.connection.close();
});
const database = databaseForFile();
const logger = createLogger({ name: 'test', level: 'silent' });
let config: Config;
let schedules: Schedules;
let worker: RunningWorker;
let client: Client;

beforeAll(async () => {
  Runtime.install({ logger: temporalLogger(logger), shutdownSignals: [] });
  const { address, namespace } = allocateNamespace();
  config = loadConfig({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
  });
  schedules = createSchedules(config, logger);
  client = new Client({ connection: await Connection.connect({ address }), namespace });
  worker = await startWorker({ config, pool: database.pool, schedules, logger });
});

describe('the maintenance schedule', () => {
  test('runs, can be found by its kind, and reports what it did', async () => {
    await database.pool.query(
      `insert into wizard_sessions (hash, expires_at) values ('old', now() - interval '1 second'), ('new', now() + interval '1 hour')`,
    );
    schedules.nudgeMaintenance();
    const report = await eventually(async () => {
      const query = `${searchAttributes.kind.name} = 'maintenance' and ExecutionStatus = 'Completed'`;
      for await (const run of client.workflow.list({ query })) {
        const result = await client.workflow.getHandle(run.workflowId, run.runId).result();
        if (result.expiredSessions > 0) return result;
      }
      return undefined;
    });
    expect(report).toEqual({
      changedPartitions: expect.any(Number),
      expiredSessions: 1,
      stoppedProjects: 0,
      deletedRows: 0,
      failed: [],
    });
    const { rows } = await database.pool.query('select hash from wizard_sessions');
    expect(rows).toEqual([{ hash: 'new' }]);
  });
});
