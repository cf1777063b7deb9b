import { describe, expect, test } from '@jest/globals';
import { transaction } from '../../../db/pool.ts';
import {
  activeBackfills,
  type BackfillPosition,
  type BackfillRow,
  countActiveBackfills,
  findBackfill,
  insertBackfill,
  listBackfills,
  markBackfillEnded,
  progressOf,
  runBackfill,
} from '../../../exports/rows/backfills.ts';
import type { ExportKey } from '../../../exports/rows/batch-exports.ts';
import { beginAttempt, completeRun, markRunEnded, startRun } from '../../../exports/rows/runs.ts';
import { databaseForFile } from '../../support/database.ts';
import { hours, keyOf, newExport, runOf } from './support.ts';

const database = databaseForFile();
const newKey = async (projectId: number) => keyOf(await newExport(database.pool, { project_id: projectId }));

const insert = (
  key: ExportKey,
  start: string | null,
  end: string | null,
  most = 10,
  totalRuns: number | null = 4,
) =>
  transaction(database.pool, (client) =>
    insertBackfill(client, { ...key, workflowId: `${key.exportId}-Backfill`, start, end, totalRuns }, most),
  );

async function begun(key: ExportKey, start: string | null, end: string | null): Promise<BackfillRow> {
  const result = await insert(key, start, end);
  if (result.outcome !== 'started') throw new Error(result.outcome);
  return result.backfill;
}

const of = (row: BackfillRow) => ({ projectId: row.project_id, backfillId: row.id });

