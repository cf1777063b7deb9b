import path from 'node:path';
import { expect, test } from '@jest/globals';
import { exportedUuids, exportWorldForFile, FIRST, filesIn, fillHour, HOUR, hourly } from './support.ts';

const world = exportWorldForFile();
/** Up to some time within the first hour, as "run now" gives it. */
const part = (minutes: number) => ({
  start: hourly(0).start,
  end: new Date(FIRST + minutes * 60_000 + 1_234).toISOString(),
});

test('files of a part of an interval are gone when those of the whole are there', async () => {
  const uuids = (await fillHour(world.pool, 0, 60)).sort();
  const later = await fillHour(world.pool, 1, 5);
  const row = await world.create('File', {
    directory: 'parts',
    prefix: '{hour}-{minute}/',
    compression: 'zstd',
  });
  const folder = path.join(world.root, 'parts');

  const first = await world.run(row, part(10));
  expect(first.result).toMatchObject({ status: 'Completed', records: 11 });
  const second = await world.run(row, part(20));
  expect(second.result).toMatchObject({ status: 'Completed', records: 21 });
  // The longer part has what the shorter one had.
  expect(exportedUuids(folder)).toHaveLength(21);
  expect(filesIn(folder)).toHaveLength(2);

  await world.run(row, hourly(1));
  const whole = await world.run(row, hourly(0));
  expect(whole.result).toMatchObject({ status: 'Completed', records: 60 });
  expect(exportedUuids(folder)).toEqual([...uuids, ...later].sort());
  expect(filesIn(folder)).toHaveLength(4);
  expect(
    (await world.logsOf(row)).filter((one) => one.message.startsWith('Removed the files of the part')),
  ).toHaveLength(2);
  const runs = await world.runsOf(row);
  expect(runs.map((one) => one.manifest_key !== null)).toEqual([false, false, true, true]);

  // Once more: nothing is left to be taken back.
  await world.run(row, hourly(0));
  expect(
    (await world.logsOf(row)).filter((one) => one.message.startsWith('Removed the files of the part')),
  ).toHaveLength(2);
  expect(exportedUuids(folder)).toHaveLength(65);
});

test('shorter intervals of before are no parts, and other exports keep theirs', async () => {
  const row = await world.create('File', { directory: 'days' });
  const other = await world.create('File', { directory: 'other' });
  const folder = path.join(world.root, 'days');
  await world.run(row, hourly(0));
  await world.run(other, part(5));
  // As if the export had days from now on.
  await world.run(row, { start: hourly(0).start, end: new Date(FIRST + 24 * HOUR).toISOString() });
  expect(filesIn(folder)).toHaveLength(4);
  expect(filesIn(path.join(world.root, 'other'))).toHaveLength(2);
});
