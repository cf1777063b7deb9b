import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { transaction } from '../../db/pool.ts';
import { type BackfillRow, findBackfill, insertBackfill } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, findBatchExportById } from '../../exports/rows/batch-exports.ts';
import { listLogs } from '../../exports/rows/logs.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import { beginAttempt, completeRun, holdsFence, type RunRow, startRun } from '../../exports/rows/runs.ts';
import { startedWorkflowId } from '../../exports/rules/workflow-ids.ts';
import { finishExportRun } from '../../exports/runs/finish-run.ts';
import { createExportMetrics } from '../../exports/runs/metrics.ts';
import type { ExportTemporal } from '../../exports/temporal.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { hours, keyOf, newExport, runOf } from './rows/support.ts';

const database = databaseForFile();
const logger = createLogger({ name: 'test', level: 'silent' });

/** What Temporal was asked for, in its order. */
let asked: string[];
beforeEach(() => {
  asked = [];
});

const recording = {
  cancelBackfill: async ({ workflow_id }) => {
    asked.push(`cancel the backfill ${workflow_id}`);
  },
  cancelRun: async ({ workflow_id }) => {
    asked.push(`cancel the run ${workflow_id}`);
  },
  sync: async (row) => {
    asked.push(`pause the schedule: ${row.paused}`);
    return true;
  },
} as Partial<ExportTemporal> as ExportTemporal;

/** Fails the run, as its workflow does. */
const finish = (run: RunRow, temporal: Partial<ExportTemporal> = {}) =>
  finishExportRun(
    {
      ...{ pool: database.pool, logger, metrics: createExportMetrics(undefined), pauseAfter: 1 },
      ...{ temporal: { ...recording, ...temporal }, noticeWebhook: 'https://hooks.example/' },
    },
    {
      exportId: run.batch_export_id,
      workflowRunId: run.workflow_run_id,
      status: 'Failed',
      error: 'No rights',
    },
  );

interface Busy {
  row: BatchExportRow;
  failing: RunRow;
  /** Of the schedule, and under way. */
  scheduled: RunRow;
  backfill: BackfillRow;
  /** Runs of the backfill: one is done, one has an attempt at work, one waits for its first. */
  done: RunRow;
  running: RunRow;
  starting: RunRow;
}

/** An export of which a run is about to fail while a backfill of it is under way. */
async function busyExport(): Promise<Busy> {
  const { pool } = database;
  const row = await newExport(pool);
  const key = keyOf(row);
  const begun = await transaction(pool, (client) =>
    insertBackfill(
      client,
      { ...key, workflowId: 'backfill', start: hours(2), end: hours(5), totalRuns: 3 },
      100,
    ),
  );
  if (begun.outcome !== 'started') throw new Error(begun.outcome);
  const { backfill } = begun;
  const start = async (n: number, backfillId: string | null) =>
    (await startRun(pool, runOf(key, n, { backfillId, workflowId: `hour ${n}` }))).run;
  const attempt = async ({ id }: RunRow) =>
    (await beginAttempt(pool, { projectId: row.project_id, runId: id })) as RunRow;
  const failing = await start(0, null);
  const scheduled = await attempt(await start(1, null));
  const done = await attempt(await start(2, backfill.id));
  await completeRun(pool, { projectId: row.project_id, runId: done.id }, done.fence, {});
  const running = await attempt(await start(3, backfill.id));
  return { row, failing, scheduled, backfill, done, running, starting: await start(4, backfill.id) };
}

const again = async ({ project_id: projectId, id: runId }: RunRow) =>
  (await findRun(database.pool, { projectId, runId })) as RunRow;
const statuses = async ({ row, backfill, failing, scheduled, done, running, starting }: Busy) => ({
  paused: (await findBatchExportById(database.pool, row.id))?.paused,
  backfill: (await findBackfill(database.pool, { projectId: row.project_id, backfillId: backfill.id }))
    ?.status,
  failing: (await again(failing)).status,
  scheduled: (await again(scheduled)).status,
  done: (await again(done)).status,
  running: (await again(running)).status,
  starting: (await again(starting)).status,
});
const PAUSED = {
  ...{ paused: true, backfill: 'Cancelled', failing: 'Failed', scheduled: 'Running' },
  ...{ done: 'Completed', running: 'Cancelled', starting: 'Cancelled' },
};
const logsOf = async ({ row }: Busy) =>
  (await listLogs(database.pool, { ...keyOf(row), limit: 100 })).reverse();
const entriesOf = async ({ row }: Busy) => {
  const { rows } = await database.pool.query('select * from activity_log where item_id = $1', [row.id]);
  return rows;
};
const REASON = 'Cancelled: the batch export was paused because its runs fail';
const FOLLOWED = [
  'cancel the backfill backfill',
  'cancel the run hour 3',
  'cancel the run hour 4',
  'pause the schedule: true',
];

