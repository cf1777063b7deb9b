import http, { type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type BatchExportRow, deleteBatchExport, setPaused } from '../../exports/rows/batch-exports.ts';
import { listChecks } from '../../exports/rows/checks.ts';
import { markRunEnded, type RunRow } from '../../exports/rows/runs.ts';
import { beginTrace } from '../../exports/rows/traces.ts';
import { removeLeftovers } from '../../exports/runs/traces.ts';
import type { Work } from '../../exports/runs/work.ts';
import { createExportTools, type ExportTools } from '../../worker/export-tools.ts';
import { RECONCILE_EXPORTS } from '../../workflows/names.ts';
import { asReader } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isManifest, type S3Bucket } from '../support/faulty-s3.ts';
import { type Program, programsForFile } from '../support/programs.ts';
import { exportWorldForFile, fillHour, hourly, logger, uuidsOf } from './support.ts';

const MINUTE = 60_000;
const programs = programsForFile();
const s3 = faultyS3ForFile();
const world = exportWorldForFile({ patience: { attempts: 1, delay: () => 10 }, worker: false });
let tools: ExportTools;
let uuids: string[];
beforeAll(async () => {
  uuids = (await fillHour(world.pool, 0, 20)).sort();
  const { pool, schedules } = world;
  tools = createExportTools(world.config, {
    ...{ pool, temporal: schedules.exports, logger },
    readerAddress: asReader(world.config.DATABASE_URL as string),
  });
});
afterAll(() => tools.close());

const work: Work = { signal: new AbortController().signal, beat: () => undefined };
/** What maintenance does, after so many minutes. */
const maintain = (minutes: number) =>
  removeLeftovers(tools.dependencies, work, Date.now() + minutes * MINUTE);

const isFile = ({ method, url = '' }: IncomingMessage) => method === 'PUT' && /\.jsonl/.test(url);

/** A request that a server has received all of, and acts on much later. */
interface Received {
  arrive(): Promise<void>;
}

/** Holds requests back that match, and answers nothing. */
function holdBack(matches: (request: IncomingMessage) => boolean): Received[] {
  const received: Received[] = [];
  s3.harm = (request, _response, forward) => {
    if (!matches(request)) {
      forward();
      return;
    }
    const { method, url, headers } = request;
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () =>
      received.push({
        arrive: () =>
          new Promise((resolve, reject) => {
            const options = { method, headers };
            const onward = http.request(s3.server.endpoint + url, options, (answer) => {
              answer.resume().on('end', resolve);
            });
            onward.on('error', reject).end(Buffer.concat(chunks));
          }),
      }),
    );
  };
  return received;
}

const end = async (row: BatchExportRow, status: 'Cancelled' | 'Failed' = 'Cancelled') => {
  for (const run of await world.runsOf(row)) {
    await markRunEnded(world.pool, { projectId: 1, runId: run.id }, status, null);
  }
};

const traces = async (row: BatchExportRow) =>
  (await world.pool.query('select * from batch_export_traces where batch_export_id = $1', [row.id])).rows;

const startWorker = async (): Promise<Program> => {
  const worker = programs.start('worker/main.ts', { ...world.variables, SLUICE_LOG_LEVEL: 'info' });
  await eventually(async () => worker.output().includes('the worker polls'));
  return worker;
};

const messages = async (row: BatchExportRow) => (await world.logsOf(row)).map((one) => one.message);

/** A run whose request is held back, and whose worker is killed. */
async function killed(matches: (request: IncomingMessage) => boolean) {
  const worker = await startWorker();
  const bucket = await s3.bucket();
  const received = holdBack(matches);
  const row = await world.create('S3', bucket.config);
  await world.start(row, hourly(0));
  await eventually(async () => received.length > 0);
  worker.kill('SIGKILL');
  await worker.exited;
  s3.harm = undefined;
  return { bucket, row, received };
}

const arriveAll = (received: Received[]) => Promise.all(received.map((one) => one.arrive()));

test('what arrives long after a run was cancelled and its worker killed is removed', async () => {
  const { bucket, row, received } = await killed(isFile);
  expect(await traces(row)).toHaveLength(1);
  // While the run is in progress, another attempt may be at work.
  await maintain(2);
  expect(await traces(row)).toMatchObject([{ over_since: null, looks: 0 }]);
  await end(row);
  await maintain(4);
  expect(await traces(row)).toMatchObject([{ looks: 1 }]);
  await arriveAll(received);
  expect(await bucket.keys()).toHaveLength(1);
  expect(await maintain(10)).toBe(1);
  expect(await bucket.keys()).toEqual([]);
  expect(await messages(row)).toContainEqual(expect.stringMatching(/^Removed lake\/.*\.jsonl, which/));
  for (const minutes of [30, 60, 90]) await maintain(minutes);
  expect(await traces(row)).toEqual([]);
});

test('also of an export that was deleted, whose secrets go with the last look', async () => {
  const { bucket, row, received } = await killed(isFile);
  await deleteBatchExport(world.pool, { projectId: 1, exportId: row.id });
  await end(row);
  await arriveAll(received);
  expect(await bucket.keys()).toHaveLength(1);
  await maintain(4);
  expect(await bucket.keys()).toEqual([]);
  for (const minutes of [5, 30, 60, 90]) await maintain(minutes);
  expect(await traces(row)).toEqual([]);
});

