import { describe, expect, test } from '@jest/globals';
import {
  type BatchExportRow,
  deleteBatchExport,
  findBatchExportById,
  listPauses,
  listPausesOfEach,
  setPaused,
  updateBatchExport,
} from '../../../exports/rows/batch-exports.ts';
import {
  type Check,
  clearMissing,
  findOpenChecks,
  listChecks,
  noteRepair,
  recordChecks,
} from '../../../exports/rows/checks.ts';
import {
  findHealth,
  type Health,
  listUnhealthy,
  saveHealth,
  sumHealth,
} from '../../../exports/rows/health.ts';
import { deleteOldLogs, insertLogs } from '../../../exports/rows/logs.ts';
import { RUN_EXPIRIES } from '../../../exports/rows/retention.ts';
import { markIntervals } from '../../../exports/rows/run-lists.ts';
import { beginAttempt, completeRun, startRun } from '../../../exports/rows/runs.ts';
import { databaseForFile } from '../../support/database.ts';
import { hours, keyOf, newExport, runOf } from './support.ts';

const database = databaseForFile();

describe('since when an interval is due', () => {
  test('is the time at which the export was made or was cut into other intervals', async () => {
    const { pool } = database;
    const row = await newExport(pool);
    const since = async (patch: Parameters<typeof updateBatchExport>[2]) =>
      (await updateBatchExport(pool, keyOf(row), patch))?.scheduled_from;
    expect(Math.abs(Date.parse(row.scheduled_from) - Date.parse(row.created_at))).toBeLessThan(1000);
    expect(await since({ name: 'Pond', interval: 'hour' })).toBe(row.scheduled_from);
    expect(await since({ timezone: 'Europe/Berlin' })).toBe(row.scheduled_from);
    const daily = (await since({ interval: 'day' })) as string;
    expect(daily > row.scheduled_from).toBe(true);
    const elsewhere = (await since({ timezone: 'Asia/Tokyo' })) as string;
    expect(elsewhere > daily).toBe(true);
    expect((await since({ interval_offset: 3600 }))! > elsewhere).toBe(true);
  });
});

describe('pauses', () => {
  test('are noted whoever makes them', async () => {
    const { pool } = database;
    const row = await newExport(pool);
    const key = keyOf(row);
    await setPaused(pool, key, true);
    await setPaused(pool, key, true);
    expect(await listPauses(pool, key, hours(0))).toEqual([
      { paused_at: expect.any(String), resumed_at: null },
    ]);
    await updateBatchExport(pool, key, { paused: false, name: 'Pond' });
    await updateBatchExport(pool, key, { paused: true });
    const pauses = await listPauses(pool, key, hours(0));
    expect(pauses).toEqual([
      { paused_at: expect.any(String), resumed_at: expect.any(String) },
      { paused_at: expect.any(String), resumed_at: null },
    ]);
    expect(pauses[0]!.resumed_at! <= pauses[1]!.paused_at).toBe(true);
    expect(await listPauses(pool, key, '2999-01-01')).toHaveLength(1);
  });

  test('one from the beginning is noted when it ends', async () => {
    const row = await newExport(database.pool, { paused: true });
    expect(await listPauses(database.pool, keyOf(row), hours(0))).toEqual([]);
    await setPaused(database.pool, keyOf(row), false);
    expect(await listPauses(database.pool, keyOf(row), hours(0))).toEqual([
      { paused_at: row.created_at, resumed_at: expect.any(String) },
    ]);
  });
});

