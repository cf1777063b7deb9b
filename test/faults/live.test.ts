import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, expect, test } from '@jest/globals';
import { STAMP_SQL } from '../../db/horizon.ts';
import { LOCKS } from '../../db/locks.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { listenTo } from '../support/live.ts';
import { type ApiProgram, programsForFile } from '../support/programs.ts';
import { allocateNamespace } from '../support/temporal.ts';

const programs = programsForFile();
const database = databaseForFile();
let tenant: Tenant;

beforeAll(async () => {
  tenant = await createTenant(database.pool, 'Anna');
  // Every closing of the horizon is counted, whoever closes it.
  await database.pool.query(
    `create table closings (closed timestamptz not null);
     create function note_closing() returns trigger language plpgsql security definer set search_path from current as $$
       begin insert into closings values (new.closed); return null; end $$;
     create trigger note_closing after insert or update on event_horizon for each row execute function note_closing()`,
  );
});

const start = async (): Promise<ApiProgram> => {
  const { address, namespace } = allocateNamespace();
  return programs.ready(
    await programs.startApi({
      ...{ DATABASE_URL: database.url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace },
      ...{ SLUICE_DATA_DIR: makeDataDir(), SLUICE_METRICS_PORT: '0', SLUICE_LOG_LEVEL: 'warn' },
    }),
  );
};

async function capture(api: ApiProgram, event: string): Promise<void> {
  const answer = await fetch(`${api.url}/i/v0/e/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: tenant.projectToken, event, distinct_id: 'ann' }),
  });
  expect(answer.status).toBe(200);
}

const closings = async (): Promise<number> => {
  const { rows } = await database.pool.query('select count(*) as count from closings');
  return rows[0].count;
};

test('processes with listeners close the horizon once a second together, and none does when nobody listens', async () => {
  const apis = [await start(), await start()] as const;
  expect(await closings()).toBe(0);
  const streams = await Promise.all([...apis, ...apis].map(({ url }) => listenTo(url, tenant)));
  for (let number = 0; number < 10; number += 1) await capture(apis[number % 2] as ApiProgram, `${number}`);
  for (const one of streams) await eventually(async () => one.events().length === 10);
  await eventually(async () => (await closings()) >= 10);
  for (const one of streams) one.leave();
  // What was under way may still end.
  const before = await eventually(async () => {
    const count = await closings();
    await pause(3_000);
    return count === (await closings()) && count;
  });
  await capture(apis[0], 'nobody hears this');
  await pause(3_000);
  expect(await closings()).toBe(before);
  const { rows } = await database.pool.query(
    `select count(*) as count from (select closed - lag(closed) over (order by closed) as gap from closings) as gaps
     where gap < interval '1 second'`,
  );
  expect(rows[0].count).toBe(0);
});

test('another process closes the horizon when the one that does is killed, and its listener goes on there', async () => {
  const [first, second] = [await start(), await start()];
  const stream = await listenTo(first.url, tenant);
  await capture(first, 'before');
  await eventually(async () => stream.events().includes('before'));
  // The only one that listens is about to close the horizon, and waits for a writer.
  const writer = await database.pool.connect();
  await writer.query(`begin; ${STAMP_SQL}`);
  await eventually(async () => {
    const { rows } = await database.pool.query(
      `select count(*)::int as count from pg_locks where locktype = 'advisory' and granted
         and (classid::bigint << 32) | objid::bigint = $1
         and database = (select oid from pg_database where datname = current_database())`,
      [LOCKS.closing],
    );
    return rows[0].count > 0;
  });
  first.kill('SIGKILL');
  await first.exited;
  await eventually(async () => stream.isOver());
  await writer.query('commit');
  writer.release();
  const next = await listenTo(second.url, tenant, { lastId: stream.lastId() });
  expect(next.status).toBe(200);
  await capture(second, 'after');
  await eventually(async () => next.events().includes('after'));
  next.leave();
  expect([...stream.events(), ...next.events()].filter((one) => !/^(\d|nobody)/.test(one))).toEqual([
    'before',
    'after',
  ]);
});
