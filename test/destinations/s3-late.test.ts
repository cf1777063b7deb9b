import { createHash, randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { bindDestination } from '../../destinations/bind.ts';
import type { Surroundings } from '../../destinations/destination.ts';
import { createEgress } from '../../egress/egress.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile } from '../support/faulty-s3.ts';
import { deliver, failureOf, HASTE, lineOf, RUN } from './harness.ts';
import { sampleEvents } from './sample.ts';

const s3 = faultyS3ForFile();
let surroundings: Surroundings;
beforeAll(() => {
  const egress = createEgress({ allow: '127.0.0.1' });
  surroundings = { egress, exportRoot: '/nowhere', patience: HASTE };
});

test('a small file that is long under way does not arrive on top of what another attempt wrote', async () => {
  const bucket = await s3.bucket();
  const { config } = bucket;
  let release: (() => void) | undefined;
  s3.harm = (request, _response, forward) => {
    if (request.method === 'PUT' && /\.jsonl/.test(request.url ?? '') && !release) release = forward;
    else forward();
  };
  // The earlier attempt has asked its fence; what it read has changed since, as persons and filters do.
  const early = sampleEvents(5);
  const first = failureOf(deliver({ type: 'S3', config, surroundings, events: early }));
  await eventually(async () => release !== undefined);
  const late = sampleEvents(3).map((one) => ({ ...one, uuid: randomUUID() }));
  await deliver({ type: 'S3', config, surroundings, events: late });
  release?.();
  expect(await first).toMatchObject({ code: 'overtaken' });
  const [key] = await bucket.keys();
  expect((await bucket.read(key as string)).toString()).toBe(late.map(lineOf).join(''));
  const destination = bindDestination({ type: 'S3', config }, surroundings);
  if (destination.kind !== 'files') throw new Error(destination.kind);
  const { files } = await destination.verify(RUN);
  expect(files.map((one) => one.state)).toEqual(['same']);
});

test('of two strangers with one key, the second to publish a large file overwrites nothing', async () => {
  const bucket = await s3.bucket();
  const destination = bindDestination({ type: 'S3', config: bucket.config }, surroundings);
  if (destination.kind !== 'files') throw new Error(destination.kind);
  const size = 9 * 1024 * 1024;
  const writing = async (exportId: string, fill: string) => {
    const bytes = Buffer.alloc(size, fill);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const opened = await destination.open({ ...RUN, exportId });
    return {
      async write() {
        const file = await opened.openFile(0);
        await file.write(bytes);
        await file.close();
      },
      finish: () =>
        opened
          .finish({
            files: [{ index: 0, rows: 1, bytes: size, uncompressedBytes: size, sha256 }],
            rows: 1,
            hash: fill,
          })
          .finally(() => opened.abort())
          .finally(() => opened.close()),
    };
  };
  // Both have looked before either of them has written anything.
  const [anna, boris] = [await writing(randomUUID(), 'a'), await writing(randomUUID(), 'b')];
  await anna.write();
  await boris.write();
  const { files } = await anna.finish();
  expect(await failureOf(boris.finish())).toMatchObject({ code: 'overtaken' });
  const found = await bucket.read(files[0]?.key as string);
  expect([found.length, found.toString('utf8', 0, 1)]).toEqual([size, 'a']);
  expect(await bucket.openUploads()).toBe(0);
});