describe('an export whose runs fail is paused', () => {
  test('and its backfills end with their runs; runs of the schedule go on', async () => {
    const busy = await busyExport();
    const { notices } = await finish(busy.failing);
    const row = await findBatchExportById(database.pool, busy.row.id);
    expect(notices).toMatchObject([
      { event: 'batch_export.failed' },
      { event: 'batch_export.paused', at: row?.last_paused_at },
    ]);
    expect(await statuses(busy)).toEqual(PAUSED);
    for (const run of [busy.running, busy.starting]) {
      const { latest_error, finished_at } = await again(run);
      expect([latest_error, finished_at]).toEqual([REASON, expect.any(String)]);
    }
    // The attempt at work may complete nothing any more.
    const key = { projectId: busy.row.project_id, runId: busy.running.id };
    expect(await holdsFence(database.pool, key, busy.running.fence)).toBe(false);
    expect((await logsOf(busy)).map(({ run_id, level, message }) => [run_id, level, message])).toEqual([
      [busy.failing.id, 'ERROR', 'Batch export failed with a non-recoverable error: No rights'],
      [busy.running.id, 'WARNING', 'Batch export was cancelled'],
      [busy.starting.id, 'WARNING', 'Batch export was cancelled'],
      [null, 'WARNING', 'Backfill was cancelled'],
      [busy.failing.id, 'ERROR', expect.stringMatching(/automatically paused .*: 1 of its last runs failed/)],
    ]);
    expect(asked).toEqual(FOLLOWED);
  });

  test('and not because of a run that somebody started by hand, to try something', async () => {
    const row = await newExport(database.pool);
    const startedBy = async (by: 'hand' | 'repair') =>
      (
        await startRun(
          database.pool,
          runOf(keyOf(row), 0, { workflowId: startedWorkflowId(row.id, by, randomUUID()) }),
        )
      ).run;
    const { notices } = await finish(await startedBy('hand'));
    expect(notices.map((one) => one.event)).toEqual(['batch_export.failed']);
    expect((await findBatchExportById(database.pool, row.id))?.paused).toBe(false);
    // One that Sluice started itself counts.
    await finish(await startedBy('repair'));
    expect((await findBatchExportById(database.pool, row.id))?.paused).toBe(true);
  });

  test('by the system, as the activity log says', async () => {
    const busy = await busyExport();
    await finish(busy.failing);
    expect(await entriesOf(busy)).toMatchObject([
      {
        ...{ actor: 'system', user_id: null, personal_api_key_id: null, project_id: busy.row.project_id },
        ...{ scope: 'BatchExport', activity: 'updated' },
        detail: {
          changes: [{ field: 'paused', before: false, after: true }],
          reason: '1 of its last runs failed',
        },
      },
    ]);
  });

  test('wholly or not at all', async () => {
    const busy = await busyExport();
    await database.pool.query('alter table activity_log rename to activity_log_elsewhere');
    await expect(finish(busy.failing)).rejects.toThrow('activity_log');
    await database.pool.query('alter table activity_log_elsewhere rename to activity_log');
    expect(await statuses(busy)).toEqual({
      ...{ paused: false, backfill: 'Starting', failing: 'Failed', scheduled: 'Running' },
      ...{ done: 'Completed', running: 'Running', starting: 'Starting' },
    });
    expect(asked).toEqual([]);
    expect((await finish(busy.failing)).notices).toHaveLength(2);
    expect(await statuses(busy)).toEqual(PAUSED);
  });

  test('also at Temporal when the worker dies right after the commit: the next try tells it', async () => {
    const busy = await busyExport();
    let died = false;
    const dies = () => {
      died = true;
      return new Promise<never>(() => undefined);
    };
    finish(busy.failing, { cancelBackfill: dies, sync: dies }).catch(() => undefined);
    await eventually(async () => died);
    expect(await statuses(busy)).toEqual(PAUSED);
    expect(asked).toEqual([]);
    const { notices } = await finish(busy.failing);
    expect(notices.map((one) => one.event)).toEqual(['batch_export.failed', 'batch_export.paused']);
    expect(asked).toEqual(FOLLOWED);
    expect(await entriesOf(busy)).toHaveLength(1);
    expect((await logsOf(busy)).filter((one) => one.message.includes('cancelled'))).toHaveLength(3);
  });

  test('also while Temporal fails', async () => {
    const busy = await busyExport();
    const away = () => Promise.reject(new Error('away'));
    const { notices } = await finish(busy.failing, { cancelBackfill: away });
    expect(notices).toHaveLength(2);
    expect(await statuses(busy)).toEqual(PAUSED);
    expect(asked).toEqual(FOLLOWED.slice(1));
  });
});
