import { describe, expect, test } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { workOf } from '../../activities/work.ts';
import { deleteBatchExport } from '../../exports/rows/batch-exports.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import { beginAttempt, type RunRow, startRun } from '../../exports/rows/runs.ts';
import { type Attempt, OvertakenError, StalledError, watchAttempt } from '../../exports/runs/attempt.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { keyOf, newExport, runOf } from './rows/support.ts';

const database = databaseForFile();

/** An attempt at a run, until the work with it is done. */
async function withAttempt(
  work: (attempt: Attempt, run: RunRow) => Promise<void>,
  stall?: number,
  onHeartbeat: () => void = () => undefined,
): Promise<{ run: RunRow; heartbeats: unknown[] }> {
  const { pool } = database;
  const { run } = await startRun(pool, runOf(keyOf(await newExport(pool)), 0));
  const key = { projectId: 1, runId: run.id };
  const begun = (await beginAttempt(pool, key)) as RunRow;
  const environment = new MockActivityEnvironment();
  const heartbeats: unknown[] = [];
  environment.on('heartbeat', (details) => {
    heartbeats.push(details);
    onHeartbeat();
  });
  await environment.run(async () => {
    const attempt = watchAttempt(pool, key, begun.fence, workOf(Context.current()), {
      ...{ stall, every: 200 },
    });
    try {
      await work(attempt, begun);
    } finally {
      await attempt.close();
    }
  });
  return { run: begun, heartbeats };
}

const aborted = (signal: AbortSignal) =>
  new Promise<unknown>((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));

describe('an attempt', () => {
  test('says how far it is, to Temporal and in the row', async () => {
    const { run, heartbeats } = await withAttempt(async (attempt, begun) => {
      attempt.onProgress(1_000, 50_000);
      await eventually(async () => {
        const now = await findRun(database.pool, { projectId: 1, runId: begun.id });
        return now?.records_completed === 1_000 && now.bytes_exported === 50_000;
      });
    });
    expect(heartbeats).toContainEqual({ rows: 1_000, bytes: 50_000 });
    expect((await findRun(database.pool, { projectId: 1, runId: run.id }))?.status).toBe('Running');
  });

  test('lives on for Temporal while Postgres does not answer', async () => {
    let beats = 0;
    const { heartbeats } = await withAttempt(
      async (_attempt, { id }) => {
        const client = await database.pool.connect();
        await client.query('begin');
        await client.query('select from batch_export_runs where id = $1 for update', [id]);
        await eventually(async () => beats >= 3);
        await client.query('rollback');
        client.release();
      },
      undefined,
      () => {
        beats += 1;
      },
    );
    expect(heartbeats.length).toBeGreaterThanOrEqual(3);
  });

  test.each([
    ['that stands still says so with its place', 0, true],
    ['that moves does not', 3_600_000, false],
  ])('%s', async (_, stands, failed) => {
    const { pool } = database;
    const { run } = await startRun(pool, runOf(keyOf(await newExport(pool)), 0));
    const key = { projectId: 1, runId: run.id };
    const begun = (await beginAttempt(pool, key)) as RunRow;
    await pool.query(
      `insert into batch_export_places
         (project_id, id, batch_export_id, kind, lane, workflow_id, fence, leased_until, worker)
       values (1, $1, $2, 'run', 'exports', 'w', 7, now(), gen_random_uuid())`,
      [run.id, run.batch_export_id],
    );
    const work = { signal: new AbortController().signal, beat: () => undefined };
    const place = { fence: 7, attempts: 1, lease: 3_600_000 };
    const attempt = watchAttempt(pool, key, begun.fence, work, { every: 20, stands, place });
    const renewed = await eventually(async () => {
      const { rows } = await pool.query(
        'select failed from batch_export_places where id = $1 and leased_until > now()',
        [run.id],
      );
      return rows[0];
    });
    await attempt.close();
    expect(renewed).toEqual({ failed });
  });

  test('stops when another one has begun', async () => {
    await withAttempt(async (attempt, { id }) => {
      await attempt.fence();
      await beginAttempt(database.pool, { projectId: 1, runId: id });
      await expect(attempt.fence()).rejects.toThrow(OvertakenError);
      expect(await aborted(attempt.signal)).toBeInstanceOf(OvertakenError);
    });
  });

  test('stops when its export is deleted', async () => {
    await withAttempt(async (attempt, run) => {
      await deleteBatchExport(database.pool, { projectId: 1, exportId: run.batch_export_id });
      await expect(attempt.fence()).rejects.toThrow(OvertakenError);
      expect(await aborted(attempt.signal)).toBeInstanceOf(OvertakenError);
    });
  });

  test('stops when nothing moves', async () => {
    await withAttempt(async (attempt) => {
      expect(await aborted(attempt.signal)).toBeInstanceOf(StalledError);
    }, 10);
  });
});
