import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  createIngest,
  type Ingest,
  type IngestLimits,
  IngestUnavailableError,
  type Submitted,
} from '../../capture/ingest.ts';
import { migrate } from '../../db/migrate.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { capturedEvent, census, runAndKillWriter } from './support.ts';

let postgres: Postgres;
let dataDir: string;

async function start(port: number): Promise<Postgres> {
  return startPostgres({ dataDir, cacheDir, port });
}

/** What is running on a server that is killed dies with it; a fresh one on the same port takes its place. */
async function killAndRestart(): Promise<void> {
  const { port } = postgres;
  const processes = await serverProcesses();
  for (const pid of processes) signal(pid, 'SIGKILL');
  await postgres.exited;
  postgres = await start(port);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The backends that serve `sluice-ingest`, and the postmaster. */
async function serverProcesses(): Promise<number[]> {
  const pool = createPool({ url: postgres.url, size: 1, name: 'test' });
  try {
    const { rows } = await pool.query(
      `select pid from pg_stat_activity where application_name = 'sluice-ingest'`,
    );
    return [postgres.pid, ...rows.map((row) => row.pid)];
  } finally {
    await pool.end();
  }
}

async function withIngest<T>(
  limits: Partial<IngestLimits>,
  work: (ingest: Ingest, pool: Pool) => Promise<T>,
): Promise<T> {
  const pool = createPool({ url: postgres.url, size: 2, name: 'ingest' });
  const ingest = createIngest({ pool, limits });
  try {
    return await work(ingest, pool);
  } finally {
    await ingest.close();
    await pool.end();
  }
}

beforeAll(async () => {
  dataDir = makeDataDir();
  postgres = await start(0);
  await migrate(postgres.url);
});
afterAll(async () => {
  await postgres?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

describe('a writer that is killed under load', () => {
  test('has stored whatever it acknowledged, and what its client sends again is stored once', async () => {
    const { sent, stored } = await runAndKillWriter(postgres.url, 1, 3_000);
    await withIngest({}, async (ingest, pool) => {
      // Postgres finishes what it has in hand before it notices that nobody is there any more.
      await eventually(async () => (await serverProcesses()).length === 1);
      const before = await census(pool, 1);
      expect(before.wrong).toEqual([]);
      expect([...stored].filter((uuid) => !before.uuids.has(uuid))).toEqual([]);
      // The client knows of no more than the acknowledged ones, and sends all others again; here even all.
      const uuids = [...sent];
      const results: Submitted[] = [];
      for (let from = 0; from < uuids.length; from += 250) {
        const events = uuids.slice(from, from + 250).map((uuid) => capturedEvent({ uuid }));
        results.push(await ingest.submit({ projectId: 1, events }));
      }
      const sum = (key: 'stored' | 'duplicates') => results.reduce((total, one) => total + one[key], 0);
      expect(sum('duplicates')).toBe(before.uuids.size);
      expect(sum('stored')).toBe(sent.size - before.uuids.size);
      const after = await census(pool, 1);
      expect(after.wrong).toEqual([]);
      expect(after.uuids.size).toBe(sent.size);
    });
  });
});

/** Clients that send until told to stop, each event again until it is acknowledged. */
function clients(ingest: Ingest, projectId: number, count: number) {
  const state = { acknowledged: [] as string[], refused: 0, stopping: false };
  const client = async () => {
    while (!state.stopping) {
      const event = capturedEvent();
      for (;;) {
        try {
          await ingest.submit({ projectId, events: [event] });
          state.acknowledged.push(event.uuid);
          break;
        } catch (error) {
          if (!(error instanceof IngestUnavailableError)) throw error;
          if (state.stopping) return;
          state.refused += 1;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    }
  };
  const ended = Promise.all(Array.from({ length: count }, client));
  return {
    state,
    async stop() {
      state.stopping = true;
      await ended;
    },
    /** Until as many more were acknowledged. */
    async progress(more: number) {
      const goal = state.acknowledged.length + more;
      await eventually(async () => state.acknowledged.length >= goal);
    },
  };
}

describe('a Postgres that fails under load', () => {
  test('killed and started again: nothing acknowledged is lost, nothing is stored twice, storing goes on', async () => {
    await withIngest({}, async (ingest, pool) => {
      const load = clients(ingest, 2, 32);
      for (let round = 0; round < 3; round += 1) {
        await load.progress(500);
        await killAndRestart();
      }
      await load.progress(500);
      await load.stop();
      const { uuids, wrong } = await census(pool, 2);
      expect(wrong).toEqual([]);
      expect(load.state.acknowledged.filter((uuid) => !uuids.has(uuid))).toEqual([]);
      expect(new Set(load.state.acknowledged).size).toBe(load.state.acknowledged.length);
    });
  });

  test('paused: who waits too long is sent away, nothing is answered falsely, and all goes on afterwards', async () => {
    await withIngest({ patience: 600 }, async (ingest, pool) => {
      const load = clients(ingest, 3, 32);
      await load.progress(300);
      const paused = await serverProcesses();
      for (const pid of paused) signal(pid, 'SIGSTOP');
      try {
        const before = load.state.acknowledged.length;
        await eventually(async () => load.state.refused >= 64);
        // Answers that were on their way when it stopped; a batch has at most one event of each client.
        expect(load.state.acknowledged.length).toBeLessThanOrEqual(before + 64);
      } finally {
        for (const pid of paused) signal(pid, 'SIGCONT');
      }
      await load.progress(300);
      await load.stop();
      const { uuids, wrong } = await census(pool, 3);
      expect(wrong).toEqual([]);
      expect(load.state.acknowledged.filter((uuid) => !uuids.has(uuid))).toEqual([]);
    });
  });

  test('away: no more is held than the limit, the rest is sent away at once, and what was accepted is stored later', async () => {
    const limit = 200_000;
    const pool = createPool({ url: postgres.url, size: 2, name: 'ingest' });
    const registry = createRegistry('test');
    const ingest = createIngest({ pool, registry, limits: { queueBytes: limit, patience: 60_000 } });
    const { port } = postgres;
    await postgres.stop();
    const submitted = Array.from({ length: 2_000 }, () =>
      ingest.submit({ projectId: 4, events: [capturedEvent({ properties: { text: 'x'.repeat(780) } })] }),
    );
    const settled = Promise.allSettled(submitted);
    const held = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
    expect(await held('sluice_ingest_queue_bytes')).toBeLessThanOrEqual(limit);
    const accepted = (await held('sluice_ingest_queue_events')) as number;
    // A project has half of the room.
    expect(accepted).toBeGreaterThan(50);
    // Stopping does not give up what was accepted, and accepts nothing more.
    const closed = ingest.close();
    await expect(ingest.submit({ projectId: 4, events: [capturedEvent()] })).rejects.toMatchObject({
      name: 'IngestUnavailableError',
      retryAfterSeconds: expect.any(Number),
    });
    postgres = await start(port);
    await closed;
    const results = await settled;
    const rejected = results.filter((result) => result.status === 'rejected');
    expect(results.length - rejected.length).toBe(accepted);
    expect(rejected.every((result) => result.reason instanceof IngestUnavailableError)).toBe(true);
    const { uuids, wrong } = await census(pool, 4);
    expect(wrong).toEqual([]);
    expect(uuids.size).toBe(accepted);
    expect(await held('sluice_ingest_queue_bytes')).toBe(0);
    await pool.end();
  });
});
