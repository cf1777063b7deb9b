import { describe, expect, test } from '@jest/globals';
import type { ExportKey } from '../../../exports/rows/batch-exports.ts';
import { listMetrics, metricTotals } from '../../../exports/rows/metrics.ts';
import {
  activeRuns,
  countRecentFailures,
  findCompletedRun,
  findRun,
  latestRuns,
  listIntervalOutcomes,
  listRuns,
  type RunPosition,
} from '../../../exports/rows/run-lists.ts';
import {
  beginAttempt,
  completeRun,
  holdsFence,
  markRunEnded,
  type RunFailure,
  type RunKey,
  type RunRow,
  recordProgress,
  recordTrouble,
  startRun,
} from '../../../exports/rows/runs.ts';
import { databaseForFile } from '../../support/database.ts';
import { hours, keyOf, newExport, runOf } from './support.ts';

const database = databaseForFile();
const newKey = async (projectId = 1) => keyOf(await newExport(database.pool, { project_id: projectId }));
const of = (run: RunRow): RunKey => ({ projectId: run.project_id, runId: run.id });

async function started(key: ExportKey, n: number, given: Parameters<typeof runOf>[2] = {}): Promise<RunRow> {
  const { outcome, run } = await startRun(database.pool, runOf(key, n, given));
  expect(outcome).toBe('started');
  return run;
}

/** A run that has gone through. */
async function completed(key: ExportKey, n: number, records = 10): Promise<RunRow> {
  const attempt = await beginAttempt(database.pool, of(await started(key, n)));
  return (await completeRun(database.pool, of(attempt!), attempt!.fence, { records_completed: records }))!;
}

async function ended(key: ExportKey, n: number, status: RunFailure): Promise<RunRow> {
  return (await markRunEnded(database.pool, of(await started(key, n)), status, 'it broke'))!;
}

describe('a run', () => {
  test('goes from Starting to Running to Completed, with what it did', async () => {
    const { pool } = database;
    const key = await newKey();
    const run = await started(key, 0);
    expect(run).toMatchObject({
      ...{ project_id: 1, batch_export_id: key.exportId, status: 'Starting', backfill_id: null },
      ...{ data_interval_start: '2026-01-01T00:00:00Z', data_interval_end: '2026-01-01T01:00:00Z' },
      ...{ records_completed: null, finished_at: null, latest_error: null },
    });
    const attempt = await beginAttempt(pool, of(run));
    expect(attempt?.status).toBe('Running');
    expect(attempt!.fence).toBeGreaterThan(run.fence);
    expect(
      await recordProgress(pool, of(run), attempt!.fence, { records_completed: 5, bytes_exported: 50 }),
    ).toBe(true);
    expect(await findRun(pool, of(run))).toMatchObject({ records_completed: 5, bytes_exported: 50 });
    const done = await completeRun(pool, of(run), attempt!.fence, {
      ...{ records_completed: 10, records_total_count: 11, records_failed: 1 },
      ...{ bytes_exported: 99, content_hash: 'abc', manifest_key: 'a/b.json' },
    });
    expect(done).toMatchObject({
      ...{ status: 'Completed', records_completed: 10, records_total_count: 11, records_failed: 1 },
      ...{
        bytes_exported: 99,
        content_hash: 'abc',
        manifest_key: 'a/b.json',
        finished_at: expect.any(String),
      },
    });
  });

  test('started again by the same workflow is the same run, and a later attempt', async () => {
    const key = await newKey();
    const wanted = runOf(key, 0);
    const first = await startRun(database.pool, wanted);
    const again = await startRun(database.pool, wanted);
    expect([first.outcome, again.outcome]).toEqual(['started', 'started']);
    expect(again.run.id).toBe(first.run.id);
    expect(again.run.fence).toBeGreaterThan(first.run.fence);
    await markRunEnded(database.pool, of(first.run), 'Cancelled', null);
    expect(await startRun(database.pool, wanted)).toMatchObject({
      outcome: 'over',
      run: { status: 'Cancelled' },
    });
  });

  test('is refused while another exports the interval, and only then', async () => {
    const key = await newKey();
    const first = await started(key, 0);
    expect(await startRun(database.pool, runOf(key, 0))).toMatchObject({
      outcome: 'busy',
      run: { id: first.id },
    });
    // Another interval, another export, a backfill of another part.
    await started(key, 1);
    await started(await newKey(), 0);
    await markRunEnded(database.pool, of(first), 'Failed', 'x');
    await started(key, 0);
    // Without a beginning: two of them are the same interval too.
    await started(key, 5, { start: null });
    expect((await startRun(database.pool, runOf(key, 5, { start: null }))).outcome).toBe('busy');
    await started(key, 5);
  });

  test('of ten that start at once for one interval, one does', async () => {
    for (let round = 0; round < 10; round += 1) {
      const key = await newKey();
      const results = await Promise.all(
        Array.from({ length: 10 }, () => startRun(database.pool, runOf(key, 0))),
      );
      expect(results.filter((one) => one.outcome === 'started')).toHaveLength(1);
      expect(new Set(results.map((one) => one.run.id)).size).toBe(1);
      // The same workflow's activity, tried twice at once: one run.
      const wanted = runOf(key, 1);
      const same = await Promise.all(Array.from({ length: 6 }, () => startRun(database.pool, wanted)));
      expect(same.map((one) => one.outcome)).toEqual(same.map(() => 'started'));
      expect(new Set(same.map((one) => one.run.id)).size).toBe(1);
      expect(new Set(same.map((one) => one.run.fence)).size).toBe(6);
    }
  });
});

