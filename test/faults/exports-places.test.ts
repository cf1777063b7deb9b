import { beforeAll, expect, jest, test } from '@jest/globals';
import { sumPlaces } from '../../exports/rows/place-workers.ts';
import { exportWorldForFile, fillHour, hourly } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, programsForFile } from '../support/programs.ts';
import { silentServerForFile } from '../support/silent-server.ts';

const programs = programsForFile();
const silent = silentServerForFile();
// Temporal misses a worker after a quarter of a minute, and its places are free after half a minute.
jest.setTimeout(400_000);
const world = exportWorldForFile({ worker: false, settings: () => ({ SLUICE_EXPORT_CONCURRENCY: '2' }) });

const startWorker = async (): Promise<Program> => {
  const worker = programs.start('worker/main.ts', world.variables);
  await eventually(async () => worker.output().includes('the worker polls'));
  return worker;
};
const laneNow = async () => (await sumPlaces(world.pool))[0];

beforeAll(() => fillHour(world.pool, 0, 3));

test('the place of a worker that is killed is free again, and what waited for it runs elsewhere', async () => {
  const first = await startWorker();
  const dead = await world.create('S3', silent.s3('dead'));
  const trying = await world.start(dead, hourly(0));
  await eventually(async () => silent.asked().length === 1);
  const fine = await world.create('File', { directory: 'fine' });
  const waiting = await world.start(fine, hourly(0));
  await eventually(async () => (await laneNow())?.waiting === 1);
  first.kill('SIGKILL');
  await first.exited;

  const second = await startWorker();
  // What the lost attempt had is free, also if the attempt that follows it has the place first.
  const completed = waiting.result();
  let isCompleted = false;
  void completed.finally(() => {
    isCompleted = true;
  });
  await eventually(async () => {
    silent.drop();
    return isCompleted;
  });
  expect(await completed).toMatchObject({ status: 'Completed', records: 3 });
  // The attempt that was lost is begun again, in a place of the worker that lives.
  const attempts = async () => {
    const { rows } = await world.pool.query(
      'select attempts from batch_export_places where batch_export_id = $1',
      [dead.id],
    );
    return rows[0]?.attempts;
  };
  await eventually(async () => (await attempts()) >= 2);
  await eventually(async () => (await laneNow())?.places === 1);
  await trying.cancel();
  silent.drop();
  expect((await world.finished(trying)).run.status).toBe('Cancelled');
  await eventually(async () => (await laneNow())?.taken === 0);
  second.kill('SIGTERM');
  expect(await second.exited).toEqual({ code: 0, signal: null });
});
