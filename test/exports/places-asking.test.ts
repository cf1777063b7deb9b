import { afterEach, beforeAll, expect, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { sumPlaces } from '../../exports/rows/place-workers.ts';
import { eventually } from '../support/eventually.ts';
import { silentServerForFile } from '../support/silent-server.ts';
import { exportWorldForFile, fillHour, hourly } from './support.ts';

// Long enough that no activity stops asking by itself.
const silent = silentServerForFile();
const world = exportWorldForFile({
  settings: () => ({ SLUICE_EXPORT_CONCURRENCY: '2' }),
  patience: { attempts: 1, delay: () => 0 },
  rhythm: { places: { ask: 600_000 } },
});
/** How many events the history of a run has that did not have to wait. */
const USUAL = 19;

beforeAll(() => fillHour(world.pool, 0, 3));

const dying: WorkflowHandle[] = [];
afterEach(async () => {
  await Promise.all(dying.map((handle) => handle.cancel()));
  await eventually(async () => {
    silent.drop();
    return (await sumPlaces(world.pool))[0]?.taken === 0;
  });
  await Promise.all(dying.splice(0).map((handle) => handle.result().catch(() => undefined)));
});

async function dead(bucket: string): Promise<void> {
  dying.push(await world.start(await world.create('S3', silent.s3(bucket)), hourly(0)));
  await eventually(async () => silent.asked().includes(bucket));
}
async function asks(directory: string): Promise<WorkflowHandle> {
  const handle = await world.start(await world.create('File', { directory }), hourly(0));
  await eventually(async () => (await sumPlaces(world.pool))[0]?.waiting === 1);
  return handle;
}
const eventsOf = async (handle: WorkflowHandle) => (await handle.fetchHistory()).events;

test('a run that gets a place within moments costs its workflow nothing', async () => {
  await dead('one');
  const handle = await asks('one');
  silent.drop();
  expect(await handle.result()).toMatchObject({ status: 'Completed', records: 3 });
  expect(await eventsOf(handle)).toHaveLength(USUAL);
});

test('neither if the place is that of another worker', async () => {
  const second = await world.startWorker();
  await dead('two');
  await dead('three');
  const handle = await asks('two');
  silent.drop('three');
  expect(await handle.result()).toMatchObject({ status: 'Completed', records: 3 });
  expect(await eventsOf(handle)).toHaveLength(USUAL);
  await second.stop();
});

test('a run that asks can be cancelled at once', async () => {
  await dead('four');
  const handle = await asks('four');
  await handle.cancel();
  expect((await world.finished(handle)).run.status).toBe('Cancelled');
  expect((await sumPlaces(world.pool))[0]).toMatchObject({ taken: 1, waiting: 0 });
});
