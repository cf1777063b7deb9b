import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, expect, test } from '@jest/globals';
import { exportWorldForFile, fillHourInBulk, hourly, uuidsOf } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, isComplete, isManifest, isPart, refuse } from '../support/faulty-s3.ts';

const EVENTS = 20_000;
const s3 = faultyS3ForFile();
const world = exportWorldForFile({
  patience: { attempts: 3, delay: () => 20 },
  rhythm: { pause: () => 200 },
});
let uuids: string[];

beforeAll(async () => {
  await fillHourInBulk(world.pool, 0, EVENTS);
  const { rows } = await world.pool.query('select uuid from events order by uuid');
  uuids = rows.map((row) => row.uuid);
});

/** A run to the end, whatever happens on the way; everything is there once. */
async function expectWhole(): Promise<void> {
  const bucket = await s3.bucket();
  const row = await world.create('S3', { ...bucket.config, max_file_size_mb: 8 });
  const { run } = await world.run(row, hourly(0));
  expect(run).toMatchObject({ status: 'Completed', records_completed: EVENTS, latest_error: null });
  s3.harm = undefined;
  const keys = await bucket.keys();
  expect(keys.length).toBeGreaterThan(2);
  const manifest = JSON.parse((await bucket.read(run.manifest_key as string)).toString());
  expect([...manifest.files.map((file: { key: string }) => file.key), run.manifest_key].sort()).toEqual(keys);
  const found: string[] = [];
  for (const { key } of manifest.files) found.push(...uuidsOf(await bucket.read(key), key));
  expect(found.sort()).toEqual(uuids);
  expect(await bucket.openUploads()).toBe(0);
}

/** Does harm to a part of the requests, more often than the client has patience for. */
function now(share: number, harm: (response: ServerResponse, forward: () => void) => void) {
  let left = 20;
  s3.harm = (_request, response, forward) => {
    if (left > 0 && Math.random() < share) {
      left -= 1;
      harm(response, forward);
    } else forward();
  };
}

test('S3 says that it cannot now', async () => {
  now(0.5, (response) => refuse(response, 503, 'SlowDown'));
  await expectWhole();
});

test('S3 is slow', async () => {
  s3.harm = (_request, _response, forward) => void pause(100 + Math.random() * 300).then(forward);
  await expectWhole();
});

test('S3 cuts connections', async () => {
  now(0.4, (response) => response.destroy());
  await expectWhole();
});

test('S3 does what it is asked, and its answers are cut off', async () => {
  now(0.3, (response, forward) => {
    const { socket } = response;
    response.writeHead = (() => {
      socket?.destroy();
      return response;
    }) as typeof response.writeHead;
    forward();
  });
  await expectWhole();
});

const denials: [string, (request: IncomingMessage) => boolean][] = [
  ['after the first part', isPart],
  ['when the upload is to be completed', isComplete],
  ['when the manifest is to be written', isManifest],
];
test.each(denials)('S3 denies %s: the run fails, and is whole when it is done again', async (_when, isIt) => {
  let passed = 0;
  s3.harm = (request, response, forward) => {
    if (isIt(request) && (isIt !== isPart || ++passed > 1)) {
      request.resume();
      refuse(response, 403, 'AccessDenied');
    } else forward();
  };
  const bucket = await s3.bucket();
  const row = await world.create('S3', bucket.config);
  const { run } = await world.run(row, hourly(0));
  expect(run.status).toBe('Failed');
  expect(run.latest_error).toMatch(/s3:PutObject/);
  expect((await bucket.keys()).filter((key) => key.endsWith('_manifest.json'))).toEqual([]);
  await eventually(async () => (await bucket.openUploads()) === 0);
  s3.harm = undefined;
  const again = await world.run(row, hourly(0));
  expect(again.run).toMatchObject({ status: 'Completed', records_completed: EVENTS });
  const [file, manifest, ...others] = await bucket.keys();
  expect(others).toEqual([]);
  expect(manifest).toBe(again.run.manifest_key);
  expect(uuidsOf(await bucket.read(file as string), file as string).sort()).toEqual(uuids);
});