describe('backfills', () => {
  test('tell how far they are', async () => {
    const { pool } = database;
    const key = await newKey(1);
    const backfill = await begun(key, hours(0), hours(4));
    const now = async () => (await findBackfill(pool, of(backfill)))!;
    expect(backfill).toMatchObject({
      status: 'Starting',
      start_at: '2026-01-01T00:00:00Z',
      total_runs: 4,
      finished_runs: 0,
    });
    expect(progressOf(backfill)).toEqual({ total_runs: 4, finished_runs: 0, progress: 0 });
    expect(
      await runBackfill(pool, of(backfill), { adjustedStart: hours(1), totalRuns: 3, totalRecords: 100 }),
    ).toBe(true);
    expect(await now()).toMatchObject({
      status: 'Running',
      adjusted_start_at: '2026-01-01T01:00:00Z',
      total_records_count: 100,
    });

    const run = async (n: number, end: 'Completed' | 'Failed' | 'Cancelled' | null) => {
      const { run } = await startRun(pool, runOf(key, n, { backfillId: backfill.id }));
      const attempt = (await beginAttempt(pool, { projectId: 1, runId: run.id }))!;
      if (end === 'Completed')
        await completeRun(pool, { projectId: 1, runId: run.id }, attempt.fence, { records_completed: 5 });
      else if (end) await markRunEnded(pool, { projectId: 1, runId: run.id }, end, null);
    };
    await run(1, 'Completed');
    // Again, and one that was given up: neither counts.
    await run(1, 'Completed');
    await run(2, 'Cancelled');
    expect(progressOf(await now())).toEqual({ total_runs: 3, finished_runs: 1, progress: 0.3 });
    await run(2, 'Failed');
    await run(3, null);
    expect(progressOf(await now())).toEqual({ total_runs: 3, finished_runs: 2, progress: 0.7 });
    expect(await markBackfillEnded(pool, of(backfill), 'Completed')).toBe(true);
    expect(await now()).toMatchObject({
      status: 'Completed',
      total_records_count: 5,
      finished_at: expect.any(String),
    });
    expect(progressOf(await now())).toEqual({ total_runs: 3, finished_runs: 3, progress: 1 });
    // It has one end.
    expect(await markBackfillEnded(pool, of(backfill), 'Failed', 'late')).toBe(false);
    expect(await runBackfill(pool, of(backfill))).toBe(false);
    expect(await now()).toMatchObject({ status: 'Completed', latest_error: null });
  });

  test('say nothing of their progress where there is nothing to say', async () => {
    const row = { ...(await begun(await newKey(2), null, hours(1))), total_runs: 5 };
    expect(progressOf(row)).toBeNull();
    expect(progressOf({ ...row, adjusted_start_at: hours(0) })).toEqual({
      total_runs: 5,
      finished_runs: 0,
      progress: 0,
    });
    expect(progressOf({ ...row, start_at: hours(0), total_runs: null })).toBeNull();
    for (const status of ['Failed', 'Cancelled', 'TimedOut'] as const) {
      expect(progressOf({ ...row, start_at: hours(0), status })).toBeNull();
    }
    expect(progressOf({ ...row, start_at: hours(0), finished_runs: 9 })).toEqual({
      total_runs: 9,
      finished_runs: 9,
      progress: 1,
    });
  });

  test('no more than so many at a time for a project, however many are asked for at once', async () => {
    const [one, other] = [await newKey(3), await newKey(3)];
    const asked = Array.from({ length: 12 }, (_, n) =>
      insert(n % 2 ? one : other, hours(n), hours(n + 1), 5),
    );
    const outcomes = (await Promise.all(asked)).map((result) => result.outcome);
    expect(outcomes.filter((outcome) => outcome === 'started')).toHaveLength(5);
    expect(outcomes.filter((outcome) => outcome === 'too_many')).toHaveLength(7);
    expect(await countActiveBackfills(database.pool, 3)).toBe(5);
    expect(await insert(one, hours(50), hours(51), 5)).toEqual({ outcome: 'too_many', active: 5 });
    // Those that came first may all be of the same export.
    const running = await Promise.all([one, other].map((key) => activeBackfills(database.pool, key)));
    await markBackfillEnded(database.pool, of(running.flat()[0]!), 'Cancelled');
    expect((await insert(one, hours(50), hours(51), 5)).outcome).toBe('started');
    expect((await insert(await newKey(4), hours(50), hours(51), 5)).outcome).toBe('started');
  });

  test('the same range is not filled twice at once', async () => {
    const key = await newKey(5);
    for (const [start, end] of [
      [hours(0), hours(1)],
      [null, hours(1)],
      [hours(0), null],
      [null, null],
    ] as const) {
      const results = await Promise.all(Array.from({ length: 4 }, () => insert(key, start, end)));
      expect(results.map((one) => one.outcome).sort()).toEqual(['exists', 'exists', 'exists', 'started']);
      const ids = results.map((one) => (one.outcome === 'too_many' ? '' : one.backfill.id));
      expect(new Set(ids).size).toBe(1);
    }
  });

  test('pages show each once', async () => {
    const key = await newKey(6);
    const all: BackfillRow[] = [];
    for (const [start, end] of [
      [2, 3],
      [0, 5],
      [null, 4],
      [1, 2],
      [0, 4],
    ] as const) {
      all.push(await begun(key, start === null ? null : hours(start), hours(end)));
    }
    const pages = async (ordering: 'created_at' | 'start_at', ascending: boolean) => {
      const found: number[] = [];
      for (let position: BackfillPosition | undefined; ; ) {
        const page: Awaited<ReturnType<typeof listBackfills>> = await listBackfills(database.pool, {
          ...{ ...key, ordering, ascending, limit: 2 },
          ...(position && { position }),
        });
        found.push(...page.rows.map((row) => all.findIndex((one) => one.id === row.id)));
        if (!page.next) return found;
        position = page.next;
      }
    };
    expect(await pages('created_at', false)).toEqual([4, 3, 2, 1, 0]);
    expect(await pages('created_at', true)).toEqual([0, 1, 2, 3, 4]);
    expect(await pages('start_at', true)).toEqual([2, 1, 4, 3, 0]);
    expect(await pages('start_at', false)).toEqual([0, 3, 4, 1, 2]);
  });
});
