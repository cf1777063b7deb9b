import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { giveBack, lease } from '../../flags/rows/quotas.ts';
import { sluice } from '../support/cli.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();
let dataDir: string;
let usual: Record<string, string> = {};
const run = (...args: string[]) =>
  sluice(args, { DATABASE_URL: database.url, SLUICE_DATA_DIR: dataDir, ...usual });
const quota = (...args: string[]) => run('flags', 'quota', ...args);

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'sluice-cli-'));
  expect(await run('init', '--organization', 'Acme', '--email', 'root@acme.test')).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await rm(dataDir, { recursive: true });
});

async function said(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await quota(...args);
  expect([code, stderr]).toEqual([0, '']);
  return stdout.trim();
}
const stored = async () =>
  (
    await database.pool.query(
      'select name, flag_requests_per_month as bound from organizations order by name',
    )
  ).rows;

test('the quota of an organization is shown, set and taken back, and the log says who did it', async () => {
  expect(await said()).toBe('Acme: any number of requests (SLUICE_FLAG_REQUESTS_PER_MONTH)');
  usual = { SLUICE_FLAG_REQUESTS_PER_MONTH: '5000' };
  expect(await said()).toMatch(
    /^Acme: 5000 requests a month \(SLUICE_FLAG_REQUESTS_PER_MONTH\), 0 of it used in the month from \d{4}-\d\d-01 on$/,
  );
  expect(await said('700')).toMatch(/^Acme: 700 requests a month, 0 of it used in the month from /);
  const { rows } = await database.pool.query('select id from organizations');
  const taken = await lease(database.pool, {
    ...{ organizationId: rows[0].id, id: '00000000-0000-7000-8000-000000000001', used: 0, beyond: 0 },
    ...{ wanted: 15, spare: 25, seconds: 600, usualBound: 5000 },
  });
  expect(taken).toMatchObject({ bound: 700 });
  // What a process holds in spare is not used.
  expect(await said()).toMatch(/, 15 of it used in/);
  await giveBack(database.pool, {
    ...{ organizationId: rows[0].id, id: '00000000-0000-7000-8000-000000000001', used: 25, beyond: 0 },
  });
  expect(await said()).toMatch(/^Acme: 700 requests a month, 25 of it used in/);
  expect(await said('unlimited')).toBe('Acme: any number of requests');
  expect(await stored()).toEqual([{ name: 'Acme', bound: 0 }]);
  expect(await said('default')).toMatch(
    /^Acme: 5000 requests a month \(SLUICE_FLAG_REQUESTS_PER_MONTH\), 25 /,
  );
  expect(await stored()).toEqual([{ name: 'Acme', bound: null }]);
  const log = await database.pool.query(
    `select detail -> 'flag_requests_per_month' as change from activity_log where scope = 'Organization' and activity = 'updated' order by at, id`,
  );
  expect(log.rows.map(({ change }) => change)).toEqual([
    { before: null, after: 700 },
    { before: 700, after: 0 },
    { before: 0, after: null },
  ]);
});

test.each(['0', '-1', '1.5', '1e3', '007', 'many', '1234567890123456', ''])(
  '"%s" is no quota',
  async (text) => {
    const before = await stored();
    expect(await quota('--', text)).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: `error: "${text}" is no quota. Use a number of requests, \`unlimited\` or \`default\`.\n`,
    });
    expect(await stored()).toEqual(before);
  },
);

test('with several organizations, one must be named', async () => {
  await database.pool.query(
    `insert into organizations (id, name, slug) values ('00000000-0000-7000-8000-0000000000aa', 'Beta', 'beta')`,
  );
  expect(await quota('5')).toMatchObject({ code: 1, stderr: expect.stringContaining('--organization: ') });
  expect(await quota('5', '--organization', 'gamma')).toEqual({
    ...{ code: 1, stdout: '', stderr: 'error: There is no organization with the id or slug gamma.\n' },
  });
  expect(await said('5', '--organization', 'beta')).toMatch(/^Beta: 5 requests a month, 0 of it used/);
  expect(await stored()).toEqual([
    { name: 'Acme', bound: null },
    { name: 'Beta', bound: 5 },
  ]);
});
