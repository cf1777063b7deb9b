import { afterAll, describe, expect, test } from '@jest/globals';
import { createIngest } from '../../capture/ingest.ts';
import { closeHorizon, followHorizon, readHorizon, STAMP_SQL, storedBefore } from '../../db/horizon.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { capturedEvent } from '../capture/support.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const pools: Pool[] = [];
afterAll(async () => {
  for (const pool of pools) await pool.end();
});
const database = databaseForFile();

function newPool(size: number): Pool {
  const pool = createPool({ url: database.url, size, name: 'ingest' });
  pools.push(pool);
  return pool;
}

const WRITERS = 12;
const WINDOWS = 50;

async function countWindow(after: string, upTo: string): Promise<number> {
  const { rows } = await database.pool.query(
    'select count(*)::int as events from events where inserted_at > $1 and inserted_at <= $2',
    [after, upTo],
  );
  return rows[0].events;
}

describe('the horizon', () => {
  test('under 12 writers, no window that was closed ever grows, and the windows hold every event once', async () => {
    expect(await readHorizon(database.pool)).toBe('-infinity');
    let writing = true;
    let stored = 0;
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      const ingest = createIngest({ pool: newPool(2) });
      while (writing) {
        const events = Array.from({ length: 1 + (writer % 4) * 20 }, () => capturedEvent());
        const result = await ingest.submit({ projectId: 1 + (writer % 3), events });
        stored += result.stored;
      }
      await ingest.close();
    });
    // A slow reader must hold nobody up: its snapshot stays open all the time.
    const reader = await database.pool.connect();
    await reader.query('begin isolation level repeatable read');
    await reader.query('select count(*) from events');

    const windows: { after: string; upTo: string; events: number }[] = [];
    let grown = 0;
    let closed = '-infinity';
    while (windows.length < WINDOWS) {
      const upTo = await closeHorizon(database.pool, 1_000);
      if (upTo === undefined) continue;
      windows.push({ after: closed, upTo, events: await countWindow(closed, upTo) });
      closed = upTo;
      // Any earlier window, again: what is read twice must be the same.
      const earlier = windows[Math.floor(Math.random() * windows.length)]!;
      if ((await countWindow(earlier.after, earlier.upTo)) !== earlier.events) grown += 1;
    }
    writing = false;
    await Promise.all(writers);
    await reader.query('rollback');
    reader.release();
    const last = (await closeHorizon(database.pool, 5_000)) as string;
    windows.push({ after: closed, upTo: last, events: await countWindow(closed, last) });

    for (const { after, upTo, events } of windows) {
      if ((await countWindow(after, upTo)) !== events) grown += 1;
    }
    expect(grown).toBe(0);
    expect(windows.reduce((sum, window) => sum + window.events, 0)).toBe(stored);
    expect(stored).toBeGreaterThan(WINDOWS * WRITERS);
    expect(windows.filter((window) => window.events > 0).length).toBeGreaterThan(WINDOWS / 2);
  });

  test('closing waits for a writer that has its stamp, but only so long', async () => {
    const before = await readHorizon(database.pool);
    const writer = await newPool(1).connect();
    await writer.query(`begin; ${STAMP_SQL}`);
    expect(await closeHorizon(database.pool, 50)).toBeUndefined();
    expect(await readHorizon(database.pool)).toBe(before);
    await writer.query('commit');
    writer.release();
    expect((await closeHorizon(database.pool, 5_000))! > before).toBe(true);
  });

  test('however many follow it, it moves once in a while', async () => {
    await closeHorizon(database.pool, 5_000);
    const followers = newPool(8);
    const hour = 3_600_000;
    const follow = () => followHorizon(followers, { every: hour, lockTimeout: 5_000 });
    const all = () => Promise.all(Array.from({ length: 8 }, follow));
    const before = await readHorizon(database.pool);
    expect(await all()).toEqual(Array.from({ length: 8 }, () => before));
    // It was not moved for two hours. One of eight moves it. The others take what that one left, or come again.
    await database.pool.query("update event_horizon set closed = closed - interval '2 hours'");
    const moved = [...(await all()), ...(await all())].filter((one) => one !== undefined);
    const [closed] = moved;
    expect(new Set(moved)).toEqual(new Set([closed]));
    expect([closed! >= before, await readHorizon(database.pool), await follow()]).toEqual([
      true,
      closed,
      closed,
    ]);
  });

  test('who waited for its turn takes the horizon that another one moved meanwhile', async () => {
    // The first statement of a follower says that the horizon is old. Until its turn comes, it is not any more.
    const pool = newPool(1);
    const every = 3_600_000;
    await database.pool.query("update event_horizon set closed = closed - interval '2 hours'");
    let closed: string | undefined;
    const connect = pool.connect.bind(pool) as (...given: unknown[]) => unknown;
    pool.connect = (async (...given: unknown[]) => {
      // Without a callback, it is for a transaction.
      if (given.length === 0) closed = await closeHorizon(database.pool, 5_000);
      return connect(...given);
    }) as typeof pool.connect;
    expect(await followHorizon(pool, { every, lockTimeout: 5_000 })).toBe(closed);
    expect(await readHorizon(database.pool)).toBe(closed);
  });

  test('however many want to close it, one at a time stands in the way of writers, and they have their turns', async () => {
    const writer = await newPool(1).connect();
    await writer.query(`begin; ${STAMP_SQL}`);
    const closers = newPool(8);
    let held = true;
    const closing = Array.from({ length: 8 }, async () => {
      for (;;) {
        const closed = await closeHorizon(closers, 100);
        if (closed !== undefined || !held) return closed;
      }
    });
    const inTheWay = async (): Promise<number> => {
      const { rows } = await database.pool.query(
        `select count(*)::int as waiting from pg_locks where locktype = 'advisory' and not granted
           and mode = 'ExclusiveLock' and database = (select oid from pg_database where datname = current_database())`,
      );
      return rows[0].waiting;
    };
    const seen: number[] = [];
    await eventually(async () => {
      seen.push(await inTheWay());
      return seen.length >= 60 && seen.includes(0) && seen.includes(1);
    });
    expect(Math.max(...seen)).toBe(1);
    held = false;
    await writer.query('commit');
    writer.release();
    await Promise.all(closing);
    expect(await closeHorizon(database.pool, 5_000)).toBeDefined();
  });

  test('is known without waiting: no event is added before an instant that was told, whatever writers do', async () => {
    let writing = true;
    const writers = Array.from({ length: 6 }, async (_, writer) => {
      const ingest = createIngest({ pool: newPool(2) });
      while (writing) {
        const events = Array.from({ length: 1 + writer * 10 }, () => capturedEvent());
        await ingest.submit({ projectId: 50 + writer, events });
      }
      await ingest.close();
    });
    const countUpTo = async (instant: string): Promise<number> => {
      const { rows } = await database.pool.query(
        'select count(*)::int as events from events where project_id between 50 and 55 and inserted_at < $1',
        [instant],
      );
      return rows[0].events;
    };
    const told: { instant: string; events: number }[] = [];
    try {
      for (let round = 0; round < 60 || !told.at(-1)?.events; round += 1) {
        const instant = await storedBefore(database.pool);
        told.push({ instant, events: await countUpTo(instant) });
      }
    } finally {
      writing = false;
      await Promise.all(writers);
    }
    const later = await Promise.all(told.map(({ instant }) => countUpTo(instant)));
    expect(later).toEqual(told.map(({ events }) => events));
  });

  test('stands before the transaction of a writer that is still open', async () => {
    const writer = await newPool(1).connect();
    try {
      const results = (await writer.query(`begin; ${STAMP_SQL}`)) as unknown as {
        rows: { stamp: string }[];
      }[];
      const stamp = results.at(-1)?.rows[0]?.stamp as string;
      const isBefore = async () => {
        const { rows } = await database.pool.query(
          `select $1::timestamptz < timestamptz '2000-01-01 00:00:00+00' + $2::bigint * interval '1 microsecond' as before`,
          [await storedBefore(database.pool), stamp],
        );
        return rows[0].before;
      };
      expect(await isBefore()).toBe(true);
      await writer.query('rollback');
      expect(await isBefore()).toBe(false);
    } finally {
      writer.release(true);
    }
  });

  test('events are stamped after the horizon and windows go forward even when the clock has gone back', async () => {
    const ahead = '2999-01-01T00:00:00.000001Z';
    await database.pool.query(
      'insert into event_horizon (closed) values ($1) on conflict (only_row) do update set closed = excluded.closed',
      [ahead],
    );
    const ingest = createIngest({ pool: newPool(2) });
    await ingest.submit({ projectId: 9, events: [capturedEvent()] });
    const { rows } = await database.pool.query('select inserted_at from events where project_id = 9');
    expect(rows).toEqual([{ inserted_at: '2999-01-01T00:00:00.000002Z' }]);
    expect(await closeHorizon(database.pool, 5_000)).toBe(ahead);
    await ingest.close();
  });
});
