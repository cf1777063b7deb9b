import { beforeAll, expect, test } from '@jest/globals';
import { sumPlaces } from '../../exports/rows/worker-places.ts';
import { exportWorldForFile, fillHour, hourly } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, programsForFile } from '../support/programs.ts';
import { silentServerForFile } from '../support/silent-server.ts';

const programs = programsForFile();
const silent = silentServerForFile();
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
  expect((await world.finished(waiting)).result).toMatchObject({ status: 'Completed', records: 3 });
  // The attempt that was lost is begun again, in a place of the worker that lives.
  await eventually(async () => (silent.counts.get('dead') ?? 0) >= 2);
  await eventually(async () => (await laneNow())?.places === 1);
  const { rows } = await world.pool.query('select id, attempts from batch_export_places');
  const [run] = await world.runsOf(dead);
  expect(rows).toEqual([{ id: run?.id, attempts: 2 }]);
  await trying.cancel();
  silent.drop();
  expect((await world.finished(trying)).run.status).toBe('Cancelled');
  await eventually(async () => (await laneNow())?.taken === 0);
  second.kill('SIGTERM');
  expect(await second.exited).toEqual({ code: 0, signal: null });
});
