import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { createIngest, IngestUnavailableError } from '../../capture/ingest.ts';
import { sealEventIds } from '../../db/event-id-sealing.ts';
import { migrate } from '../../db/migrate.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { capturedEvent, census } from '../capture/support.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { FEW_PARTS, FEW_PARTS_SQL, TWICE } from '../support/event-ids.ts';
import { PATIENCE } from '../support/eventually.ts';
import { LONG, rounds } from '../support/rounds.ts';

if (LONG) jest.setTimeout(900_000);
const SIZES = { segment: 1_500, together: 2, parts: FEW_PARTS, recheck: 0, slice: 100, index: 1_000_000_000 };
let dataDir: string;
let postgres: Postgres;
let pool: Pool;

beforeAll(async () => {
  dataDir = makeDataDir();
  postgres = await startPostgres({ dataDir, cacheDir, port: 0 });
  await migrate(postgres.url);
  pool = createPool({ url: postgres.url, size: 4, name: 'test' });
  await pool.query(FEW_PARTS_SQL);
});
const sealers = new Set<ChildProcess>();
afterEach(async () => {
  await Promise.all([...sealers].map(kill));
});
afterAll(async () => {
  await pool?.end();
  await postgres?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

function startSealer(): ChildProcess {
  const child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, 'sealing-process.ts'), postgres.url, JSON.stringify(SIZES)],
    { stdio: 'ignore', env: { ...process.env, NODE_NO_WARNINGS: '1' } },
  );
  sealers.add(child);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  sealers.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await gone;
}

/** Waits for a moment that passes quickly. */
async function moment(sql: string): Promise<void> {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await pause(2)) {
    if ((await pool.query(`select ${sql} as yes`)).rows[0].yes) return;
  }
  throw new Error(`it never came to ${sql}`);
}
const newest = (condition: string) =>
  `(select ${condition} from event_id_segments order by number desc limit 1)`;

/** What a sealer does when it is killed. */
const MOMENTS: Record<string, string> = {
  'while it copies ids': newest(`filled_at is null and ids > ${SIZES.segment / 3}`),
  'while it makes a filter': newest(
    `filled_at is not null and sealed_at is null and not exists (select from event_id_filter_sets f where f.number = event_id_segments.number)`,
  ),
  'between the filter and the sealing, or just after': newest(
    `filled_at is not null and removed_at is null and exists (select from event_id_filter_sets f where f.number = event_id_segments.number)`,
  ),
  'while it takes ids from the table': newest('sealed_at is not null and removed_at is null'),
  'while it writes a filter that takes the place of another': `exists (
    select from event_id_filters o join event_id_filter_sets f on f.number = o.number - 1
    where o.number % ${SIZES.together} = 0
      and not exists (select from event_id_filter_sets g where g.number = o.number))`,
};

/** Four writers that send each event from two of them at least, until it is acknowledged. */
function startWriters(projectId: number) {
  const pools = [1, 2, 3, 4].map(() => createPool({ url: postgres.url, size: 4, name: 'ingest' }));
  const writers = pools.map((one) => createIngest({ pool: one }));
  const sent: string[] = [];
  let [isOver, stored] = [false, 0];
  const running = writers.map(async (writer) => {
    while (!isOver) {
      const fresh = Array.from({ length: 15 }, () => (Math.random() < 0.5 ? randomUUID() : uuidv7()));
      sent.push(...fresh);
      // What others send now, and what was sealed long ago.
      const recent = Array.from({ length: 10 }, () => sent[sent.length - 1 - Math.floor(Math.random() * 60)]);
      const any = Array.from({ length: 5 }, () => sent[Math.floor(Math.random() * sent.length)]);
      const uuids = [...new Set([...fresh, ...recent, ...any])].filter((one) => one !== undefined);
      for (;;) {
        try {
          const events = uuids.map((uuid) => capturedEvent({ uuid }));
          const result = await writer.submit({ projectId, events });
          stored += result.stored;
          break;
        } catch (error) {
          if (!(error instanceof IngestUnavailableError)) throw error;
          await pause(20);
        }
      }
    }
  });
  return {
    sent,
    async stop() {
      isOver = true;
      await Promise.all(running);
      await Promise.all(writers.map((one) => one.close()));
      await Promise.all(pools.map((one) => one.end()));
      return { sent: new Set(sent), stored };
    },
  };
}

async function settle(): Promise<void> {
  const work = { signal: new AbortController().signal, beat: () => undefined };
  // The connection of a sealer that was killed may hold its lock for a moment.
  for (let left = 1; left > 0; ) {
    await sealEventIds(pool, work, SIZES);
    const { rows } = await pool.query(
      'select count(*)::int as left from event_id_segments where removed_at is null',
    );
    left = rows[0].left;
  }
}

test('a sealer killed at each of its steps, beside another one and four writers with the same ids', async () => {
  const writers = startWriters(1);
  for (let round = 0; round < rounds(1, 6); round += 1) {
    for (const sql of Object.values(MOMENTS)) {
      const [first, second] = [startSealer(), startSealer()];
      await moment(sql);
      await Promise.all([kill(first), kill(second)]);
      const known = await census(pool, 1);
      expect(known.wrong).toEqual([]);
    }
  }
  const { sent, stored } = await writers.stop();
  await settle();
  const known = await census(pool, 1);
  expect(known.wrong).toEqual([]);
  expect(known.uuids).toEqual(sent);
  expect(stored).toBe(sent.size);
  expect((await pool.query(TWICE)).rows).toEqual([]);
});

test('Postgres killed while ids are sealed: no id is forgotten, and none is stored twice', async () => {
  const writers = startWriters(2);
  for (const sql of [MOMENTS['while it copies ids'], MOMENTS['while it takes ids from the table']]) {
    const sealer = startSealer();
    await moment(sql as string);
    const { rows } = await pool.query('select pid from pg_stat_activity where pid <> pg_backend_pid()');
    const { port } = postgres;
    for (const pid of [postgres.pid, ...rows.map((row) => row.pid)]) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    await postgres.exited;
    await kill(sealer);
    postgres = await startPostgres({ dataDir, cacheDir, port });
  }
  const { sent } = await writers.stop();
  await settle();
  const known = await census(pool, 2);
  expect(known.wrong).toEqual([]);
  expect(known.uuids).toEqual(sent);
  expect((await pool.query(TWICE)).rows).toEqual([]);
});
