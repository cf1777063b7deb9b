import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { afterAll, expect, test } from '@jest/globals';
import { createPool, type Pool } from '../../db/pool.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';

const database = databaseForFile();
const pools: Pool[] = [];
afterAll(() => Promise.all(pools.filter((pool) => !pool.ended).map((pool) => pool.end())));

function poolAt(url: string, makesWay: boolean): Pool {
  const pool = createPool({ url, size: 1, name: 'test', makesWay });
  pools.push(pool);
  return pool;
}

const backendOf = async (pool: Pool): Promise<number> =>
  (await pool.query('select pg_backend_pid() as pid')).rows[0].pid;

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('queries that make way run at a lower priority, and others do not', async () => {
  const [usual, costly] = [poolAt(database.url, false), poolAt(database.url, true)];
  const pid = await backendOf(costly);
  const before = os.getPriority(await backendOf(usual));
  await eventually(async () => os.getPriority(pid) > before);
  expect(os.getPriority(await backendOf(usual))).toBe(before);
});

const groupOf = (pid: number): string => readFileSync(`/proc/${pid}/autogroup`, 'utf8');
const withGroups = existsSync('/proc/self/autogroup') && groupOf(process.pid) ? test : test.skip;

withGroups(
  'so does the group of such a process, because Linux shares the processors between groups',
  async () => {
    const [usual, costly] = [poolAt(database.url, false), poolAt(database.url, true)];
    const pid = await backendOf(costly);
    await eventually(async () => / nice 10$/m.test(groupOf(pid)));
    expect(groupOf(await backendOf(usual))).toMatch(/ nice 0$/m);
  },
);

onLinux('a process that is not the other end of the connection keeps its priority', async () => {
  // As Postgres sees it, the proxy is its client.
  const url = new URL(database.url);
  const proxy = await startPostgresProxy({ behind: Number(url.port) });
  url.port = String(proxy.port);
  const pool = poolAt(url.href, true);
  const pid = await backendOf(pool);
  const before = os.getPriority(await backendOf(poolAt(database.url, false)));
  for (let n = 0; n < 20; n += 1) await pool.query('select pg_sleep(0.01)');
  expect(os.getPriority(pid)).toBe(before);
  await pool.end();
  await proxy.close();
});
