import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type CopySink, copyIn } from '../../db/copy-in.ts';
import { FollowUp } from '../../db/follow-up.ts';
import { createPool, type Pool, type Transaction } from '../../db/pool.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();
let pool: Pool;
let client: Transaction;
beforeAll(async () => {
  pool = createPool({ url: database.url, size: 1, name: 'follow-up' });
  await pool.query('create table numbers (number integer primary key)');
});
beforeEach(async () => {
  client = await pool.connect();
});
afterAll(async () => {
  await pool.end();
});

/** CopyData messages with lines of text. */
const lines =
  (...texts: string[]) =>
  (sink: CopySink): void => {
    for (const text of texts) {
      const message = Buffer.alloc(5 + text.length + 1);
      message[0] = 'd'.charCodeAt(0);
      message.writeUInt32BE(message.length - 1, 1);
      message.write(`${text}\n`, 5);
      sink.write(message, () => undefined);
    }
  };
const COPY = 'begin; select 7 as first; copy numbers from stdin';
const sum = () =>
  new FollowUp<{ sum: number; given: string }>({
    name: 'sum-of-numbers',
    text: 'select sum(number)::int as sum, $1::text as given from numbers',
    values: ['x'],
  });

test('a query that goes with a COPY sees its rows, and what comes after it waits its turn', async () => {
  for (const [one, two] of [
    [1, 2],
    [3, 4],
  ] as const) {
    const next = sum();
    const copied = copyIn(client, COPY, lines(String(one), String(two)), next);
    expect(await copied).toEqual([['7']]);
    const after = client.query('select 5 as five');
    expect(await next.rows).toEqual([{ sum: one + two, given: 'x' }]);
    expect((await after).rows).toEqual([{ five: 5 }]);
    await client.query('rollback');
  }
  client.release();
});

test('when the COPY fails, the query fails with it, and the connection is as good as before', async () => {
  for (const bad of [['1', '1'], ['no number']]) {
    const next = sum();
    const outcome = await copyIn(client, COPY, lines(...bad), next).catch((error: Error) => error);
    expect(outcome).toMatchObject({ code: bad.length === 2 ? '23505' : '22P02' });
    await expect(next.rows).rejects.toMatchObject({ code: '25P02' });
    await client.query('rollback');
    expect((await client.query('select 5 as five')).rows).toEqual([{ five: 5 }]);
  }
  const next = sum();
  await copyIn(client, COPY, lines('10'), next);
  expect(await next.rows).toEqual([{ sum: 10, given: 'x' }]);
  await client.query('rollback');
  client.release();
});

test('a connection that breaks fails both, and nobody waits for ever', async () => {
  client.on('error', () => undefined);
  const next = sum();
  const text = 'begin; select pg_terminate_backend(pg_backend_pid()); copy numbers from stdin';
  await expect(copyIn(client, text, lines('1'), next)).rejects.toThrow();
  await expect(next.rows).rejects.toThrow();
  client.release(true);
});
