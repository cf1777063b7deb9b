import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { createPool, type Pool } from '../../db/pool.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { type Program, programsForFile } from '../support/programs.ts';
import { LONG, rounds } from '../support/rounds.ts';
import { compare, type Load, NOTHING_WRONG, startLoad } from './capture-load.ts';

const MEGABYTE = 1024 * 1024;
if (LONG) jest.setTimeout(600_000);
const programs = programsForFile();
let dataDir: string;
let postgres: Postgres;
let pool: Pool;
let url: string;
let metricsUrl: string;
let start: () => Promise<Program>;
let api: Program;

const startAgain = (port: number): Promise<Postgres> => {
  return startPostgres({ dataDir, cacheDir, port });
};

beforeAll(async () => {
  dataDir = makeDataDir();
  postgres = await startAgain(0);
  pool = createPool({ url: postgres.url, size: 2, name: 'test' });
  const [port, metricsPort] = [await reservePort(), await reservePort()];
  [url, metricsUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${metricsPort}/metrics`];
  start = async () => {
    const program = programs.start('api/main.ts', {
      PORT: String(port),
      SLUICE_METRICS_PORT: String(metricsPort),
      SLUICE_HOST: '127.0.0.1',
      DATABASE_URL: postgres.url,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      SLUICE_LOG_LEVEL: 'fatal',
    });
    await eventually(async () => (await fetch(`${url}/_readyz`).catch(() => undefined))?.status === 200);
    return program;
  };
  api = await start();
});
afterAll(async () => {
  await pool?.end();
  await postgres?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

/** A number of the API's metrics. */
async function metric(name: string): Promise<number> {
  const text = await (await fetch(metricsUrl)).text();
  const line = text.split('\n').find((one) => one.startsWith(name));
  return Number(line?.split(' ').at(-1));
}

/** Every process of the server: who is paused as a whole answers nothing, not even a new connection. */
async function serverProcesses(): Promise<number[]> {
  const { rows } = await pool.query('select pid from pg_stat_activity where pid <> pg_backend_pid()');
  return [postgres.pid, ...rows.map((row) => row.pid)];
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

let running: Load[] = [];

function loadOf(tenant: Tenant, more: { clients: number; events?: number; padding?: number }): Load {
  const load = startLoad({ url, token: tenant.projectToken, ...more });
  running.push(load);
  return load;
}

// A test that failed in the middle of it.
afterEach(async () => {
  await Promise.all(running.map((load) => load.abandon()));
  running = [];
});

test('the API killed under load: what it acknowledged is there, and nothing twice', async () => {
  const tenant = await createTenant(pool, 'API killed');
  const load = loadOf(tenant, { clients: 24 });
  for (let round = 0; round < rounds(3, 10); round += 1) {
    await load.progress(1_000);
    api.kill('SIGKILL');
    await api.exited;
    await load.until('broken', 1);
    expect(await compare(pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
    api = await start();
  }
  await load.progress(1_000);
  await load.finish();
  expect(load.wrong).toEqual([]);
  // Every client has sent its events until they were acknowledged, those that the kills interrupted too.
  expect(load.acknowledged.size).toBe(load.sent.size);
  expect(await compare(pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
});

test('Postgres killed under load: refusals that say when to come back, and nothing lost or twice', async () => {
  const tenant = await createTenant(pool, 'Postgres killed');
  const load = loadOf(tenant, { clients: 24 });
  for (let round = 0; round < rounds(2, 5); round += 1) {
    await load.progress(1_000);
    signal(await serverProcesses(), 'SIGKILL');
    await postgres.exited;
    const acknowledged = load.acknowledged.size;
    // It stays away for longer than requests are patient.
    if (round === 0) await load.until('503', 24);
    // Answers that were on their way.
    expect(load.acknowledged.size).toBeLessThanOrEqual(acknowledged + 24 * 5);
    postgres = await startAgain(postgres.port);
  }
  await load.progress(1_000);
  await load.finish();
  expect(load.wrong).toEqual([]);
  expect(Object.keys(load.answers).sort()).toEqual(['200', '503']);
  expect(await compare(pool, tenant.projectId, load)).toEqual(NOTHING_WRONG);
});

test('Postgres paused under load: everybody is told to come back, memory is bounded, all goes on by itself', async () => {
  const [small, large] = [await createTenant(pool, 'Small'), await createTenant(pool, 'Large')];
  const loads = [loadOf(small, { clients: 50 })];
  // Together far more than may wait.
  if (LONG) loads.push(loadOf(large, { clients: 150, events: 50, padding: 5_000 }));
  await Promise.all(loads.map((load) => load.progress(2_000)));
  const paused = await serverProcesses();
  signal(paused, 'SIGSTOP');
  const began = Date.now();
  const resident: number[] = [];
  try {
    await Promise.all(loads.map((load) => load.untilAllRefused(1)));
    // Answers that were on their way when it stopped are there by now.
    const acknowledged = loads.map((load) => load.acknowledged.size);
    do {
      // Those who come again are told so too, when what was remembered of the project is out of date.
      await Promise.all(loads.map((load) => load.untilAllRefused(1)));
      resident.push(await metric('process_resident_memory_bytes'));
      expect(await metric('sluice_ingest_queue_bytes')).toBeLessThanOrEqual(32 * MEGABYTE);
      expect(await metric('sluice_capture_held_bytes')).toBeLessThanOrEqual(160 * MEGABYTE);
    } while (LONG && Date.now() - began < 20_000);
    expect(loads.map((load) => load.acknowledged.size)).toEqual(acknowledged);
    // Who balances load is told as well, although nothing answers the question.
    expect((await fetch(`${url}/_readyz`)).status).toBe(503);
  } finally {
    signal(paused, 'SIGCONT');
  }
  expect(Math.max(...resident)).toBeLessThan(800 * MEGABYTE);
  await Promise.all(loads.map((load) => load.progress(2_000)));
  await Promise.all(loads.map((load) => load.finish()));
  for (const [index, load] of loads.entries()) {
    expect(load.wrong).toEqual([]);
    expect(load.acknowledged.size).toBe(load.sent.size);
    expect(await compare(pool, (index === 0 ? small : large).projectId, load)).toEqual(NOTHING_WRONG);
  }
});
