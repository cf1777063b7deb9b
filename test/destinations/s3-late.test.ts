import { randomUUID } from 'node:crypto';
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
