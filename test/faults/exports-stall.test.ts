import { setTimeout as pause } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import { exportWorldForFile, fillHourInBulk, hourly, uuidsOf } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isComplete } from '../support/faulty-s3.ts';
import { type Program, programsForFile } from '../support/programs.ts';
import { LONG } from '../support/rounds.ts';

// Temporal gives a worker that only stands still what it had asked for, and misses it after a quarter of a minute each time.
jest.setTimeout(400_000);
const EVENTS = 20_000;
const programs = programsForFile();
const s3 = faultyS3ForFile();
const world = exportWorldForFile({ worker: false });

const startWorker = async (): Promise<Program> => {
  const worker = programs.start('worker/main.ts', { ...world.variables, SLUICE_SHUTDOWN_SECONDS: '8' });
  await eventually(async () => worker.output().includes('the worker polls'));
  return worker;
};

(LONG ? test : test.skip)(
  'a worker that stands still, is taken for dead and wakes up late changes nothing',
  async () => {
    await fillHourInBulk(world.pool, 0, EVENTS);
    const first = await startWorker();
    const held: (() => void)[] = [];
    s3.harm = (request, _response, forward) => {
      // All parts are there, and nothing is missing but the word to put them together.
      if (isComplete(request) && held.length === 0) held.push(forward);
      else forward();
    };
    const bucket = await s3.bucket();
    const row = await world.create('S3', bucket.config);
    const handle = await world.start(row, hourly(0));
    await eventually(async () => held.length === 1);
    first.kill('SIGSTOP');
    const second = await startWorker();
    const { run } = await world.finished(handle);
    expect(run).toMatchObject({ status: 'Completed', records_completed: EVENTS });
    const keys = await bucket.keys();
    const [file, manifest] = await Promise.all(keys.map((key) => bucket.read(key)));
    expect(new Set(uuidsOf(file as Buffer, keys[0] as string)).size).toBe(EVENTS);

    first.kill('SIGCONT');
    held[0]?.();
    // Time for whatever it would do, and then for whatever it has begun.
    await pause(5_000);
    for (const worker of [first, second]) {
      worker.kill('SIGTERM');
      expect((await worker.exited).code).toBe(0);
    }
    expect(await world.runsOf(row)).toEqual([run]);
    expect(await bucket.keys()).toEqual(keys);
    expect(await Promise.all(keys.map((key) => bucket.read(key)))).toEqual([file, manifest]);
    expect(await bucket.openUploads()).toBe(0);
  },
);