describe('the fence', () => {
  test('of an attempt that was overtaken opens nothing', async () => {
    const { pool } = database;
    const run = await started(await newKey(), 0);
    const stale = (await beginAttempt(pool, of(run)))!;
    const current = (await beginAttempt(pool, of(run)))!;
    const before = await findRun(pool, of(run));
    for (const fence of [run.fence, stale.fence, current.fence + 1]) {
      expect(await holdsFence(pool, of(run), fence)).toBe(false);
      expect(await recordProgress(pool, of(run), fence, { records_completed: 1 })).toBe(false);
      expect(await recordTrouble(pool, of(run), fence, 'it waits')).toBe(false);
      expect(await completeRun(pool, of(run), fence, { records_completed: 1 })).toBeUndefined();
    }
    expect(await findRun(pool, of(run))).toEqual(before);
    expect(await recordTrouble(pool, of(run), current.fence, 'it waits')).toBe(true);
    expect(await findRun(pool, of(run))).toMatchObject({ latest_error: 'it waits' });
    expect(await holdsFence(pool, of(run), current.fence)).toBe(true);
    expect(await completeRun(pool, of(run), current.fence, { records_completed: 2 })).toMatchObject({
      status: 'Completed',
      records_completed: 2,
    });
  });

  test('is taken away by an end, whoever brings it', async () => {
    const { pool } = database;
    for (const status of [
      'Failed',
      'FailedRetryable',
      'FailedBilling',
      'Cancelled',
      'Terminated',
      'TimedOut',
    ] as const) {
      const run = await started(await newKey(), 0);
      const attempt = (await beginAttempt(pool, of(run)))!;
      expect(await markRunEnded(pool, of(run), status, 'too\0 bad')).toMatchObject({
        status,
        latest_error: 'too bad',
      });
      expect(await holdsFence(pool, of(run), attempt.fence)).toBe(false);
      expect(await completeRun(pool, of(run), attempt.fence, {})).toBeUndefined();
      expect(await beginAttempt(pool, of(run))).toBeUndefined();
      expect(await findRun(pool, of(run))).toMatchObject({ status });
    }
  });

  test('a run has one end', async () => {
    const { pool } = database;
    const done = await completed(await newKey(), 0);
    expect(await markRunEnded(pool, of(done), 'Failed', 'late')).toBeUndefined();
    expect(await completeRun(pool, of(done), done.fence, { records_completed: 99 })).toBeUndefined();
    expect(await findRun(pool, of(done))).toEqual({ ...done, waiting_since: null });
  });

  test('cancelled and completed at once: one of both, and counted once', async () => {
    const { pool } = database;
    const key = await newKey(3);
    let completions = 0;
    for (let n = 0; n < 30; n += 1) {
      const attempt = (await beginAttempt(pool, of(await started(key, n))))!;
      const ends = await Promise.all([
        completeRun(pool, of(attempt), attempt.fence, { records_completed: 7 }),
        markRunEnded(pool, of(attempt), 'Cancelled', null),
        markRunEnded(pool, of(attempt), 'Cancelled', null),
      ]);
      expect(ends.filter(Boolean)).toHaveLength(1);
      if (ends[0]) completions += 1;
    }
    const range = { ...key, after: '2026-01-01T00:00:00Z', before: '2100-01-01T00:00:00Z' };
    const totals = await metricTotals(pool, range);
    const count = (name: string) => totals.find((one) => one.name === name)?.count ?? 0;
    expect(count('succeeded')).toBe(completions);
    expect(count('canceled')).toBe(30 - completions);
    expect(count('rows_exported')).toBe(7 * completions);
  });

  test('grows over all runs', async () => {
    const fences: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      const run = await started(await newKey(), 0);
      fences.push(run.fence, (await beginAttempt(database.pool, of(run)))!.fence);
    }
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
  });
});

