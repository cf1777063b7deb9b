// What holds people with a SQL client who change the settings of their login.
import os from 'node:os';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { createPool, type Pool } from '../../db/pool.ts';
import { ensureRoles } from '../../db/roles/roles.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import { grantSqlAccess } from '../../tenancy/sql-access.ts';
import { createSqlKeeper, type SqlKeeper } from '../../tenancy/sql-keeper.ts';
import { insertProjects, insertTwoProjects, MINE, userIn } from '../db/roles/world.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

let url: string;
let pool: Pool;
let keeper: SqlKeeper | undefined;
let told: string[] = [];
const clients: pg.Client[] = [];

afterEach(async () => {
  await keeper?.close();
  keeper = undefined;
  await Promise.all(clients.splice(0).map((client) => client.end().catch(() => undefined)));
});
afterAll(async () => {
  await pool?.end();
  if (url) await database.pool.query(`drop owned by ${userIn(url)}; drop role ${userIn(url)}`);
});
const database = databaseForFile();

beforeAll(async () => {
  // The keeper works as the server does, who may little.
  const { server } = await ensureRoles({ url: database.url });
  pool = createPool({ url: server, size: 2, name: 'test' });
  await insertProjects(database.pool);
  await insertTwoProjects(database.pool);
  const granted = await grantSqlAccess({ url: database.url }, OPERATOR, {
    ...{ projectId: MINE, connections: 5, despiteFunctions: false },
  });
  url = granted.url;
});
beforeEach(() => {
  told = [];
});

function keep(options: { mostSeconds?: number; mostBytes?: number } = {}): void {
  const logger = { warn: (_about: object, message: string) => void told.push(message) };
  keeper = createSqlKeeper({ pool, logger: logger as never, every: 50, ...options });
  keeper.start();
}

/** Waits until the log tells why a session was ended. */
const heard = (reason: string) =>
  eventually(async () => told.includes(`a session of a SQL client was ended: ${reason}`));

interface Session {
  pid: number;
  isOver: () => boolean;
  query: pg.Client['query'];
}

async function session(): Promise<Session> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-person' });
  let over = false;
  client.on('error', () => {
    over = true;
  });
  client.on('end', () => {
    over = true;
  });
  await client.connect();
  clients.push(client);
  const { rows } = await client.query('select pg_backend_pid() as pid');
  return { pid: rows[0].pid, isOver: () => over, query: client.query.bind(client) };
}

test('a transaction that is open for too long is ended, whatever the person set; others go on', async () => {
  const [idle, patient] = [await session(), await session()];
  await patient.query(
    'set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set transaction_timeout = 0',
  );
  await patient.query('begin isolation level repeatable read; select count(*) from events');
  keep({ mostSeconds: 0 });
  await eventually(async () => patient.isOver());
  await heard('its transaction is too old');
  expect((await idle.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(idle.isOver()).toBe(false);
});

test('a query that runs for too long is ended', async () => {
  const busy = await session();
  await busy.query('set statement_timeout = 0; set transaction_timeout = 0');
  const query = busy.query('select count(*) from generate_series(1, 1000000000000) as n');
  const failed = query.then(
    () => undefined,
    (error: Error) => error,
  );
  keep({ mostSeconds: 1 });
  expect((await failed)?.message).toMatch(/terminating connection|Connection terminated/);
});

test('an advisory lock is not held for long, also where logins may still take one', async () => {
  await database.pool.query(`grant execute on function pg_advisory_lock(bigint) to ${userIn(url)}`);
  const [holder, waiter] = [await session(), await session()];
  await holder.query('select pg_advisory_lock(1)');
  const waiting = waiter.query('select pg_advisory_lock(1)').catch(() => undefined);
  keep();
  await eventually(async () => holder.isOver() && waiter.isOver());
  await waiting;
  await heard('it takes an advisory lock');
});

test('a transaction that keeps upkeep of events waiting is ended, and others are not', async () => {
  const [reader, idle, elsewhere] = [await session(), await session(), await session()];
  for (const one of [reader, elsewhere]) {
    await one.query('set idle_in_transaction_session_timeout = 0; set transaction_timeout = 0');
  }
  await reader.query('begin; select count(*) from events');
  await elsewhere.query('begin; select count(*) from groups');
  keep();
  // A new week takes a lock on the events that have none, which stand behind every look at events.
  const locked = await database.pool.query(
    `begin; set local lock_timeout = '60s'; lock table events in access exclusive mode; commit; select 'done' as done`,
  );
  expect((locked as unknown as { rows: unknown[] }[]).at(-1)?.rows).toEqual([{ done: 'done' }]);
  await eventually(async () => reader.isOver());
  await heard('it keeps upkeep of a table waiting');
  expect((await idle.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect([idle.isOver(), elsewhere.isOver()]).toEqual([false, false]);
});

test('the sessions of a login that was closed are ended', async () => {
  const open = await session();
  await database.pool.query('update sql_logins set closed_at = now()');
  keep();
  await eventually(async () => open.isOver());
  await heard('the login was closed');
  await database.pool.query('update sql_logins set closed_at = null');
});

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('a session makes way for requests', async () => {
  const one = await session();
  const before = os.getPriority(one.pid);
  keep();
  await eventually(async () => os.getPriority(one.pid) > before);
  expect(one.isOver()).toBe(false);
});

onLinux('a session that takes too much memory is ended, and others go on', async () => {
  const [small, large] = [await session(), await session()];
  await large.query(`set work_mem = '1GB'`);
  keep({ mostBytes: 64 * 1024 * 1024 });
  const query = large.query(
    `select count(*) from (select n, repeat('x', 500) from generate_series(1, 100000000) as n order by 2, 1 desc) as s`,
  );
  await query.catch(() => undefined);
  await eventually(async () => large.isOver());
  await heard('it takes too much memory');
  expect((await small.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});
