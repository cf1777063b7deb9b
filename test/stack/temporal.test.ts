import { mkdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Connection } from '@temporalio/client';
import { recordProcess } from '../../stack/leftovers.ts';
import { isRunning, processStart } from '../../stack/process.ts';
import { findTemporal } from '../../stack/temporal/binary.ts';
import { tidyHistories } from '../../stack/temporal/histories.ts';
import { askTemporal, startTemporal, type Temporal, type TemporalOptions } from '../../stack/temporal.ts';
import { EXPORT_RUN, MAINTENANCE } from '../../workflows/names.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { killNow, messageOf, run } from './programs/run.ts';

const running = new Set<Temporal>();

async function start(options: Partial<TemporalOptions> & { dataDir: string }): Promise<Temporal> {
  const temporal = await startTemporal({ cacheDir, port: 0, uiPort: 0, ...options });
  running.add(temporal);
  return temporal;
}

afterEach(async () => {
  for (const temporal of running) await temporal.stop();
  running.clear();
});

async function connected<T>(address: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

const namespacesOf = (address: string) =>
  connected(address, async ({ workflowService }) => {
    const { namespaces } = await workflowService.listNamespaces({ pageSize: 100 });
    return namespaces
      .map((one) => one.namespaceInfo?.name)
      .filter((name) => name !== 'temporal-system')
      .sort();
  });

const register = (address: string, namespace: string) =>
  connected(address, ({ workflowService }) =>
    workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    }),
  );

describe('the embedded Temporal', () => {
  test('serves requests and its UI, and keeps what it knows over a stop', async () => {
    const dataDir = makeDataDir();
    const first = await start({ dataDir, namespaces: ['extra'] });
    expect(await namespacesOf(first.address)).toEqual(['default', 'extra']);
    const ui = await fetch(first.uiUrl);
    expect(ui.status).toBe(200);
    expect(await ui.text()).toContain('<html');
    await register(first.address, 'added');
    await first.stop();
    expect(isRunning(first.pid)).toBe(false);
    const second = await start({ dataDir });
    expect(await namespacesOf(second.address)).toEqual(['added', 'default', 'extra']);
  });

  test('recovers after kill -9, with everything it had answered', async () => {
    const dataDir = makeDataDir();
    const first = await start({ dataDir });
    await register(first.address, 'just-before');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    const second = await start({ dataDir });
    expect(await namespacesOf(second.address)).toEqual(['default', 'just-before']);
  });

  test('keeps what runs did as long as it is told, and what comes every minute for a day', async () => {
    const dataDir = makeDataDir();
    const { address } = await start({ dataDir, keepDays: 400 });
    const program = await findTemporal({ cacheDir, report: () => undefined });
    const ask = (...args: string[]) => askTemporal(program, address, args);
    const retention = () =>
      connected(address, async ({ workflowService }) => {
        const { config } = await workflowService.describeNamespace({ namespace: 'default' });
        return Number(config?.workflowExecutionRetentionTtl?.seconds) / 86_400;
      });
    await eventually(async () => (await retention()) === 400);
    for (const [type, id] of [
      [MAINTENANCE, 'upkeep'],
      [EXPORT_RUN, 'run'],
    ] as const) {
      await ask('workflow', 'start', '--type', type, '--task-queue', 'nobody', '--workflow-id', id);
      await ask('workflow', 'terminate', '--workflow-id', id);
    }
    const ended = () =>
      connected(address, async ({ workflowService }) => {
        const query = "ExecutionStatus = 'Terminated'";
        const found = await workflowService.listWorkflowExecutions({ namespace: 'default', query });
        return found.executions?.map((one) => one.execution?.workflowId).sort() ?? [];
      });
    await eventually(async () => (await ended()).length === 2);
    const said: string[] = [];
    const options = { ask, namespaces: ['default'], report: (line: string) => void said.push(line) };
    // Today they are news.
    await tidyHistories(options, Date.now(), true);
    expect(await ended()).toEqual(['run', 'upkeep']);
    const inTwoDays = Date.now() + 2 * 86_400_000;
    await tidyHistories(options, inTwoDays, false);
    await eventually(async () => (await ended()).join() === 'run');
    await tidyHistories(options, inTwoDays, true);
    await eventually(async () => (await ended()).length === 0);
    expect(said.at(-1)).toMatch(/^The disk is almost full/);
  });

  test('stops the server of a killed supervisor and takes its place', async () => {
    const dataDir = makeDataDir();
    const supervisor = run('start-temporal.ts', dataDir, cacheDir);
    const orphan = await messageOf<{ pid: number; address: string }>(supervisor);
    await register(orphan.address, 'of-the-orphan');
    await killNow(supervisor);
    expect(isRunning(orphan.pid)).toBe(true);
    const temporal = await start({ dataDir });
    expect(isRunning(orphan.pid)).toBe(false);
    expect(await namespacesOf(temporal.address)).toEqual(['default', 'of-the-orphan']);
  });

  test('leaves a program alone that was given the number of an earlier server', async () => {
    const dataDir = makeDataDir();
    recordProcess(dataDir, 'Temporal', process.pid);
    const record = path.join(dataDir, 'processes', 'Temporal.json');
    writeFileSync(record, JSON.stringify({ pid: process.pid, started: `${processStart(process.pid)}0` }));
    await start({ dataDir });
    expect(isRunning(process.pid)).toBe(true);
  });

  test.each(['port', 'uiPort'] as const)('names the %s that another program has', async (name) => {
    const other = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as net.AddressInfo;
    const setting = name === 'port' ? 'SLUICE_TEMPORAL_PORT' : 'SLUICE_TEMPORAL_UI_PORT';
    await expect(start({ dataDir: makeDataDir(), [name]: port })).rejects.toThrow(
      `Port ${port} (${setting}) is in use by another program; free it or set ${setting} to another one.`,
    );
    other.close();
  });

  test('says what its last words were when it cannot start', async () => {
    const dataDir = makeDataDir();
    mkdirSync(path.join(dataDir, 'temporal', 'temporal.db'), { recursive: true });
    await expect(start({ dataDir })).rejects.toThrow(
      /^Temporal ended during its start\. The last lines of its log:\n .*\w/s,
    );
  });
});
