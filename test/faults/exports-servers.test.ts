import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { createPool, type Pool } from '../../db/pool.ts';
import { setUpDatabase } from '../../db/wait.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { startTemporal, type Temporal } from '../../stack/temporal.ts';
import { exportWorldForFile, fillHour, fillHourInBulk, hour, hourly, uuidsOf } from '../exports/support.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isPart, type S3Bucket } from '../support/faulty-s3.ts';
import { reservePort } from '../support/ports.ts';
import { type Program, programsForFile } from '../support/programs.ts';
import { LONG } from '../support/rounds.ts';

const EVENTS = 60_000;
const dataDir = makeDataDir();
let postgres: Postgres | undefined;
let temporal: Temporal | undefined;
let pool: Pool | undefined;
afterAll(async () => {
  await pool?.end();
  await temporal?.stop();
  await postgres?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});
const programs = programsForFile();
const s3 = faultyS3ForFile();
const world = exportWorldForFile({
  worker: false,
  servers: async () => {
    const port = await reservePort();
    postgres = await startPostgres({ dataDir, cacheDir, port: await reservePort() });
    temporal = await startTemporal({ dataDir, cacheDir, port, uiPort: 0 });
    await setUpDatabase({ url: postgres.url });
    pool = createPool({ url: postgres.url, size: 4, name: 'test' });
    return { url: postgres.url, pool, address: `127.0.0.1:${port}`, namespace: 'default' };
  },
});
let uuids: string[];
let worker: Program;

beforeAll(async () => {
  await fillHourInBulk(world.pool, 0, EVENTS);
  const { rows } = await world.pool.query('select uuid from events order by uuid');
  uuids = rows.map((row) => row.uuid);
  worker = programs.start('worker/main.ts', world.variables);
  await eventually(async () => worker.output().includes('the worker polls'));
});

/** A run whose second part waits until it is let go of: by then a part of the rows is read, and not all of them. */
async function underWay(): Promise<{
  row: BatchExportRow;
  bucket: S3Bucket;
  handle: WorkflowHandle;
  go(): void;
}> {
  const gate = Promise.withResolvers<void>();
  let parts = 0;
  s3.harm = (request, _response, forward) => {
    if (!isPart(request)) return forward();
    parts += 1;
    if (parts === 1) forward();
    else void gate.promise.then(forward);
  };
  const bucket = await s3.bucket();
  const row = await world.create('S3', bucket.config);
  const handle = await world.start(row, hourly(0));
  await eventually(async () => parts >= 2);
  return { row, bucket, handle, go: () => gate.resolve() };
}

async function expectWhole(row: BatchExportRow, bucket: S3Bucket, handle: WorkflowHandle): Promise<void> {
  const { result, run } = await world.finished(handle);
  expect(result).toMatchObject({ status: 'Completed', records: EVENTS });
  expect(await world.runsOf(row)).toHaveLength(1);
  const [file, manifest, ...others] = await bucket.keys();
  expect([manifest, others]).toEqual([run.manifest_key, []]);
  expect(uuidsOf(await bucket.read(file as string), file as string).sort()).toEqual(uuids);
  await eventually(async () => (await bucket.openUploads()) === 0);
}

test.each<NodeJS.Signals>(LONG ? ['SIGINT', 'SIGKILL'] : ['SIGKILL'])(
  'Postgres ends by %s in the middle of a COPY, and comes back',
  async (signal) => {
    const { row, bucket, handle, go } = await underWay();
    const { port, pid, exited } = postgres as Postgres;
    process.kill(pid, signal);
    await exited;
    go();
    postgres = await startPostgres({ dataDir, cacheDir, port });
    await expectWhole(row, bucket, handle);
    const { events } = await handle.fetchHistory();
    const attempts = events?.map((event) => event.activityTaskStartedEventAttributes?.attempt ?? 0) ?? [];
    expect(Math.max(...attempts)).toBeGreaterThan(1);
    expect((await world.logsOf(row)).at(-1)?.message).toMatch(/finished successfully/);
  },
);

test('Temporal is killed in the middle of a run, and comes back', async () => {
  const { row, bucket, handle, go } = await underWay();
  const { port, pid, exited } = temporal as Temporal;
  process.kill(pid, 'SIGKILL');
  await exited;
  // Meanwhile the worker goes on.
  go();
  await eventually(async () => (await world.runsOf(row))[0]?.status === 'Completed');
  temporal = await startTemporal({ dataDir, cacheDir, port, uiPort: 0 });
  await expectWhole(row, bucket, handle);
});

/** Until the first firing of a 5-minute schedule can be over, with the most jitter. */
const untilFired = (now: number) => 300_000 - (now % 300_000) + 75_000;

(LONG ? test : test.skip)(
  'what a schedule would have run while Temporal was away is run when it is back, once',
  async () => {
    s3.harm = undefined;
    const row = await world.create('NoOp', {}, { interval: 'every 5 minutes' });
    await world.schedules.exports.sync(row);
    const schedule = world.client.schedule.getHandle(row.id);
    await eventually(async () => (await schedule.describe()).info.nextActionTimes.length > 0);
    const { port, pid, exited } = temporal as Temporal;
    process.kill(pid, 'SIGKILL');
    await exited;
    const gone = Date.now();
    await pause(untilFired(gone));
    temporal = await startTemporal({ dataDir, cacheDir, port, uiPort: 0 });
    const missed = Math.floor(gone / 300_000) * 300_000 + 300_000;
    const isDone = async () => {
      const runs = await world.runsOf(row);
      return runs.some((run) => Date.parse(run.data_interval_end) === missed && run.status === 'Completed');
    };
    // The server looks at what it missed when it looks at the schedule again, and the worker has to find it first.
    await eventually(isDone).catch(() => eventually(isDone));
    const ends = (await world.runsOf(row)).map((run) => run.data_interval_end);
    expect(new Set(ends).size).toBe(ends.length);
    await world.schedules.exports.remove(row.id);
  },
  600_000,
);

test('what schedules meant to run while no worker was there is run when one is, each interval once', async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await fillHour(world.pool, 100, 12 * 4);
  const row = await world.create('NoOp', {}, { interval: 'every 5 minutes' });
  await world.schedules.exports.sync(row);
  const handle = world.client.schedule.getHandle(row.id);
  const end = new Date(Date.parse(hour(101)) + 60_000);
  await handle.backfill({ start: new Date(Date.parse(hour(100)) + 1), end, overlap: 'ALLOW_ALL' });
  await eventually(async () => (await handle.describe()).info.recentActions.length >= 10);
  expect(await world.runsOf(row)).toEqual([]);
  worker = programs.start('worker/main.ts', world.variables);
  const runs = await eventually(async () => {
    const all = (await world.runsOf(row)).filter((run) => run.data_interval_end <= hour(102));
    return all.length === 12 && all.every((run) => run.status === 'Completed') && all;
  });
  const ends = runs.map((run) => Date.parse(run.data_interval_end)).sort();
  expect(ends).toEqual(Array.from({ length: 12 }, (_, n) => Date.parse(hour(100)) + (n + 1) * 300_000));
  expect(runs.map((run) => run.records_completed)).toEqual(Array(12).fill(4));
  await world.schedules.exports.remove(row.id);
  worker.kill('SIGTERM');
  expect((await worker.exited).code).toBe(0);
});
