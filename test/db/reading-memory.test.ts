import { expect, test } from '@jest/globals';
import { readOnly, refusesQuery, TooMuchMemoryError } from '../../db/reading.ts';
import { faultOf } from '../../queries/reads/rows.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const database = databaseForFile();
/** A list that grows by 20 kilobytes for each row, and rests in between. */
const HUNGRY = `select cardinality(array_agg(repeat('x', 20000) || one || pg_sleep(0.00001))) from generate_series(1, 600000) as one`;
const MEBIBYTE = 1024 ** 2;
const settings = { client_connection_check_interval: '200ms' };

const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux('a query for which Postgres takes too much memory is ended, and is to blame for it', async () => {
  const bounds = { timeoutMs: 120_000, settings, mostMemory: 64 * MEBIBYTE };
  const error = await readOnly(database.pool, bounds, (client) => client.query(HUNGRY)).catch(
    (one: unknown) => one,
  );
  expect(error).toBeInstanceOf(TooMuchMemoryError);
  expect(refusesQuery(error)).toBe(true);
  expect(String(faultOf(error))).toMatch(/QueryError: The query takes more than 64 MiB of memory/);
  await eventually(async () => {
    const { rows } = await database.pool.query(
      "select from pg_stat_activity where query like 'select cardinality(%' and pid <> pg_backend_pid()",
    );
    return rows.length === 0;
  });
});

test('other queries keep their connection', async () => {
  const pids: number[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    const bounds = { timeoutMs: 10_000, mostMemory: 1024 * MEBIBYTE };
    const { rows } = await readOnly(database.pool, bounds, (client) =>
      client.query('select pg_backend_pid() as pid, pg_sleep(0.7)'),
    );
    pids.push(rows[0].pid);
  }
  expect(new Set(pids).size).toBe(1);
});
