// Dead exports hold every place of the worker, and none of them ever fails. Exports that have had a place before do not
// wait for them.
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { sumPlaces } from '../../exports/rows/place-workers.ts';
import { eventually } from '../support/eventually.ts';
import { silentServerForFile } from '../support/silent-server.ts';
import { exportWorldForFile, fillHour, hour, hourly } from './support.ts';

// Where others wait, they wait for ever.
jest.setTimeout(300_000);
const silent = silentServerForFile();
const world = exportWorldForFile({
  settings: () => ({ SLUICE_EXPORT_CONCURRENCY: '3' }),
  limits: { answer: 3_600_000, idle: 3_600_000 },
  rhythm: { stands: 100, places: { announce: 1_000, ask: 100 } },
});
const PLACES = { exports: 2, backfills: 1 };
const dead: WorkflowHandle[] = [];
const others: WorkflowHandle[] = [];

beforeAll(() => fillHour(world.pool, 0, 3));
afterAll(async () => {
  const all = [...dead, ...others];
  await Promise.all(all.map((handle) => handle.cancel().catch(() => undefined)));
  silent.drop();
  await Promise.all(all.map((handle) => handle.result().catch(() => undefined)));
});

test('runs, backfills and verifications of others go on meanwhile', async () => {
  const fine = await world.create('File', { directory: 'fine' });
  expect((await world.run(fine, hourly(0))).run.status).toBe('Completed');
  for (let n = 0; n < PLACES.exports; n += 1)
    dead.push(await world.start(await world.create('S3', silent.s3(`dead-${n}`)), hourly(0)));
  const past = await world.create('S3', silent.s3('dead-past'));
  const backfill = await world.backfill(past, hour(0), hour(1));
  await world.schedules.exports.startBackfill(past, backfill);
  dead.push(world.client.workflow.getHandle(backfill.workflow_id));
  const places = PLACES.exports + PLACES.backfills;
  await eventually(async () => silent.asked().length === places);

  const beside = await world.start(fine, hourly(1));
  others.push(beside);
  await eventually(async () => {
    const runs = await world.runsOf(fine);
    return runs.length === 2 && runs.every((run) => run.status === 'Completed');
  });
  expect((await world.finished(beside)).run.status).toBe('Completed');
  const filled = await world.backfill(fine, hour(0), hour(2));
  await world.schedules.exports.startBackfill(fine, filled);
  const result = await world.client.workflow.getHandle(filled.workflow_id).result();
  expect(result).toMatchObject({ status: 'Completed', completed: 2 });
  const report = await world.schedules.exports.verify(fine, hourly(0), { waitMilliseconds: 120_000 });
  expect(report).toMatchObject({ verdict: 'same' });
  // All that time no place was free, and nobody was sent away.
  expect(silent.asked()).toHaveLength(places);
  expect([...silent.counts.values()]).toEqual([1, 1, 1]);
  await eventually(async () =>
    (await sumPlaces(world.pool)).every((lane) => lane.taken === PLACES[lane.lane]),
  );
});
