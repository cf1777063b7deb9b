import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { completeRun } from '../../exports/rows/runs.ts';
import { exportWorldForFile, fillHourInBulk, hourly, uuidsOf } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isComplete, isManifest, isPart, type S3Bucket } from '../support/faulty-s3.ts';
import { type Program, programsForFile } from '../support/programs.ts';

const EVENTS = 20_000;
const programs = programsForFile();
const s3 = faultyS3ForFile();
const world = exportWorldForFile({ worker: false });
let uuids: string[];

const startWorker = async (): Promise<Program> => {
  const worker = programs.start('worker/main.ts', {
    ...world.variables,
    SLUICE_LOG_LEVEL: 'info',
    SLUICE_SHUTDOWN_SECONDS: '8',
    // What is held back here is held back for as long as the test needs.
    SLUICE_DESTINATION_SECONDS: '600',
  });
  await eventually(async () => worker.output().includes('the worker polls'));
  return worker;
};

beforeAll(async () => {
  await fillHourInBulk(world.pool, 0, EVENTS);
  const { rows } = await world.pool.query('select uuid from events order by uuid');
  uuids = rows.map((row) => row.uuid);
});
const held: ServerResponse[] = [];
afterAll(() => {
  for (const one of held) one.destroy();
});

interface Victim {
  row: BatchExportRow;
  bucket: S3Bucket;
  handle: WorkflowHandle;
}

async function victim(
  onBucket: (bucket: S3Bucket, row: BatchExportRow) => void = () => undefined,
): Promise<Victim> {
  const bucket = await s3.bucket();
  const row = await world.create('S3', bucket.config);
  onBucket(bucket, row);
  return { bucket, row, handle: await world.start(row, hourly(0)) };
}

/** One copy of everything, one run that says so, nothing left over. */
async function expectWhole({ row, bucket, handle }: Victim): Promise<void> {
  const { result, run } = await world.finished(handle);
  expect(result).toMatchObject({ status: 'Completed', records: EVENTS });
  expect(await world.runsOf(row)).toHaveLength(1);
  expect(run).toMatchObject({ records_completed: EVENTS, records_failed: 0 });
  const keys = await bucket.keys();
  expect(keys).toEqual([expect.stringMatching(/\.jsonl$/), expect.stringMatching(/_manifest\.json$/)]);
  expect(uuidsOf(await bucket.read(keys[0] as string), keys[0] as string).sort()).toEqual(uuids);
  const manifest = JSON.parse((await bucket.read(keys[1] as string)).toString());
  expect(manifest).toMatchObject({ run_id: run.id, rows: EVENTS, hash: run.content_hash });
  expect(await bucket.openUploads()).toBe(0);
}

test('workers that are killed at every step of a run, and another that goes on', async () => {
  const first = await startWorker();
  const victims = new Map<string, Victim>();
  const buckets = new Map<string, S3Bucket>();
  const reached = new Set<string>();
  const hold = (step: string, response: ServerResponse) => {
    reached.add(step);
    held.push(response);
  };
  const parts = new Map<string, number>();
  const client = await world.pool.connect();
  let lastBucket: S3Bucket | undefined;
  let lastExport = '';
  const isOf = (bucket: S3Bucket | undefined, url = '') => url.startsWith(`/${bucket?.config.bucket_name}/`);
  s3.harm = (request, response, forward) => {
    if (isManifest(request) && isOf(lastBucket, request.url) && !reached.has('before it is written down')) {
      reached.add('before it is written down');
      const begin = 'begin; set local idle_in_transaction_session_timeout = 0;';
      const lock = `select from batch_export_runs where batch_export_id = '${lastExport}' for update`;
      void client.query(`${begin} ${lock}`).then(forward);
      return;
    }
    const step = [...buckets].find(([, bucket]) => isOf(bucket, request.url))?.[0];
    if (!step || reached.has(step)) return forward();
    if (isPart(request)) {
      const part = (parts.get(step) ?? 0) + 1;
      parts.set(step, part);
      if (step === 'in the middle of a part' && part === 2) return hold(step, response);
    }
    if (isComplete(request) && step === 'before the upload is completed') return hold(step, response);
    if (isManifest(request) && step.startsWith('before the manifest')) return hold(step, response);
    forward();
  };
  for (const step of [
    'in the middle of a part',
    'before the upload is completed',
    'before the manifest is there',
    'before the manifest, and completed',
  ]) {
    victims.set(step, await victim((bucket) => buckets.set(step, bucket)));
  }
  // Its rows are where they belong, and nobody has written that down: the row is locked when it comes to it.
  const last = await victim((bucket, row) => {
    lastBucket = bucket;
    lastExport = row.id;
  });
  await eventually(async () => {
    const done = (await last.bucket.keys()).some((key) => key.endsWith('_manifest.json'));
    return done && reached.size === victims.size + 1;
  });

  const second = await startWorker();
  first.kill('SIGKILL');
  await first.exited;
  await client.query('rollback');
  client.release();
  // What a worker would have written just before it died, had it got that far: it could not tell Temporal.
  const told = victims.get('before the manifest, and completed') as Victim;
  victims.delete('before the manifest, and completed');
  const [run] = await world.runsOf(told.row);
  const totals = { records_completed: 7, records_total_count: 7, records_failed: 0 };
  await completeRun(world.pool, { projectId: 1, runId: run?.id as string }, run?.fence as number, totals);
  for (const one of [...victims.values(), last]) await expectWhole(one);
  expect((await world.finished(told.handle)).result).toEqual({
    runId: run?.id,
    status: 'Completed',
    records: 7,
  });
  // Nothing was done again.
  expect((await told.bucket.keys()).filter((key) => key.endsWith('_manifest.json'))).toEqual([]);
  second.kill('SIGTERM');
  expect(await second.exited).toEqual({ code: 0, signal: null });
});

test('a worker that is told to stop hands its runs over at once', async () => {
  const first = await startWorker();
  let stuck = false;
  s3.harm = (request, response, forward) => {
    if (!isPart(request) || stuck) return forward();
    stuck = true;
    held.push(response);
  };
  const one = await victim();
  await eventually(async () => stuck);
  first.kill('SIGTERM');
  expect(await first.exited).toEqual({ code: 0, signal: null });
  const second = await startWorker();
  await expectWhole(one);
  const { events = [] } = await one.handle.fetchHistory();
  const started = events?.filter((event) => event.activityTaskStartedEventAttributes).at(-1);
  expect(started?.activityTaskStartedEventAttributes?.lastFailure?.message).toMatch(/worker was stopped/i);
  second.kill('SIGTERM');
  await second.exited;
});
