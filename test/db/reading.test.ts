import { expect, test } from '@jest/globals';
import { inTurn, reading, TooManyReadsError } from '../../db/reading.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const database = databaseForFile();

/** Something that is not over before it is told to be. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test('queries whose cost the caller decides leave half of the connections to others, and follow each other', async () => {
  const { pool } = database;
  const half = pool.options.max / 2;
  const begun: number[] = [];
  const gates = Array.from({ length: half + 2 }, gate);
  const works = gates.map(({ opened }, number) =>
    reading(pool, async (client) => {
      begun.push(number);
      await opened;
      const { rows } = await client.query("select current_setting('statement_timeout') as timeout");
      return rows[0].timeout;
    }),
  );
  const first = Array.from({ length: half }, (_, number) => number);
  await eventually(async () => begun.length === half);
  // The others do not even wait for a connection.
  expect([begun.toSorted(), pool.waitingCount, pool.totalCount]).toEqual([first, 0, half]);
  gates[0]?.open();
  await eventually(async () => begun.length === half + 1);
  expect(begun.at(-1)).toBe(half);
  for (const { open } of gates) open();
  expect(await Promise.all(works)).toEqual(gates.map(() => '15s'));
});

test('one that does not get its turn says so, and leaves it to the next', async () => {
  const { pool } = database;
  const { opened, open } = gate();
  const busy = Array.from({ length: pool.options.max / 2 }, () => inTurn(pool, () => opened));
  await expect(inTurn(pool, async () => 'too soon')).rejects.toThrow(TooManyReadsError);
  open();
  await Promise.all(busy);
  const many = Array.from({ length: pool.options.max }, (_, number) => number);
  expect(await Promise.all(many.map((number) => inTurn(pool, async () => number)))).toEqual(many);
});

test('one that fails leaves its turn to others', async () => {
  const { pool } = database;
  const failing = Array.from({ length: pool.options.max }, () =>
    reading(pool, (client) => client.query('select 1 / 0')),
  );
  const ends = await Promise.allSettled(failing);
  expect(new Set(ends.map((one) => one.status === 'rejected' && one.reason.message))).toEqual(
    new Set(['division by zero']),
  );
  expect(await inTurn(pool, async () => 'next')).toBe('next');
});
