import path from 'node:path';
import { expect, test } from '@jest/globals';
import { exportedUuids, exportWorldForFile, fillHour, hour, hourly } from './support.ts';

const world = exportWorldForFile();

test('an interval whose events are past their retention keeps what was exported of it', async () => {
  const uuids = (await fillHour(world.pool, 0, 20)).sort();
  const row = await world.create('File', { directory: 'kept' });
  expect((await world.run(row, hourly(0))).result).toMatchObject({ status: 'Completed', records: 20 });

  // As if the retention had been shortened, and maintenance had deleted the events of that week.
  await world.worker.stop();
  await world.startWorker({ SLUICE_EVENT_RETENTION_DAYS: '30' });
  await world.pool.query('truncate events');
  const { run } = await world.run(row, hourly(0));
  expect(run.status).toBe('Failed');
  expect(run.latest_error).toBe(
    'Events of this interval are past SLUICE_EVENT_RETENTION_DAYS (30), so it cannot be exported any more. What was exported of it before stays as it is.',
  );
  expect(exportedUuids(path.join(world.root, 'kept'))).toEqual(uuids);

  // Persons are not deleted with events; a run from the beginning has what there is.
  const persons = await world.create('File', { directory: 'persons' }, { model: 'persons' });
  expect((await world.run(persons, hourly(0))).result.status).toBe('Completed');
  const all = await world.create('File', { directory: 'all' });
  expect((await world.run(all, { start: null, end: hour(1) })).result.status).toBe('Completed');
});
