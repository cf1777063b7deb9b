import { afterEach, expect, test } from '@jest/globals';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile } from '../support/faulty-s3.ts';
import { exportWorldForFile, fillHour, hour, hourly } from './support.ts';

const s3 = faultyS3ForFile();
const world = exportWorldForFile({ settings: () => ({ SLUICE_EXPORT_CONCURRENCY: '2' }) });

const held: (() => void)[] = [];
function letAllGo(): void {
  s3.harm = undefined;
  for (const forward of held.splice(0)) forward();
}
// Also when the test fails: nothing could be stopped.
afterEach(letAllGo);

async function startBackfill(row: BatchExportRow, hours: number): Promise<string> {
  const backfill = await world.backfill(row, hour(0), hour(hours));
  await world.schedules.exports.startBackfill(row, backfill);
  return backfill.workflow_id;
}

test('what is over now is not held up by backfills, nor by verifications; neither by it', async () => {
  for (let n = 0; n < 4; n += 1) await fillHour(world.pool, n, 3);
  const bucket = await s3.bucket();
  const row = await world.create('S3', bucket.config);
  s3.harm = (_request, _response, forward) => held.push(forward);
  const backfill = await startBackfill(row, 3);
  const verification = world.schedules.exports.verify(row, hourly(3), { waitMilliseconds: 1_000 });
  // Of the backfill's three runs and the verification, one is under way, the others are in line.
  await eventually(async () => held.length > 0);
  expect(await verification).toBeUndefined();

  const files = await world.create('File', { directory: 'lake' });
  expect((await world.run(files, hourly(3))).result).toMatchObject({ status: 'Completed', records: 3 });

  letAllGo();
  expect(await world.client.workflow.getHandle(backfill).result()).toMatchObject({ completed: 3 });

  // The other way round: a run that stands still, and a backfill that does not.
  s3.harm = (_request, _response, forward) => held.push(forward);
  const standing = await world.start(row, hourly(3));
  await eventually(async () => held.length > 0);
  expect(await world.client.workflow.getHandle(await startBackfill(files, 3)).result()).toMatchObject({
    completed: 3,
  });
  letAllGo();
  expect((await world.finished(standing)).result.status).toBe('Completed');
});
