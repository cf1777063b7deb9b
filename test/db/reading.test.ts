import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createPool, isDatabaseUnavailable, isLockTimeout, type Pool, transaction } from '../../db/pool.ts';
import { inTurn, isStatementTimeout, reading, shares } from '../../db/reading.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

afterAll(() => small.end());
const database = databaseForFile();
let small: Pool;
beforeAll(() => {
  const limits = { lock: 50, clientCheck: 100 };
  small = createPool({ url: database.url, size: 2, name: 'small', limits });
});

/** What Postgres is doing for the small pool. */
const atWork = async () => {
  const { rows } = await database.pool.query(
    `select query from pg_stat_activity where application_name = 'sluice-small' and state = 'active'`,
  );
  return rows.map((row) => row.query);
};

test.each([
  ['half of the turns', { turns: 4, cores: 16 }, 2],
  ['no more turns than half of the cores', { turns: 20, cores: 4 }, 2],
  ['one turn, whatever there is', { turns: 1, cores: 1 }, 1],
])('a project has %s', (_, { turns, cores }, expected) => {
  expect(shares(turns, cores)).toEqual({ atOnce: turns, kept: 1, perAsker: expected });
});

test('each project has its share of the connections at most, and projects follow each other', async () => {
  const { pool } = database;
  const { perAsker: most } = shares(pool.options.max);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (projectId: number, name: string) =>
    reading(pool, { projectId }, async (client) => {
      begun.push(name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      const { rows } = await client.query("select current_setting('statement_timeout') as timeout");
      return rows[0].timeout;
    });
  const greedy = Array.from({ length: most + 3 }, (_, number) => ask(1, `greedy ${number}`));
  await eventually(async () => begun.length === most);
  // The others do not even wait for a connection.
  expect([pool.waitingCount, pool.totalCount]).toEqual([0, most]);
  const modest = ask(2, 'modest');
  await eventually(async () => begun.includes('modest'));
  expect(begun).toHaveLength(most + 1);
  while (ends.size > 0 || begun.length < most + 4) {
    for (const [name, end] of ends) {
      ends.delete(name);
      end();
    }
    await eventually(async () => ends.size > 0 || begun.length === most + 4);
  }
  expect(new Set(await Promise.all([...greedy, modest]))).toEqual(new Set(['15s']));
});

test('one that fails leaves its turn to others', async () => {
  const { pool } = database;
  const failing = Array.from({ length: pool.options.max }, () =>
    reading(pool, { projectId: 1 }, (client) => client.query('select 1 / 0')),
  );
  const ends = await Promise.allSettled(failing);
  expect(new Set(ends.map((one) => one.status === 'rejected' && one.reason.message))).toEqual(
    new Set(['division by zero']),
  );
  expect(await inTurn(pool, { projectId: 1 }, async () => 'next')).toBe('next');
});

test('a query whose caller is gone ends in Postgres too', async () => {
  const gone = new AbortController();
  const asked = reading(small, { projectId: 1, signal: gone.signal }, (client) =>
    // Without a time limit: only the client's going ends it.
    client.query('set local statement_timeout = 0; select pg_sleep(300)'),
  );
  await eventually(async () => (await atWork()).length === 1);
  gone.abort(new Error('the client is gone'));
  await expect(asked).rejects.toThrow('the client is gone');
  await eventually(async () => (await atWork()).length === 0);
  // Whoever comes next finds a working connection.
  expect(
    await reading(small, { projectId: 1 }, async (client) => (await client.query('select 1')).rowCount),
  ).toBe(1);
});

test('a wait for a lock ends, a statement ends, a transaction ends, and nothing is half-written', async () => {
  const { pool } = database;
  await pool.query('create table notes (text text)');
  await pool.query("insert into notes values ('first')");
  await transaction(pool, async (holder) => {
    await holder.query('select from notes for update');
    const waiting = transaction(small, async (client) => {
      await client.query("insert into notes values ('second')");
      await client.query("update notes set text = 'changed'");
    });
    expect(isLockTimeout(await waiting.catch((error) => error))).toBe(true);
  });
  const strict = createPool({ url: database.url, size: 1, name: 'strict', limits: { statement: 50 } });
  const slow = transaction(strict, async (client) => {
    await client.query("insert into notes values ('third')");
    await client.query('select pg_sleep(300)');
  });
  expect(isStatementTimeout(await slow.catch((error) => error))).toBe(true);
  await strict.end();
  const hasty = createPool({ url: database.url, size: 1, name: 'hasty', limits: { transaction: 200 } });
  const long = transaction(hasty, async (client) => {
    await client.query("insert into notes values ('fourth')");
    for (;;) await client.query('select pg_sleep(0.01)');
  });
  await expect(long).rejects.toThrow(/transaction timeout|terminat/);
  // The end comes while nobody asks anything. The next query fails for its reason.
  const idle = transaction(hasty, async (client) => {
    const broken = new Promise((resolve) => client.once('error', resolve));
    await client.query("insert into notes values ('fifth')");
    await broken;
    await client.query('select 1');
  });
  const error = await idle.catch((one) => one);
  expect([error.message, isDatabaseUnavailable(error)]).toEqual([
    expect.stringContaining('transaction timeout'),
    true,
  ]);
  await hasty.end();
  expect((await pool.query('select text from notes')).rows).toEqual([{ text: 'first' }]);
});
