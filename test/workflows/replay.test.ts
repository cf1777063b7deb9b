import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { type ReplayWorkerOptions, Runtime, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { loadConfig } from '../../config.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { historyText, readHistory, saveHistory } from '../../scripts/save-history.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { temporalLogger } from '../../worker/temporal-logger.ts';
import { type RunningWorker, startWorker } from '../../worker/worker.ts';
import { workflowBundle } from '../../worker/workflow-bundle.ts';
import * as workflows from '../../workflows/index.ts';
import { MAINTENANCE } from '../../workflows/names.ts';
import { asReader, databaseForFile } from '../support/database.ts';
import { allocateNamespace } from '../support/temporal.ts';

const HISTORIES = path.join(import.meta.dirname, 'histories');
const files = readdirSync(HISTORIES).filter((file) => file.endsWith('.json'));
const logger = createLogger({ name: 'test', level: 'silent' });
// Hooks run in the order of their definition: this one before the database goes.
afterAll(async () => {
  await worker?.stop();
  await connection?.close();
  await schedules?.close();
  rmSync(folder, { recursive: true });
});
const database = databaseForFile();
let schedules: Schedules | undefined;
let connection: Connection | undefined;
let worker: RunningWorker | undefined;
let folder: string;

beforeAll(() => {
  Runtime.install({ logger: temporalLogger(logger), shutdownSignals: [] });
  folder = mkdtempSync(path.join(tmpdir(), 'sluice-histories-'));
});

const saved = (file: string) => readHistory(path.join(HISTORIES, file));
/** Ids of child workflows are made of it. */
const idIn = (history: ReturnType<typeof saved>) =>
  history.events[0]?.workflowExecutionStartedEventAttributes?.workflowId ?? undefined;

describe('saved histories', () => {
  test('there is one of every workflow, and none of an unknown one', () => {
    const names = files.map(
      (file) => saved(file).events[0]?.workflowExecutionStartedEventAttributes?.workflowType?.name,
    );
    expect([...new Set(names)].sort()).toEqual(Object.keys(workflows).sort());
  });

  test.each(files)('%s is stored as the script stores it, one event a line', (file) => {
    expect(readFileSync(path.join(HISTORIES, file), 'utf8')).toBe(historyText(saved(file)));
  });

  let bundled: ReplayWorkerOptions;
  beforeAll(async () => {
    bundled = { workflowBundle: await workflowBundle() };
  });

  test('all replay with the workflows as they are now', async () => {
    const histories = files.map((file) => ({
      workflowId: idIn(saved(file)) ?? 'fake',
      history: saved(file),
    }));
    const replayed: string[] = [];
    const failed: [file: string, error: Error][] = [];
    // One worker for all of them. It gives the results in the order of the histories.
    for await (const { error } of Worker.runReplayHistories(bundled, histories)) {
      const file = files[replayed.length] as string;
      replayed.push(file);
      if (error) failed.push([file, error]);
    }
    expect(failed).toEqual([]);
    expect(replayed).toEqual(files);
  });

  test('one that another version wrote does not', async () => {
    const history = saved('maintenance-in-order.json');
    const scheduled = history.events.find((event) => event.activityTaskScheduledEventAttributes);
    const activity = scheduled?.activityTaskScheduledEventAttributes?.activityType;
    expect(activity?.name).toBe('keepEventPartitions');
    if (activity) activity.name = 'somethingElse';
    await expect(Worker.runReplayHistory(bundled, history)).rejects.toThrow(DeterminismViolationError);
  });

  test('a run of now is saved as the script does it, and replays', async () => {
    const { address, namespace } = allocateNamespace();
    const config = loadConfig({
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    });
    schedules = createSchedules(config, logger);
    connection = await Connection.connect({ address });
    const client = new Client({ connection, namespace });
    worker = await startWorker({
      config,
      pool: database.pool,
      readerAddress: asReader(database.url),
      schedules,
      logger,
    });
    const run = { workflowId: 'maintenance-of-now' };
    await client.workflow.execute(MAINTENANCE, { ...run, taskQueue: config.SLUICE_TASK_QUEUE });
    const file = path.join(folder, 'deep', 'maintenance.json');
    await saveHistory(client, run, file);
    await Worker.runReplayHistory(bundled, readHistory(file));
    // What stands in a history: counts, ids and times. Never an address of the database, never a key.
    expect(readFileSync(file, 'utf8')).not.toMatch(/postgres:|phx_|phs_/);
  });
});

describe('the bundle of the workflows', () => {
  let kept: string;
  let first: { code: string };
  beforeAll(async () => {
    kept = path.join(folder, 'kept');
    mkdirSync(kept);
    writeFileSync(path.join(kept, 'of-another-version.js'), '');
    first = (await workflowBundle(kept)) as { code: string };
  });

  test('is made once, and stays for the next start', async () => {
    const [name, ...others] = readdirSync(kept);
    expect(others).toEqual([]);
    const file = path.join(kept, name as string);
    expect(first).toEqual({ code: readFileSync(file, 'utf8') });
    appendFileSync(file, '// kept');
    expect(await workflowBundle(kept)).toEqual({ code: readFileSync(file, 'utf8') });
  });

  test('is made anew where nothing can be kept', async () => {
    const file = path.join(folder, 'a file');
    writeFileSync(file, '');
    const { code } = (await workflowBundle(path.join(file, 'kept'))) as { code: string };
    for (const name of Object.keys(workflows)) expect(code).toContain(name);
  });

  test('is made of workflows alone, and is small', () => {
    const { code } = first;
    for (const name of Object.keys(workflows)) expect(code).toContain(name);
    const modules = [...code.matchAll(/"\.\/([^"]+\.ts)"/g)].map((match) => match[1] as string);
    expect(
      modules.filter((one) => !one.startsWith('node_modules/') && !one.startsWith('workflows/')),
    ).toEqual([]);
    expect(code).not.toMatch(/require\("(node:|pg|zod|fastify)/);
    expect(code.length).toBeLessThan(5_000_000);
  });
});
