import { expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isManifest } from '../support/faulty-s3.ts';
import { exportWorldForFile, FIRST, fillHour, hourly, uuidsOf } from './support.ts';

const s3 = faultyS3ForFile();
const world = exportWorldForFile();
/** Up to some time within the first hour, as "run now" gives it. */
const part = (minutes: number) => ({
  start: hourly(0).start,
  end: new Date(FIRST + minutes * 60_000 + 1_234).toISOString(),
});

test('a part that is still on its way when the whole is there is taken back', async () => {
  const uuids = (await fillHour(world.pool, 0, 60)).sort();
  const bucket = await s3.bucket();
  const row = await world.create('S3', bucket.config);
  let release: (() => void) | undefined;
  s3.harm = (request, _response, forward) => {
    // The part has asked its fence, and its manifest is on its way.
    if (isManifest(request) && request.url?.includes('T00%3A10') && !release) release = forward;
    else forward();
  };
  const handle = await world.start(row, part(10));
  await eventually(async () => release !== undefined);

  const whole = await world.run(row, hourly(0));
  expect(whole.result).toMatchObject({ status: 'Completed', records: 60 });
  release?.();
  const { run } = await world.finished(handle);
  expect(run).toMatchObject({
    status: 'Cancelled',
    latest_error: `The run ${whole.run.id} has exported the rows of this part of its interval`,
  });
  await eventually(async () => (await bucket.keys()).length === 2);
  const keys = await bucket.keys();
  expect(uuidsOf(await bucket.read(keys[0] as string), keys[0] as string).sort()).toEqual(uuids);

  // One that was asked for before and begins only now has nothing to do.
  const late = await world.run(row, part(20));
  expect(late.result.status).toBe('Cancelled');
  expect(late.run.latest_error).toBe(`The run ${whole.run.id} has the rows of this part of its interval`);
  expect(await bucket.keys()).toEqual(keys);
});

test('a part is taken back from where it was written, also when the export writes elsewhere by now', async () => {
  s3.harm = undefined;
  await fillHour(world.pool, 5, 60);
  const bucket = await s3.bucket('before/');
  const row = await world.create('S3', bucket.config);
  const shift = (at: string) => new Date(Date.parse(at) + 5 * 3_600_000).toISOString();
  const early = { start: hourly(5).start, end: shift(part(10).end) };
  expect((await world.run(row, early)).result).toMatchObject({ status: 'Completed', records: 11 });
  await world.pool.query(`update batch_exports set config = config || '{"prefix": "after/"}' where id = $1`, [
    row.id,
  ]);
  expect((await world.run(row, hourly(5))).result.status).toBe('Completed');
  const keys = await bucket.keys();
  expect(keys).toHaveLength(2);
  expect(keys.every((key) => key.startsWith('after/'))).toBe(true);
});