test('also a manifest, with the files that it names', async () => {
  const { bucket, row, received } = await killed(isManifest);
  await end(row);
  await arriveAll(received);
  expect(await bucket.keys()).toHaveLength(2);
  await maintain(4);
  expect(await bucket.keys()).toEqual([]);
});

test('what another run of the interval wrote since stays', async () => {
  const { bucket, row, received } = await killed(isFile);
  await end(row);
  const worker = await startWorker();
  const { result } = await world.run(row, hourly(0));
  expect(result.status).toBe('Completed');
  worker.kill('SIGTERM');
  await worker.exited;
  await arriveAll(received);
  for (const minutes of [4, 10, 30, 60, 90]) await maintain(minutes);
  expect(await traces(row)).toEqual([]);
  const keys = await bucket.keys();
  expect(keys).toHaveLength(2);
  expect(uuidsOf(await bucket.read(keys[0] as string), '').sort()).toEqual(uuids);
});

test('nobody begins to write while something is being removed', async () => {
  const { bucket, row } = await killed(isFile);
  await end(row);
  await world.pool.query(
    `update batch_export_traces set lease = gen_random_uuid(), leased_until = clock_timestamp() + interval '1 hour'
     where batch_export_id = $1`,
    [row.id],
  );
  const [run] = await world.runsOf(row);
  const next = { ...(run as RunRow), fence: (run as RunRow).fence + 1 };
  expect(await beginTrace(world.pool, row, next, 'key')).toBe(false);
  const worker = await startWorker();
  const from = s3.seen.length;
  const handle = await world.start(row, hourly(0));
  await eventually(async () =>
    s3.seen.slice(from).some(({ url }) => url.includes(bucket.config.bucket_name as string)),
  );
  await eventually(async () => (await world.runsOf(row)).at(-1)?.status === 'Running');
  expect(s3.seen.slice(from).filter(({ method }) => method === 'PUT')).toEqual([]);
  await world.pool.query('update batch_export_traces set leased_until = null where batch_export_id = $1', [
    row.id,
  ]);
  expect((await world.finished(handle)).result.status).toBe('Completed');
  worker.kill('SIGTERM');
  await worker.exited;
});

/** A run that is cancelled while its file is under way, and whose worker lives. */
async function cancelledOnTheWay(row: BatchExportRow, bucket: S3Bucket) {
  const before = (await world.runsOf(row)).length;
  let held: (() => void) | undefined;
  s3.harm = (request, _response, forward) => {
    if (isFile(request)) held = forward;
    else forward();
  };
  const handle = await world.start(row, hourly(0));
  await eventually(async () => held !== undefined);
  const runs = await world.runsOf(row);
  expect(runs).toHaveLength(before + 1);
  const runId = runs.at(-1)?.id as string;
  await markRunEnded(world.pool, { projectId: 1, runId }, 'Cancelled', null);
  s3.harm = undefined;
  held?.();
  expect((await handle.result()).status).toBe('Cancelled');
  return { runId, keys: await bucket.keys() };
}

test('a worker that lives removes it itself, as soon as the request has ended', async () => {
  const worker = await world.startWorker();
  const bucket = await s3.bucket();
  const row = await world.create('S3', bucket.config);
  const { keys } = await cancelledOnTheWay(row, bucket);
  expect(s3.seen.some(({ method, url }) => method === 'PUT' && /\.jsonl/.test(url))).toBe(true);
  expect(keys).toEqual([]);
  expect(await messages(row)).toContainEqual(expect.stringMatching(/^Removed /));
  await worker.stop();
});

test('a file of an earlier run that was replaced: the interval is damaged, and exported again', async () => {
  const worker = await world.startWorker();
  const bucket = await s3.bucket();
  const row = await world.create('S3', bucket.config);
  const key = { projectId: 1, exportId: row.id };
  const first = (await world.run(row, hourly(0))).run;
  await world.pool.query('update events set event = $1 where project_id = 1', ['changed']);
  const { runId, keys } = await cancelledOnTheWay(row, bucket);
  expect(keys).toHaveLength(2);
  const { start, end: until } = hourly(0);
  const checks = () => listChecks(world.pool, key, { after: start, until });
  const problem = `The run ${runId} replaced files of this interval, but did not complete it.`;
  expect(await checks()).toMatchObject([{ state: 'differs', run_id: first.id, problem }]);
  const reconcile = (id: string) =>
    world.client.workflow.execute(RECONCILE_EXPORTS, {
      workflowId: `reconcile-${row.id}-${id}`,
      taskQueue: world.config.SLUICE_TASK_QUEUE,
    });
  // Not while it is paused.
  await setPaused(world.pool, key, true);
  await reconcile('paused');
  expect(await world.runsOf(row)).toHaveLength(2);
  await setPaused(world.pool, key, false);
  await reconcile('once');
  const again = await eventually(async () => {
    const run = (await world.runsOf(row))[2];
    return run?.status === 'Completed' ? run : undefined;
  });
  const manifest = JSON.parse((await bucket.read((await bucket.keys())[1] as string)).toString());
  expect(manifest).toMatchObject({ run_id: again.id, rows: uuids.length });
  const report = await world.schedules.exports.verify(row, hourly(0), { waitMilliseconds: 120_000 });
  expect(report).toMatchObject({ verdict: 'same', problems: [] });
  await reconcile('twice');
  expect(await world.runsOf(row)).toHaveLength(3);
  await worker.stop();
});
