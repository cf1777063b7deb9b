import { beforeAll, expect, test } from '@jest/globals';
import { ActivityCancellationDetails } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createHeavyActivities } from '../../activities/index.ts';
import { setPaused } from '../../exports/rows/batch-exports.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import { markRunEnded, startRun } from '../../exports/rows/runs.ts';
import type { RunDependencies } from '../../exports/runs/dependencies.ts';
import { finishExportRun } from '../../exports/runs/finish-run.ts';
import { createExportTools } from '../../worker/export-tools.ts';
import { asReader } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { exportWorldForFile, fillHour, hour, hourly, logger } from './support.ts';

const world = exportWorldForFile();
let deps: RunDependencies;
let closeTools: () => Promise<void>;
beforeAll(async () => {
  await fillHour(world.pool, 0, 5);
});

/** What the activities of a worker have, for calling one of them by hand. */
async function withTools(work: () => Promise<void>): Promise<void> {
  const shared = {
    pool: world.pool,
    readerAddress: asReader(world.config.DATABASE_URL as string),
    temporal: world.schedules.exports,
    logger,
  };
  const tools = createExportTools(world.config, shared);
  closeTools = tools.close;
  deps = { ...tools.dependencies, pauseAfter: 1, noticeWebhook: 'http://127.0.0.1:1/' };
  try {
    await work();
  } finally {
    await closeTools();
  }
}

test('a failure of any length ends the run, or is tried again', async () => {
  // The source refuses a value, and has a lot to say about it: Temporal would not take that much.
  await world.pool.query(
    `create or replace function hq.ends_with(value text, ending text) returns boolean language plpgsql as $$
     begin raise exception '%', repeat('too long ', 700000) using errcode = '22023'; end $$`,
  );
  const row = await world.create(
    'File',
    { directory: 'long' },
    { filters: [{ type: 'hogql', key: "endsWith(event, 'x')" }] },
  );
  const { run } = await world.run(row, hourly(0));
  expect(run.status).toBe('Failed');
  expect(run.latest_error).toMatch(/^Postgres refuses the query .*too long/);
  expect(run.latest_error?.length).toBeLessThanOrEqual(10_000);
});

test.each([
  [
    'is longer than Postgres takes',
    'repeat(repeat(event, 900000), 900000)',
    /A value would have more than \d+ bytes/,
  ],
  [
    'makes more of an event than a value may have',
    "repeat(repeat('x', 1000), 140000)",
    /A value would have more than \d+ bytes/,
  ],
  ['has more arguments', `concat(${Array(101).fill('event').join()})`, /more than 100 arguments/],
])('a query that %s ends the run: it is not tried for ever', async (_what, column, said) => {
  const row = await world.create('NoOp', {}, { hogql_query: `select ${column} as x from events` });
  const { run } = await world.run(row, hourly(0));
  expect([run.status, run.latest_error]).toEqual(['Failed', expect.stringMatching(said)]);
});

test('an attempt that runs out of time says so', async () => {
  await withTools(async () => {
    const row = await world.create('File', { directory: 'slow' });
    const key = { projectId: 1, exportId: row.id };
    const { run } = await startRun(world.pool, {
      ...{ ...key, ...hourly(0), workflowId: 'slow', workflowRunId: `slow ${row.id}` },
    });
    const client = await world.pool.connect();
    await client.query('begin; lock table events in access exclusive mode');
    const environment = new MockActivityEnvironment();
    const attempt = environment.run(createHeavyActivities({ exports: deps }, 'exports').exportInterval, {
      exportId: row.id,
      runId: run.id,
    });
    attempt.catch(() => undefined);
    const now = () => findRun(world.pool, { projectId: 1, runId: run.id });
    await eventually(async () => (await now())?.status === 'Running');
    environment.cancel('TIMED_OUT', new ActivityCancellationDetails({ timedOut: true }));
    await expect(attempt).rejects.toThrow();
    await client.query('rollback');
    client.release();
    expect(await now()).toMatchObject({
      status: 'Running',
      latest_error: 'It took longer than one attempt may take',
    });
    expect((await world.logsOf(row)).at(-1)?.message).toBe(
      'Attempt 1 failed and will be repeated: It took longer than one attempt may take',
    );
    await markRunEnded(world.pool, { projectId: 1, runId: run.id }, 'Cancelled', null);
  });
});

test('what follows from a pause is done, also when the worker dies right after it', async () => {
  await withTools(async () => {
    const row = await world.create('File', { directory: 'paused' });
    const key = { projectId: 1, exportId: row.id };
    const workflowRunId = `paused ${row.id}`;
    const { run } = await startRun(world.pool, {
      ...{ ...key, ...hourly(0), workflowId: 'paused', workflowRunId },
    });
    const finish = () =>
      finishExportRun(deps, { exportId: row.id, workflowRunId, status: 'Failed', error: 'No rights' });
    const events = async () => (await finish()).notices.map((one) => one.event);
    expect(await events()).toEqual(['batch_export.failed', 'batch_export.paused']);
    // It died before it came to this, and Temporal tries the activity again.
    const backfill = await world.backfill(row, hour(0), hour(9));
    expect(await events()).toEqual(['batch_export.failed', 'batch_export.paused']);
    const { rows } = await world.pool.query('select status from batch_export_backfills where id = $1', [
      backfill.id,
    ]);
    expect(rows).toEqual([{ status: 'Cancelled' }]);
    expect((await world.logsOf(row)).filter((one) => /automatically paused/.test(one.message))).toHaveLength(
      1,
    );

    // Paused by somebody: that is no news.
    await setPaused(world.pool, key, false);
    await setPaused(world.pool, key, true);
    await world.pool.query('delete from batch_export_logs where run_id = $1', [run.id]);
    expect(await events()).toEqual(['batch_export.failed']);
    await world.schedules.exports.remove(row.id);
  });
});

test('what is wrong with our own tables is not the operator’s: the run waits', async () => {
  const row = await world.create('File', { directory: 'ours' });
  // As in the moments of an upgrade, or of a restore.
  await world.pool.query('alter table event_horizon rename to event_horizon_elsewhere');
  const handle = await world.start(row, hourly(0));
  await eventually(async () => (await world.runsOf(row))[0]?.latest_error);
  await world.pool.query('alter table event_horizon_elsewhere rename to event_horizon');
  expect((await world.finished(handle)).run).toMatchObject({ status: 'Completed', records_completed: 5 });
});