describe('checks of intervals', () => {
  const check = (n: number, given: Partial<Check> = {}): Check => ({
    start: hours(n),
    end: hours(n + 1),
    state: 'missing',
    runId: null,
    sourceRows: null,
    contentHash: null,
    problem: null,
    ...given,
  });

  test('there is one of each interval: the last', async () => {
    const { pool } = database;
    const key = keyOf(await newExport(pool));
    await recordChecks(pool, []);
    await recordChecks(pool, [
      { ...key, ...check(0) },
      { ...key, ...check(0, { start: null }) },
      { ...key, ...check(1, { state: 'same', sourceRows: 3, contentHash: 'abc' }) },
    ]);
    await recordChecks(pool, [
      { ...key, ...check(0, { state: 'differs' }) },
      { ...key, ...check(0, { start: null }) },
    ]);
    const all = await listChecks(pool, key, { after: hours(0), until: hours(2) });
    expect(all).toMatchObject([
      { data_interval_end: expect.anything(), state: 'differs', repairs: 0 },
      { data_interval_start: null, state: 'missing' },
      { state: 'same', source_rows: 3, content_hash: 'abc' },
    ]);
    expect(await listChecks(pool, key, { after: hours(1), until: hours(2) })).toHaveLength(1);
  });

  test('a repair is noted by one of several', async () => {
    const { pool } = database;
    const key = keyOf(await newExport(pool));
    await recordChecks(pool, [{ ...key, ...check(0) }]);
    const interval = { start: hours(0), end: hours(1) };
    const both = await Promise.all([1, 2].map(() => noteRepair(pool, key, interval, 0)));
    expect(both.sort()).toEqual([false, true]);
    await recordChecks(pool, [{ ...key, ...check(0) }]);
    expect(await listChecks(pool, key, { after: hours(0), until: hours(1) })).toMatchObject([
      { repairs: 1, repaired_at: expect.any(String) },
    ]);
    await recordChecks(pool, [{ ...key, ...check(1, { state: 'differs' }) }]);
    await clearMissing(pool, key, [hours(1), hours(2)]);
    expect(await listChecks(pool, key, { after: hours(0), until: hours(9) })).toMatchObject([
      { state: 'differs' },
    ]);
  });
});

describe('what exports need a closer look for', () => {
  const check = (n: number, state: Check['state'], isDamaged = false): Check => ({
    ...{ start: hours(n), end: hours(n + 1), state, isDamaged },
    ...{ runId: null, sourceRows: null, contentHash: null, problem: null },
  });
  const each = (rows: readonly BatchExportRow[], after: string) =>
    rows.map((row) => ({ ...keyOf(row), after }));

  test('open checks of the time that is asked for, and damage of any time', async () => {
    const { pool } = database;
    const rows = [];
    for (const checks of [
      [check(0, 'missing'), check(3, 'same')],
      [check(3, 'differs'), check(2, 'expired')],
      [check(3, 'missing')],
      [check(0, 'differs', true)],
    ]) {
      const row = await newExport(pool);
      await recordChecks(
        pool,
        checks.map((one) => ({ ...keyOf(row), ...one })),
      );
      rows.push(row);
    }
    const ids = rows.map((row) => row.id);
    expect(await findOpenChecks(pool, each(rows, hours(1)))).toEqual(new Set(ids.slice(1)));
    expect(await findOpenChecks(pool, each(rows.slice(0, 2), hours(0)))).toEqual(new Set(ids.slice(0, 2)));
  });

  test('pauses that have not ended before, by export', async () => {
    const { pool } = database;
    const [one, other, quiet] = [await newExport(pool), await newExport(pool), await newExport(pool)];
    await setPaused(pool, keyOf(one), true);
    await setPaused(pool, keyOf(one), false);
    await setPaused(pool, keyOf(one), true);
    await setPaused(pool, keyOf(other), true);
    await setPaused(pool, keyOf(other), false);
    const found = await listPausesOfEach(pool, each([one, other, quiet], hours(0)));
    expect([...found.keys()].sort()).toEqual([one.id, other.id].sort());
    for (const row of [one, other])
      expect(found.get(row.id)).toMatchObject(await listPauses(pool, keyOf(row), hours(0)));
    const later = new Date(Date.now() + 60_000).toISOString();
    expect([...(await listPausesOfEach(pool, each([one, other, quiet], later))).keys()]).toEqual([one.id]);
  });

  test('intervals by how their runs ended, within the time', async () => {
    const { pool } = database;
    const row = await newExport(pool);
    const other = await newExport(pool);
    const mark = (n: number) => `${Date.parse(hours(n))}-${Date.parse(hours(n + 1))}`;
    for (const [n, statuses] of [
      [0, ['Completed']],
      [1, ['Completed']],
      [2, ['Failed', 'Completed']],
      [3, ['Cancelled', 'Running']],
      [4, ['Starting']],
    ] as const) {
      for (const status of statuses) {
        const { run } = await startRun(pool, runOf(keyOf(row), n));
        await pool.query('update batch_export_runs set status = $2 where id = $1', [run.id, status]);
      }
    }
    const whole = await startRun(pool, runOf(keyOf(row), 2, { start: null }));
    await pool.query(`update batch_export_runs set status = 'Completed' where id = $1`, [whole.run.id]);
    const found = await markIntervals(pool, each([row, other], hours(1)), hours(4));
    expect(found.get(row.id)).toEqual({
      completed: new Set([mark(1), mark(2)]),
      active: new Set([mark(3)]),
      ended: new Set([mark(2), mark(3)]),
    });
    expect(found.get(other.id)).toEqual({ completed: new Set(), active: new Set(), ended: new Set() });
  });
});