describe('lists', () => {
  test('pages show every run once, in both orders and directions', async () => {
    const { pool } = database;
    const key = await newKey(4);
    const all: RunRow[] = [];
    for (const n of [3, 0, 2, 1, 4])
      all.push(n % 2 ? await completed(key, n) : await ended(key, n, 'Failed'));
    all.push(await ended(key, 3, 'Cancelled'));
    const pages = async (query: Partial<Parameters<typeof listRuns>[1]>) => {
      const found: RunRow[] = [];
      for (let position: RunPosition | undefined; ; ) {
        const page: Awaited<ReturnType<typeof listRuns>> = await listRuns(pool, {
          ...{ ...key, ordering: 'created_at', ascending: false, limit: 2 },
          ...{ from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' },
          ...query,
          ...(position && { position }),
        });
        expect(page.rows.length).toBeLessThanOrEqual(2);
        found.push(...page.rows);
        if (!page.next) return found.map((one) => all.findIndex((other) => other.id === one.id));
        position = page.next;
      }
    };
    expect(await pages({})).toEqual([5, 4, 3, 2, 1, 0]);
    expect(await pages({ ascending: true })).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await pages({ ordering: 'data_interval_start', ascending: true })).toEqual([1, 3, 2, 0, 5, 4]);
    expect(await pages({ ordering: 'data_interval_start' })).toEqual([4, 5, 0, 2, 3, 1]);
    expect(await pages({ statuses: ['Completed'] })).toEqual([3, 0]);
    expect(await pages({ ordering: 'data_interval_start', from: hours(1), to: hours(3) })).toEqual([2, 3]);
    expect(await pages({ from: all[2]!.created_at, to: all[4]!.created_at })).toEqual([4, 3, 2]);
    expect(await pages({ to: hours(0) })).toEqual([]);
  });

  test('the latest of several exports', async () => {
    const [one, other, none] = [await newKey(5), await newKey(6), await newKey(6)];
    for (let n = 0; n < 4; n += 1) await completed(one, n);
    await completed(other, 0);
    const found = await latestRuns(database.pool, [one, other, none], 3);
    expect([...found.values()].map((runs) => runs.map((run) => run.data_interval_start))).toEqual([
      ['2026-01-01T03:00:00Z', '2026-01-01T02:00:00Z', '2026-01-01T01:00:00Z'],
      ['2026-01-01T00:00:00Z'],
      [],
    ]);
  });

  test('what became of intervals', async () => {
    const { pool } = database;
    const key = await newKey();
    await ended(key, 0, 'Failed');
    const done = await completed(key, 0, 42);
    await ended(key, 0, 'Cancelled');
    await ended(key, 1, 'Failed');
    const running = await started(key, 2);
    await completed(key, 9);
    const outcomes = await listIntervalOutcomes(pool, key, { after: hours(0), until: hours(3) });
    expect(outcomes).toMatchObject([
      { runs: 3, completed: true, active: false, status: 'Cancelled', records_completed: 42 },
      {
        runs: 1,
        completed: false,
        active: false,
        status: 'Failed',
        latest_error: 'it broke',
        records_completed: null,
      },
      { runs: 1, completed: false, active: true, status: 'Starting', run_id: running.id },
    ]);
    expect(await findCompletedRun(pool, key, { start: hours(0), end: hours(1) })).toEqual(done);
    expect(await findCompletedRun(pool, key, { start: hours(1), end: hours(2) })).toBeUndefined();
    expect((await activeRuns(pool, key)).map((run) => run.id)).toEqual([running.id]);
  });

  test('failures of late', async () => {
    const key = await newKey();
    for (let n = 0; n < 4; n += 1) await ended(key, n, 'Failed');
    await completed(key, 4);
    await ended(key, 5, 'Failed');
    await ended(key, 6, 'Cancelled');
    await started(key, 7);
    const failed = (window: number) => countRecentFailures(database.pool, key, window);
    expect([await failed(1), await failed(2), await failed(3), await failed(4), await failed(50)]).toEqual([
      ...[0, 1, 1, 2, 5],
    ]);
  });

  test('metrics by hour, day and week', async () => {
    const { pool } = database;
    const key = await newKey();
    await completed(key, 0, 5);
    await completed(key, 1, 6);
    await ended(key, 2, 'Failed');
    await completed(key, 3, 0);
    // As if some had ended on another day.
    await pool.query(
      `insert into batch_export_metrics values ($1, $2, '2026-01-07T10:00Z', 'rows', 'rows_exported', 100),
         ($1, $2, '2026-01-07T23:00Z', 'rows', 'rows_exported', 1), ($1, $2, '2026-01-08T00:00Z', 'rows', 'rows_exported', 10)`,
      [key.projectId, key.exportId],
    );
    const all = { ...key, after: '2026-01-01T00:00:00Z', before: '2100-01-01T00:00:00Z' };
    expect(await metricTotals(pool, all)).toEqual([
      { kind: 'failure', name: 'failed', count: 1 },
      { kind: 'rows', name: 'rows_exported', count: 122 },
      { kind: 'success', name: 'succeeded', count: 3 },
    ]);
    const january = { ...all, before: '2026-01-31T00:00:00Z' };
    const buckets = async (bucket: 'hour' | 'day' | 'week', query = january) =>
      (await listMetrics(pool, query, bucket)).map((one) => [one.bucket, one.count]);
    expect(await buckets('hour')).toEqual([
      ['2026-01-07T10:00:00Z', 100],
      ['2026-01-07T23:00:00Z', 1],
      ['2026-01-08T00:00:00Z', 10],
    ]);
    expect(await buckets('day')).toEqual([
      ['2026-01-07T00:00:00Z', 101],
      ['2026-01-08T00:00:00Z', 10],
    ]);
    expect(await buckets('week')).toEqual([['2026-01-05T00:00:00Z', 111]]);
    expect(await buckets('hour', { ...january, after: '2026-01-07T23:30:00Z' })).toHaveLength(2);
    expect(await metricTotals(pool, { ...all, kinds: ['success'] })).toHaveLength(1);
    expect(await metricTotals(pool, { ...all, names: ['failed', 'nope'] })).toHaveLength(1);
  });
});
