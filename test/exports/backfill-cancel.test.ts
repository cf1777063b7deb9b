import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isPart } from '../support/faulty-s3.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { programsForFile } from '../support/programs.ts';
import { exportedUuids, exportWorldForFile, filesIn, fillHourInBulk, hour, uuidsOf } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const HOURS = 6;
const EVENTS = 10_000;
const programs = programsForFile();
const s3 = faultyS3ForFile();
// What is read of events comes by way of this, which can stand still.
let proxy: Awaited<ReturnType<typeof startPostgresProxy>> | undefined;
let gate: PromiseWithResolvers<void> | undefined;
afterAll(async () => {
  gate?.resolve();
  await proxy?.close();
});
// What is held back here is held back for as long as the test needs.
const world = exportWorldForFile({ worker: false, limits: { answer: 600_000, idle: 600_000 } });
const operator = operatorForFile(programs, world);
let uuids: string[];

beforeAll(async () => {
  const url = new URL(world.variables.DATABASE_URL as string);
  proxy = await startPostgresProxy({
    behind: Number(url.port),
    hold: (bytes) => (bytes > 4_000_000 ? gate?.promise : undefined),
  });
  url.port = String(proxy.port);
  await world.startWorker({ DATABASE_URL: url.href });
  for (let n = 0; n < HOURS; n += 1) await fillHourInBulk(world.pool, n, EVENTS);
  const { rows } = await world.pool.query('select uuid from events order by uuid');
  uuids = rows.map((row) => row.uuid);
});

const range = { start_at: hour(0), end_at: hour(HOURS) };
const runsOf = async (at: string): Promise<{ status: string; data_interval_end: string }[]> => {
  const { results } = await operator.ask('GET', `${at}runs/?ordering=created_at`);
  return results;
};
const statusOf = async (at: string, id: string): Promise<string> =>
  (await operator.ask('GET', `${at}backfills/${id}/`)).status;

/** Cancels a backfill whose first hour is exported and whose next three are under way; answers its runs. */
async function cancelled(at: string, isUnderWay: () => Promise<boolean>) {
  const { backfill_id: id } = await operator.ask('POST', `${at}backfills/`, range);
  await eventually(async () => (await runsOf(at)).length === 4 && (await isUnderWay()));
  expect(await operator.ask('POST', `${at}backfills/${id}/cancel/`)).toEqual({ cancelled: true });
  expect(await statusOf(at, id)).toBe('Cancelled');
  const { workflow_id: workflowId } = await operator.ask('GET', `${at}backfills/${id}/`);
  const handle = world.client.workflow.getHandle(workflowId);
  await eventually(async () => (await handle.describe()).status.name !== 'RUNNING');
  expect((await handle.describe()).status.name).toBe('CANCELLED');
  // Its runs are over before it is, so no further one can begin.
  const runs = await runsOf(at);
  expect(runs.map(({ status }) => status).sort()).toEqual([
    'Cancelled',
    'Cancelled',
    'Cancelled',
    'Completed',
  ]);
  await expect(operator.ask('POST', `${at}backfills/${id}/cancel/`)).rejects.toThrow(
    "Cannot cancel a backfill that is in 'Cancelled' status",
  );
}

/** The same backfill, from the beginning. */
async function again(at: string): Promise<void> {
  const { backfill_id: id } = await operator.ask('POST', `${at}backfills/`, range);
  await eventually(async () => (await statusOf(at, id)) === 'Completed');
  const completed = (await runsOf(at)).filter(({ status }) => status === 'Completed');
  expect(new Set(completed.map((run) => run.data_interval_end)).size).toBe(HOURS);
}

test('a backfill to S3 that is cancelled in the middle of uploads leaves none of them', async () => {
  const bucket = await s3.bucket();
  const at = await operator.create('S3', bucket.config);
  let firstHour = 0;
  s3.harm = (request, _response, forward) => {
    const isFirst = decodeURIComponent(request.url ?? '').includes(`/2026-03-02T00:00:00`);
    if (isFirst && isPart(request)) firstHour += 1;
    // The first part of each later hour arrives, the others never do.
    if (isFirst || !isPart(request) || /partNumber=1&/.test(`${request.url}&`)) forward();
  };
  await cancelled(at, async () => {
    const keys = await bucket.keys();
    return keys.some((key) => key.endsWith('_manifest.json')) && (await bucket.openUploads()) === 3;
  });
  expect(firstHour).toBeGreaterThan(1);
  expect(await bucket.openUploads()).toBe(0);
  const keys = await bucket.keys();
  expect(keys).toHaveLength(2);
  for (const key of keys) expect(key).toContain('2026-03-02T00:00:00');

  s3.harm = undefined;
  await again(at);
  expect(await bucket.openUploads()).toBe(0);
  const files = (await bucket.keys()).filter((key) => key.endsWith('.jsonl'));
  expect(files).toHaveLength(HOURS);
  const found = await Promise.all(files.map(async (key) => uuidsOf(await bucket.read(key), key)));
  expect(found.flat().sort()).toEqual(uuids);
});

test('a backfill to files that is cancelled in the middle of them leaves none of them', async () => {
  const at = await operator.create('File', { directory: 'lake' });
  const folder = path.join(world.root, '@projects', String(operator.tenant.projectId), 'lake');
  const partial = () => filesIn(folder).filter((file) => file.includes('.partial'));
  // The first hour goes through before anything stands still.
  const { backfill_id: first } = await operator.ask('POST', `${at}backfills/`, { ...range, end_at: hour(1) });
  await eventually(async () => (await statusOf(at, first)) === 'Completed');
  const whole = filesIn(folder);
  expect(whole).toHaveLength(2);

  gate = Promise.withResolvers();
  const { backfill_id: id } = await operator.ask('POST', `${at}backfills/`, { ...range, start_at: hour(1) });
  await eventually(async () => partial().length === 3);
  await operator.ask('POST', `${at}backfills/${id}/cancel/`);
  const { workflow_id: workflowId } = await operator.ask('GET', `${at}backfills/${id}/`);
  const handle = world.client.workflow.getHandle(workflowId);
  await eventually(async () => (await handle.describe()).status.name === 'CANCELLED');
  const runs = await runsOf(at);
  expect(runs.map(({ status }) => status)).toEqual(['Completed', 'Cancelled', 'Cancelled', 'Cancelled']);
  expect(filesIn(folder)).toEqual(whole);

  gate.resolve();
  gate = undefined;
  await again(at);
  expect(filesIn(folder)).toHaveLength(2 * HOURS);
  expect(exportedUuids(folder)).toEqual(uuids);
});