test('health is kept for each export, and added up over those that are there', async () => {
  const { pool } = database;
  const well: Health = { missing: 0, late: 0, differs: 0, lag_intervals: 0, lag_seconds: 0 };
  const [one, other, gone] = [await newExport(pool), await newExport(pool), await newExport(pool)];
  await saveHealth(pool, [{ ...keyOf(one), health: { ...well, missing: 2, lag_seconds: 7200 } }]);
  expect((await findHealth(pool, [keyOf(one)])).get(one.id)).toEqual({
    ...well,
    missing: 2,
    lag_seconds: 7200,
  });
  await saveHealth(pool, [{ ...keyOf(one), health: { ...well, missing: 1, lag_seconds: 3600 } }]);
  await saveHealth(pool, [
    { ...keyOf(other), health: well },
    { ...keyOf(gone), health: { ...well, missing: 5 } },
  ]);
  await deleteBatchExport(pool, keyOf(gone));
  expect(await sumHealth(pool)).toEqual({ missing: 1, late: 0, differs: 0, worst_lag_seconds: 3600 });
  expect(await listUnhealthy(pool, 10)).toMatchObject([{ batch_export_id: one.id, missing: 1 }]);
});

describe('what is deleted when its time is over', () => {
  const long = "clock_timestamp() - interval '401 days'";
  const cutoff = () => new Date(Date.now() - 400 * 86_400_000).toISOString();

  test('is what is old and over, and no more than was asked for at once', async () => {
    const { pool } = database;
    const row = await newExport(pool, { project_id: 7 });
    const key = keyOf(row);
    const run = async (n: number, over: boolean, old: boolean) => {
      const { run } = await startRun(pool, runOf(key, n));
      const [of, fence] = [
        { projectId: 7, runId: run.id },
        (await beginAttempt(pool, { projectId: 7, runId: run.id }))!.fence,
      ];
      if (over) await completeRun(pool, of, fence, { records_completed: 1 });
      if (old) await pool.query(`update batch_export_runs set created_at = ${long} where id = $1`, [run.id]);
      return run.id;
    };
    await run(0, true, true);
    await run(1, true, true);
    const kept = [await run(2, true, false), await run(3, false, true)];
    await insertLogs(pool, key, null, [{ level: 'INFO', message: 'old' }]);
    await pool.query(`update batch_export_logs set timestamp = ${long}`);
    await insertLogs(pool, key, null, [{ level: 'INFO', message: 'new' }]);
    expect(await RUN_EXPIRIES[0]!(pool, cutoff(), 1)).toBe(1);
    for (const expire of RUN_EXPIRIES) await expire(pool, cutoff(), 100);
    expect(await deleteOldLogs(pool, cutoff(), 100)).toBe(1);
    const left = await pool.query(
      'select id from batch_export_runs where project_id = 7 order by data_interval_end',
    );
    expect(left.rows.map((one) => one.id)).toEqual(kept);
    expect((await pool.query('select message from batch_export_logs')).rows).toEqual([{ message: 'new' }]);
    expect(
      (await pool.query('select count(*) from batch_export_metrics where project_id = 7')).rows[0].count,
    ).toBe(2);
  });

  test('an export that was deleted goes after its runs', async () => {
    const { pool } = database;
    const row = await newExport(pool, { project_id: 8 });
    const { run } = await startRun(pool, runOf(keyOf(row), 0));
    await deleteBatchExport(pool, keyOf(row));
    await pool.query(`update batch_exports set deleted_at = ${long} where id = $1`, [row.id]);
    const expire = async () => {
      for (const one of RUN_EXPIRIES) await one(pool, cutoff(), 100);
      return (await findBatchExportById(pool, row.id)) !== undefined;
    };
    expect(await expire()).toBe(true);
    await pool.query(`update batch_export_runs set created_at = ${long}, status = 'Failed' where id = $1`, [
      run.id,
    ]);
    expect(await expire()).toBe(false);
  });
});
