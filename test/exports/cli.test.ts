import { appendFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { durationText, stateText } from '../../cli/commands/exports.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { sluice } from '../support/cli.ts';
import { exportWorldForFile, FIRST, filesIn, fillHour, HOUR, hour, hourly } from './support.ts';

// Nothing is run by itself: what is missing here stays so.
const world = exportWorldForFile({ settings: () => ({ SLUICE_EXPORT_REPAIR: 'false' }) });
const run = (...args: string[]) =>
  sluice(args, {
    DATABASE_URL: world.config.DATABASE_URL as string,
    TEMPORAL_ADDRESS: world.config.TEMPORAL_ADDRESS as string,
    TEMPORAL_NAMESPACE: world.config.TEMPORAL_NAMESPACE,
    SLUICE_ENCRYPTION_KEYS: world.config.SLUICE_ENCRYPTION_KEYS as string,
    SLUICE_DATA_DIR: path.join(world.root, 'data'),
  });
/** An address that `SLUICE_EGRESS_ALLOW` does not name. */
const HTTP_TO_NOBODY = { url: 'http://10.0.0.1/batch/', token: 'phc_x' };
let lake: BatchExportRow;
let other: BatchExportRow;

beforeAll(async () => {
  expect(await run('exports')).toEqual({ code: 0, stdout: 'There is no batch export.\n', stderr: '' });
  lake = await world.create('File', { directory: 'lake' });
  other = await world.create(
    'NoOp',
    {},
    { name: 'Other', project_id: 2, paused: true, interval: 'every 5 minutes' },
  );
  await fillHour(world.pool, 0, 12);
  await fillHour(world.pool, 1, 3);
  await world.run(lake, hourly(0));
  await world.run(lake, hourly(1));
});

describe('npx sluice exports', () => {
  test('lists all of them with how they do', async () => {
    const all = await run('exports');
    expect(all).toEqual({
      code: 0,
      stdout:
        `${lake.id}  Lake  project 1, events every hour to File: on time; last run Completed, of the interval until ${hour(2).replace('.000', '')}\n` +
        `${other.id}  Other  project 2, events every 5 minutes to NoOp: paused; no run yet\n`,
      stderr: '',
    });
    expect((await run('exports', '--project', '2')).stdout).toContain(other.id);
    expect((await run('exports', '--project', '2')).stdout).not.toContain(lake.id);
    expect((await run('exports', '--project', '3')).stdout).toBe('There is no batch export in project 3.\n');
    expect(await run('exports', '--project', 'x')).toMatchObject({
      code: 1,
      stderr: 'error: --project: "x" is not the id of a project.\n',
    });
  });

  test('shows a name that commands a terminal as a name', async () => {
    const named = async (name: string) =>
      world.pool.query('update batch_exports set name = $2 where id = $1', [other.id, name]);
    const name = 'Red\u001b[41m\nok     forged\u009b2J\u202e';
    await named(name);
    const lines = (await run('exports', '--project', '2')).stdout.split('\n');
    expect(lines).toEqual([
      expect.stringContaining(`${other.id}  Red [41m ok     forged 2J   project 2`),
      '',
    ]);
    const json = (await run('exports', '--project', '2', '--json')).stdout;
    expect(json).not.toMatch(/[^\n\P{Cc}]|\p{Cf}/u);
    expect(JSON.parse(json).exports[0].name).toBe(name);
    await named('Other');
  });

  test('ends with 1 if something is missing, and tells programs all of it', async () => {
    const long = new Date(Date.now() - 10 * HOUR).toISOString();
    await world.pool.query('update batch_exports set created_at = $2, scheduled_from = $2 where id = $1', [
      lake.id,
      long,
    ]);
    const wrong = await run('exports', '--json', '--project', '1');
    expect(wrong.code).toBe(1);
    const { exports } = JSON.parse(wrong.stdout);
    expect(exports).toEqual([
      {
        ...{
          id: lake.id,
          project_id: 1,
          name: 'Lake',
          model: 'events',
          interval: 'hour',
          destination: 'File',
        },
        ...{ paused: false, missing: expect.any(Number), late: expect.any(Number), differs: 0 },
        ...{ lag_intervals: expect.any(Number), lag_seconds: expect.any(Number), waiting: null },
        hogql_query: null,
        last_run: {
          ...{ id: expect.any(String), status: 'Completed', interval_end: hour(2).replace('.000', '') },
          latest_error: null,
        },
      },
    ]);
    expect(exports[0].missing).toBeGreaterThanOrEqual(7);
    expect((await run('exports')).stdout).toMatch(/: \d+ missing, .*\d+ hours behind; last run Completed/);
  });

  test('shows the query of an export in one line', async () => {
    const hogql_query = `select uuid\n from events\u001b[2J where event = '${'x'.repeat(300)}'`;
    const asked = await world.create('NoOp', {}, { name: 'Asked', hogql_query });
    const { stdout } = await run('exports', '--project', '1');
    expect(stdout).toContain(`\n  select uuid from events [2J where event = '${'x'.repeat(157)}…\n`);
    const { exports } = JSON.parse((await run('exports', '--json')).stdout);
    expect(exports.find((one: { id: string }) => one.id === asked.id)).toMatchObject({ hogql_query });
    await world.pool.query('update batch_exports set deleted_at = now() where id = $1', [asked.id]);
  });

  test('says why the last run failed', async () => {
    const broken = await world.create('HTTP', HTTP_TO_NOBODY, { name: 'Broken', project_id: 1 });
    const { run: failed } = await world.run(broken, hourly(0));
    expect(failed.status).toBe('Failed');
    const { stdout } = await run('exports', '--project', '1');
    expect(stdout).toContain(`last run Failed, of the interval until ${hour(1).replace('.000', '')}\n`);
    expect(stdout).toContain(`\n  ${failed.latest_error}\n`);
    await world.pool.query('update batch_exports set deleted_at = now() where id = $1', [broken.id]);
  });

  test.each([
    [0, '0 seconds'],
    [1, '1 second'],
    [119, '119 seconds'],
    [120, '2 minutes'],
    [7200, '2 hours'],
    [86_400, '24 hours'],
    [200_000, '2 days'],
  ])('%i seconds are %s', (seconds, text) => {
    expect(durationText(seconds)).toBe(text);
  });

  test('a state is all that is to be known, the pause first', () => {
    const health = { missing: 1, late: 2, differs: 3, lag_intervals: 4, lag_seconds: 7200 };
    expect(stateText({ paused: true, last_paused_at: '2026-03-02T10:00:00.000000Z' }, health)).toBe(
      'paused since 2026-03-02T10:00:00Z, 1 missing, 3 not as exported, 2 late, 2 hours behind',
    );
    const fine = { missing: 0, late: 0, differs: 0, lag_intervals: 0, lag_seconds: 0 };
    expect(stateText({ paused: false, last_paused_at: null }, fine)).toBe('on time');
    const wait = { runs: 2, since: '2026-03-02T10:00:00.000000Z' };
    expect(stateText({ paused: false, last_paused_at: null }, fine, wait)).toBe(
      '2 runs wait for a place of a worker since 2026-03-02T10:00:00Z',
    );
  });
});

describe('npx sluice verify', () => {
  const at = (n: number) => new Date(FIRST + n * HOUR).toISOString().replace('.000', '');

  test('leaves out what nobody had to export', async () => {
    expect(await run('verify', 'Other', '--from', at(0), '--to', at(1))).toEqual({
      ...{ code: 0, stdout: '' },
      stderr: '12 intervals were not due, and not exported.\n',
    });
  });

  test('compares what was exported, by id and by name', async () => {
    for (const name of [lake.id, 'Lake']) {
      expect(await run('verify', name)).toEqual({
        code: 0,
        stdout: `same  ${at(1)} – ${at(2)}  3 rows\n`,
        stderr: '',
      });
    }
    const range = await run('verify', lake.id, '--from', at(0), '--to', at(2));
    expect(range).toEqual({
      code: 0,
      stdout: `same  ${at(0)} – ${at(1)}  12 rows\nsame  ${at(1)} – ${at(2)}  3 rows\n2 of 2 intervals are as they should be.\n`,
      stderr: '',
    });
  });

  test('finds what was spoilt, and what is not there', async () => {
    const folder = path.join(world.root, 'lake');
    const [first, second] = filesIn(folder).filter((file) => file.endsWith('.jsonl')) as [string, string];
    appendFileSync(path.join(folder, first), 'x');
    rmSync(path.join(folder, second));
    const { code, stdout, stderr } = await run('verify', 'Lake', '--from', at(0), '--to', at(3));
    expect(code).toBe(1);
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^differs {2}/),
      expect.stringMatching(new RegExp(`^ {2}The file ${first.replaceAll('+', '\\+')} has `)),
      expect.stringMatching(/^missing {2}/),
      expect.stringMatching(/^ {2}The file .* is not there\.$/),
      '0 of 2 intervals are as they should be.',
      '',
    ]);
    // The third hour lies before the export was made.
    expect(stderr).toBe('1 interval was not due, and not exported.\n');
    const json = await run('verify', 'Lake', '--from', at(0), '--to', at(1), '--json');
    expect([json.code, JSON.parse(json.stdout).verdict]).toEqual([1, 'differs']);
  });

  test('says what it cannot do', async () => {
    for (const [args, message] of [
      [['x'], 'There is no batch export called x; `npx sluice exports` lists them.'],
      [
        ['01900000-0000-7000-8000-000000000001'],
        'There is no batch export with the id 01900000-0000-7000-8000-000000000001; `npx sluice exports` lists them.',
      ],
      [['Other'], 'Nothing has been exported yet.'],
      [['Lake', '--from', 'x'], '--from: "x" is not a date (2027-01-31, or with a time).'],
      [['Lake', '--from', at(0), '--to', at(0)], 'No whole interval between --from and --to has ended.'],
    ] as const) {
      expect(await run('verify', ...args)).toEqual({ code: 1, stdout: '', stderr: `error: ${message}\n` });
    }
  });
});
