import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { LOCKS } from '../../db/locks.ts';
import { type BatchExportRow, deleteBatchExport, setPaused } from '../../exports/rows/batch-exports.ts';
import { markRunEnded } from '../../exports/rows/runs.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isPart, refuse, type S3Bucket } from '../support/faulty-s3.ts';
import { exportWorldForFile, fillHour, fillHourInBulk, hourly } from './support.ts';

const s3 = faultyS3ForFile();
const world = exportWorldForFile({ patience: { attempts: 2, delay: () => 10 } });

/** Holds something of Postgres until it is told to let go. */
async function holding(sql: string): Promise<() => Promise<void>> {
  const client = await world.pool.connect();
  await client.query('begin');
  await client.query(sql);
  return async () => {
    await client.query('commit');
    client.release();
  };
}

const runOf = async (row: BatchExportRow) => (await world.runsOf(row))[0];

/** Starts a run, waits until `there`, cancels it, and looks at what is left of it. */
async function cancelWhen(there: (row: BatchExportRow) => Promise<boolean>, bucket: S3Bucket, n: number) {
  const row = await world.create('S3', bucket.config);
  const handle = await world.start(row, hourly(n));
  await eventually(() => there(row));
  await handle.cancel();
  const { result, run } = await world.finished(handle);
  expect(result.status).toBe('Cancelled');
  expect(run.status).toBe('Cancelled');
  expect((await world.logsOf(row)).at(-1)?.message).toBe('Batch export was cancelled');
  expect(await bucket.keys()).toEqual([]);
  expect(await bucket.openUploads()).toBe(0);
  return row;
}

const isWaiting = async (query: string) => {
  const { rows } = await world.pool.query(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ilike $1`,
    [query],
  );
  return rows.length > 0;
};

describe('a run that is cancelled leaves nothing behind', () => {
  test('while writers hold the end of its interval open', async () => {
    const release = await holding(`select pg_advisory_xact_lock_shared(${LOCKS.horizon})`);
    const now = Date.now();
    const row = await world.create('S3', (await s3.bucket()).config);
    const interval = { start: new Date(now - 60_000).toISOString(), end: new Date(now).toISOString() };
    const handle = await world.start(row, interval);
    await eventually(async () => (await runOf(row))?.status === 'Running');
    await handle.cancel();
    expect((await world.finished(handle)).run.status).toBe('Cancelled');
    await release();
  });

  test('while Postgres looks for its rows', async () => {
    await fillHour(world.pool, 0, 10);
    const release = await holding('lock table events in access exclusive mode');
    await cancelWhen(() => isWaiting('%copy (%'), await s3.bucket(), 0);
    await release();
  });

  test('while a part is on its way', async () => {
    await fillHourInBulk(world.pool, 1, 30_000);
    let parts = 0;
    s3.harm = (request, _response, forward) => {
      if (!isPart(request)) forward();
      // The first arrives, the others never do.
      else if (++parts === 1) forward();
    };
    const bucket = await s3.bucket();
    await cancelWhen(async () => parts >= 2 && (await bucket.openUploads()) === 1, bucket, 1);
  });

  test('while it waits for another attempt', async () => {
    s3.harm = (_request, response) => refuse(response, 503, 'SlowDown');
    const bucket = await s3.bucket();
    const row = await world.create('S3', bucket.config);
    const handle = await world.start(row, hourly(0));
    const troubled = await eventually(async () => {
      const run = await runOf(row);
      return run?.latest_error ? run : undefined;
    });
    expect(troubled.status).toBe('Running');
    expect(troubled.latest_error).toMatch(/503|SlowDown|slow down/i);
    expect((await world.logsOf(row)).at(-1)?.message).toMatch(/Attempt \d+ failed and will be repeated: S3/);
    await handle.cancel();
    expect((await world.finished(handle)).run.status).toBe('Cancelled');
    s3.harm = undefined;
    expect(await bucket.keys()).toEqual([]);
  });

  test('when the API has ended it already', async () => {
    s3.harm = (request, _response, forward) => {
      if (!isPart(request)) forward();
    };
    const bucket = await s3.bucket();
    const row = await world.create('S3', bucket.config);
    const handle = await world.start(row, hourly(1));
    await eventually(async () => (await bucket.openUploads()) === 1);
    const run = await runOf(row);
    // As the API does it; here the request to Temporal gets lost.
    await markRunEnded(world.pool, { projectId: 1, runId: run?.id as string }, 'Cancelled', null);
    expect(await handle.result()).toMatchObject({ status: 'Cancelled' });
    expect(await bucket.openUploads()).toBe(0);
    expect(await bucket.keys()).toEqual([]);
  });

  test('while the bucket does not say what is there already', async () => {
    let asked = 0;
    s3.harm = (request, _response, forward) => {
      if (request.method === 'GET' && request.url?.includes('_manifest.json')) asked += 1;
      else forward();
    };
    const bucket = await s3.bucket();
    const row = await world.create('S3', bucket.config);
    const handle = await world.start(row, hourly(2));
    await eventually(async () => asked === 1);
    await markRunEnded(
      world.pool,
      { projectId: 1, runId: (await runOf(row))?.id as string },
      'Cancelled',
      null,
    );
    await handle.cancel();
    expect((await world.finished(handle)).result.status).toBe('Cancelled');
    expect(asked).toBe(1);
  });

  test('before anybody began with it', async () => {
    await world.worker.stop();
    const bucket = await s3.bucket();
    const row = await world.create('S3', bucket.config);
    const handle = await world.start(row, hourly(0));
    await handle.cancel();
    world.worker = await world.startWorker();
    await expect(handle.result()).rejects.toThrow(WorkflowFailedError);
    expect((await handle.describe()).status.name).toBe('CANCELLED');
    for (const run of await world.runsOf(row)) expect(run.status).toBe('Cancelled');
    expect(await bucket.keys()).toEqual([]);
  });
});

describe('while a run is under way', () => {
  const held = async () => {
    const release = await holding('lock table events in access exclusive mode');
    const bucket = await s3.bucket();
    const row = await world.create('S3', bucket.config);
    await world.schedules.exports.sync(row);
    const handle = await world.start(row, hourly(0));
    await eventually(() => isWaiting('%copy (%'));
    return { release, bucket, row, handle };
  };

  test('pausing the export lets it end', async () => {
    const { release, bucket, row, handle } = await held();
    await setPaused(world.pool, { projectId: 1, exportId: row.id }, true);
    await world.schedules.exports.sync({ ...row, paused: true });
    await release();
    expect((await world.finished(handle)).run).toMatchObject({ status: 'Completed', records_completed: 10 });
    expect(await bucket.keys()).toHaveLength(2);
    await world.schedules.exports.remove(row.id);
  });

  test('deleting the export stops it, also where nobody cancels it', async () => {
    const { release, bucket, row, handle } = await held();
    await deleteBatchExport(world.pool, { projectId: 1, exportId: row.id });
    await world.schedules.exports.sync({ ...row, deleted_at: new Date().toISOString() });
    await release();
    expect(await handle.result()).toMatchObject({ status: 'Cancelled' });
    expect(await bucket.keys()).toEqual([]);
    expect((await runOf(row))?.status).toBe('Cancelled');
  });
});
