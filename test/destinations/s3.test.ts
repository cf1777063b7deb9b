import type { IncomingMessage } from 'node:http';
import {
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { bindDestination } from '../../destinations/bind.ts';
import type { RawConfig } from '../../destinations/config.ts';
import type { Surroundings } from '../../destinations/destination.ts';
import { IN_FLIGHT_BYTES, PartBuffers, partSize } from '../../destinations/parts.ts';
import { MOST_PARTS } from '../../destinations/s3/upload.ts';
import { runTestStep } from '../../destinations/settings.ts';
import { createEgress } from '../../egress/egress.ts';
import { eventually } from '../support/eventually.ts';
import type { Harm } from '../support/fault-proxy.ts';
import { faultyS3ForFile, isComplete, isManifest, isPart, refuse } from '../support/faulty-s3.ts';
import { deliver, failureOf, HASTE, RUN, textOf } from './harness.ts';
import { largeFile, writeLargeFile } from './large-file.ts';
import { sampleEvents } from './sample.ts';

const MEBIBYTE = 1024 * 1024;
const s3 = faultyS3ForFile();
let config: RawConfig;
let surroundings: Surroundings;
let bucket = '';

beforeAll(async () => {
  surroundings = { egress: createEgress({ allow: '127.0.0.1' }), exportRoot: '/nowhere', patience: HASTE };
});
afterAll(async () => {
  await surroundings.egress.close();
});
beforeEach(async () => {
  ({ config } = await s3.bucket('p/'));
  bucket = config.bucket_name as string;
});

const openUploads = async () =>
  (await s3.server.client.send(new ListMultipartUploadsCommand({ Bucket: bucket }))).Uploads ?? [];
const objects = async () =>
  ((await s3.server.client.send(new ListObjectsV2Command({ Bucket: bucket }))).Contents ?? []).map(
    ({ Key }) => Key,
  );

function destination() {
  const bound = bindDestination({ type: 'S3', config }, surroundings);
  if (bound.kind !== 'files') throw new Error('S3 takes files');
  return bound;
}

const writeLarge = (bytes: number, onChunk?: (written: number) => void, signal?: AbortSignal) =>
  writeLargeFile(destination(), bytes, onChunk, signal);

async function stored(): Promise<Buffer> {
  const key = destination().keys(RUN).file(0);
  const { Body } = await s3.server.client.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
}

describe('large files', () => {
  const BYTES = 20 * MEBIBYTE + 12_345;

  test('go in parts, each with its checksum, and are the same afterwards', async () => {
    await writeLarge(BYTES);
    expect((await stored()).equals(largeFile(BYTES))).toBe(true);
    const parts = s3.seen.filter(({ method, url }) => method === 'PUT' && url.includes('partNumber='));
    expect(parts.map(({ headers }) => Number(headers['content-length'])).sort((a, b) => a - b)).toEqual([
      BYTES - 16 * MEBIBYTE,
      8 * MEBIBYTE,
      8 * MEBIBYTE,
    ]);
    for (const { headers } of parts) expect(headers['x-amz-checksum-crc32']).toMatch(/^[\w+/]{6}==$/);
    const create = s3.seen.find(({ method, url }) => method === 'POST' && /[?&]uploads/.test(url));
    expect(create?.headers['x-amz-checksum-algorithm']).toBe('CRC32');
    expect(await openUploads()).toEqual([]);
  });

  test('exactly whole parts', async () => {
    await writeLarge(16 * MEBIBYTE);
    expect((await stored()).equals(largeFile(16 * MEBIBYTE))).toBe(true);
  });

  test('hold no more than a few parts in memory, however slow the server', async () => {
    let waiting: (() => void)[] = [];
    s3.harm = (request, _response, forward) => {
      if (isPart(request)) waiting.push(forward);
      else forward();
    };
    let written = 0;
    const work = writeLarge(60 * MEBIBYTE, (bytes) => {
      written = bytes;
    });
    const most = IN_FLIGHT_BYTES + partSize(0) + MEBIBYTE;
    await eventually(async () => waiting.length === IN_FLIGHT_BYTES / partSize(0));
    // It filled another part and waits: nothing moves until a part is taken.
    await eventually(async () => written > IN_FLIGHT_BYTES + partSize(0) - MEBIBYTE);
    expect(waiting.length).toBe(IN_FLIGHT_BYTES / partSize(0));
    expect(written).toBeLessThanOrEqual(most);
    s3.harm = undefined;
    for (const go of waiting) go();
    waiting = [];
    await work;
    expect((await stored()).equals(largeFile(60 * MEBIBYTE))).toBe(true);
  });

  test('10,000 parts hold 351 GiB, and memory for parts is used again', () => {
    let sum = 0;
    for (let index = 0; index < MOST_PARTS; index += 1) sum += partSize(index);
    expect(sum / 1024 ** 3).toBeGreaterThan(351);
    const buffers = new PartBuffers();
    const one = buffers.take(partSize(0));
    buffers.give(one);
    expect(buffers.take(partSize(0))).toBe(one);
  });

  test('cancelled while parts are on their way, nothing is left', async () => {
    const controller = new AbortController();
    const reason = new Error('cancelled');
    s3.harm = (request, _response, forward) => {
      if (isPart(request)) controller.abort(reason);
      forward();
    };
    const failed = await failureOf(writeLarge(60 * MEBIBYTE, undefined, controller.signal));
    expect(failed).toBe(reason);
    expect(await openUploads()).toEqual([]);
    expect(await objects()).toEqual([]);
  });

  test('cancelled while the server hangs, it ends, and nothing is left', async () => {
    const controller = new AbortController();
    s3.harm = (request, _response, forward) => {
      if (isPart(request)) controller.abort(new Error('cancelled'));
      else forward();
    };
    const usual = surroundings;
    surroundings = { ...usual, limits: { idle: 200 } };
    const failed = await failureOf(writeLarge(60 * MEBIBYTE, undefined, controller.signal));
    surroundings = usual;
    expect(failed.message).toBe('cancelled');
    expect(await openUploads()).toEqual([]);
  });

  test('what a killed worker left is removed by the next attempt, and nothing else', async () => {
    const { keys } = destination();
    const mine = keys(RUN).file(0);
    for (const Key of [mine, 'p/of-somebody-else']) {
      const { UploadId } = await s3.server.client.send(
        new CreateMultipartUploadCommand({ Bucket: bucket, Key }),
      );
      await s3.server.client.send(
        new UploadPartCommand({ Bucket: bucket, Key, UploadId, PartNumber: 1, Body: 'left' }),
      );
    }
    await writeLarge(100);
    expect((await openUploads()).map(({ Key }) => Key)).toEqual(['p/of-somebody-else']);
  });

  test('an upload whose beginning was answered too late is removed', async () => {
    let lost = 0;
    s3.harm = (request, response, forward) => {
      if (request.method === 'POST' && /[?&]uploads/.test(request.url ?? '') && lost === 0) {
        lost += 1;
        const answer = response.writeHead.bind(response);
        // The server begins the upload; the client never hears of it.
        response.writeHead = ((...parts: Parameters<typeof answer>) => {
          response.destroy();
          return answer(...parts);
        }) as typeof answer;
      }
      forward();
    };
    expect(await failureOf(writeLarge(BYTES))).toMatchObject({ code: 'interrupted' });
    expect(lost).toBe(1);
    expect(await openUploads()).toEqual([]);
    await writeLarge(BYTES);
    expect((await stored()).equals(largeFile(BYTES))).toBe(true);
  });

  test('completed, but the answer got lost: it is recognised as done', async () => {
    let lost = 0;
    s3.harm = (request, response, forward) => {
      if (isComplete(request)) {
        lost += 1;
        if (lost === 1)
          response.writeHead = (() => response.destroy()) as unknown as typeof response.writeHead;
        else {
          refuse(response, 404, 'NoSuchUpload');
          return;
        }
      }
      forward();
    };
    await writeLarge(BYTES);
    expect(lost).toBe(2);
    expect((await stored()).equals(largeFile(BYTES))).toBe(true);
  });

  test('aborted by somebody else: overtaken, not done', async () => {
    s3.harm = (request, response, forward) => {
      if (isComplete(request)) refuse(response, 404, 'NoSuchUpload');
      else forward();
    };
    expect(await failureOf(writeLarge(BYTES))).toMatchObject({ code: 'overtaken' });
    expect(await openUploads()).toEqual([]);
    expect(await objects()).toEqual([]);
  });
});

describe('a server that fails', () => {
  const send = () => deliver({ type: 'S3', config, surroundings, events: sampleEvents(10) });

  /** Does harm to the first requests that it is meant for. */
  function harmFirst(times: number, meant: (request: IncomingMessage) => boolean, how: Harm): void {
    let left = times;
    s3.harm = (request, response, forward) => {
      if (meant(request) && left > 0) {
        left -= 1;
        how(request, response, forward);
      } else forward();
    };
  }
  const any = () => true;

  const passing: [name: string, how: Harm][] = [
    ['503 SlowDown', (_request, response) => refuse(response, 503, 'SlowDown')],
    ['503 without a body', (_request, response) => void response.writeHead(503).end()],
    ['500 InternalError', (_request, response) => refuse(response, 500, 'InternalError')],
    ['429', (_request, response) => refuse(response, 429, 'TooManyRequests', { 'retry-after': '0' })],
    ['400 RequestTimeout', (_request, response) => refuse(response, 400, 'RequestTimeout')],
    ['a connection that is cut', (_request, response) => void response.destroy()],
    ['an answer that is no HTTP', (_request, response) => void response.socket?.end('nonsense\r\n\r\n')],
    [
      'an answer that is cut off',
      (_request, response) => {
        response.writeHead(500, { 'content-length': '1000', 'content-type': 'application/xml' });
        response.write('<?xml version="1.0"?><Err');
        setImmediate(() => response.destroy());
      },
    ],
  ];
  test.each(passing)(
    '%s before rows have arrived: the attempt ends, and the run waits',
    async (_name, how) => {
      harmFirst(1, any, how);
      expect(await failureOf(send())).toMatchObject({ retryable: true });
      expect(s3.seen).toHaveLength(1);
    },
  );
  test.each(passing)('%s after rows have arrived: the request is repeated', async (_name, how) => {
    harmFirst(3, isManifest, how);
    expect(await send()).toMatchObject({ rows: 10 });
    expect(await objects()).toHaveLength(2);
  });
  test.each(passing)('%s for ever: the run is to be repeated', async (_name, how) => {
    harmFirst(Number.POSITIVE_INFINITY, (request) => request.method === 'PUT', how);
    const failed = await failureOf(send());
    expect(failed).toMatchObject({ name: 'DestinationError', retryable: true });
    expect(failed.message).toContain(bucket);
    expect(await objects()).toEqual([]);
  });

  const silences: [name: string, how: Harm][] = [
    ['never answers', () => undefined],
    [
      'trickles',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/xml' });
        const trickle = setInterval(() => response.write(' '), 10);
        response.on('close', () => clearInterval(trickle));
      },
    ],
  ];
  describe.each(silences)('a server that %s', (_name, how) => {
    const usual = { limits: {} };
    beforeEach(() => {
      surroundings = { ...surroundings, limits: { answer: 1_000 } };
    });
    afterEach(() => {
      surroundings = { ...surroundings, ...usual };
    });
    const named = expect.stringMatching(/: no answer from 127\.0\.0\.1:\d+ within [\d.]+ seconds?$/);

    test('from the beginning: the attempt ends after one request', async () => {
      harmFirst(Number.POSITIVE_INFINITY, any, how);
      const failed = await failureOf(send());
      expect(failed).toMatchObject({ code: 'timed-out', retryable: true, message: named });
      expect(s3.seen.map(({ method }) => method)).toEqual(['GET']);
    });

    test('at the first file', async () => {
      harmFirst(Number.POSITIVE_INFINITY, (request) => request.method === 'PUT', how);
      expect(await failureOf(send())).toMatchObject({ code: 'timed-out', message: named });
      expect(s3.seen.filter(({ method }) => method === 'PUT')).toHaveLength(1);
    });

    test('once, after rows have arrived: the request is repeated', async () => {
      harmFirst(1, isManifest, how);
      expect(await send()).toMatchObject({ rows: 10 });
    });

    test('at the completion: the attempt ends, and nothing is visible', async () => {
      surroundings = { ...surroundings, limits: { answer: 1_000 }, patience: { ...HASTE, attempts: 2 } };
      harmFirst(Number.POSITIVE_INFINITY, isComplete, how);
      const failed = await failureOf(writeLarge(9 * MEBIBYTE));
      expect(failed).toMatchObject({ code: 'timed-out', retryable: true });
      expect(await objects()).toEqual([]);
      expect(await openUploads()).toEqual([]);
    });

    test('its test says so', async () => {
      harmFirst(Number.POSITIVE_INFINITY, any, how);
      for (const step of [0, 1]) {
        const { result } = (await runTestStep({ type: 'S3', config }, step, surroundings)) ?? {};
        expect(result).toEqual({ status: 'Failed', message: expect.stringContaining('no answer from') });
      }
      expect(s3.seen).toHaveLength(2);
    });
  });

  test('a server that takes its time to put a file together gets it', async () => {
    surroundings = { ...surroundings, limits: { answer: 1_000, idle: 300 } };
    s3.harm = (request, _response, forward) => {
      if (isComplete(request)) setTimeout(forward, 1_500);
      else forward();
    };
    await writeLarge(9 * MEBIBYTE);
    surroundings = { ...surroundings, limits: {} };
    expect(s3.seen.filter(({ method, url }) => method === 'POST' && /[?&]uploadId=/.test(url))).toHaveLength(
      1,
    );
    expect(await stored()).toHaveLength(9 * MEBIBYTE);
  });

  test('a server that completes the file and falls silent over it has completed it', async () => {
    surroundings = { ...surroundings, limits: { answer: 1_000 } };
    s3.harm = (request, response, forward) => {
      if (isComplete(request)) response.writeHead = (() => response) as typeof response.writeHead;
      if (isComplete(request)) response.write = response.end = (() => true) as never;
      forward();
    };
    await writeLarge(9 * MEBIBYTE);
    surroundings = { ...surroundings, limits: {} };
    expect(await stored()).toHaveLength(9 * MEBIBYTE);
  });

  test('a completion that answers 200 and then an error is repeated', async () => {
    harmFirst(1, isComplete, (_request, response) => void refuse(response, 200, 'InternalError'));
    await writeLarge(9 * MEBIBYTE);
    expect(await stored()).toHaveLength(9 * MEBIBYTE);
  });

  const final: [code: string, status: number, kind: string][] = [
    ['AccessDenied', 403, 'denied'],
    ['InvalidAccessKeyId', 403, 'denied'],
    ['SignatureDoesNotMatch', 403, 'denied'],
    ['RequestTimeTooSkewed', 403, 'denied'],
    ['NoSuchBucket', 404, 'missing'],
    ['PermanentRedirect', 301, 'mismatch'],
    ['InvalidArgument', 400, 'rejected'],
    ['KMS.DisabledException', 400, 'rejected'],
  ];
  test.each(final)('%s: the operator must act, and it is said once', async (code, status, kind) => {
    s3.harm = (request, response, forward) => {
      if (request.method === 'PUT') refuse(response, status, code);
      else forward();
    };
    const failed = await failureOf(send());
    expect(failed).toMatchObject({ code: kind, retryable: false });
    expect(s3.seen.filter(({ method }) => method === 'PUT')).toHaveLength(1);
  });

  test('rights taken away midway: nothing is visible, and no upload stays open', async () => {
    let parts = 0;
    s3.harm = (request, response, forward) => {
      if (isPart(request)) parts += 1;
      if (isPart(request) && parts > 1) refuse(response, 403, 'AccessDenied');
      else forward();
    };
    expect(await failureOf(writeLarge(40 * MEBIBYTE))).toMatchObject({ code: 'denied', retryable: false });
    expect(await openUploads()).toEqual([]);
    expect(await objects()).toEqual([]);
  });

  test('without the right to list uploads it goes on without', async () => {
    s3.harm = (request, response, forward) => {
      if (request.method === 'GET' && /[?&]uploads/.test(request.url ?? ''))
        refuse(response, 403, 'AccessDenied');
      else forward();
    };
    expect(await send()).toMatchObject({ rows: 10 });
  });

  test('without the right to read the manifest it does not begin', async () => {
    s3.harm = (request, response, forward) => {
      if (request.method === 'GET') refuse(response, 403, 'AccessDenied');
      else forward();
    };
    const failed = await failureOf(send());
    expect(failed).toMatchObject({ code: 'denied' });
    expect(failed.message).toContain('s3:GetObject and s3:ListBucket');
  });

  test('a server without conditional writes gets plain ones', async () => {
    s3.harm = (request, response, forward) => {
      if (request.headers['if-none-match']) refuse(response, 501, 'NotImplemented');
      else forward();
    };
    expect(await send()).toMatchObject({ rows: 10 });
    expect(await objects()).toHaveLength(2);
  });

  test('no message holds a secret, whatever the server repeats', async () => {
    s3.harm = (request, response, forward) => {
      if (request.method !== 'PUT') forward();
      else
        response
          .writeHead(400, { 'content-type': 'application/xml' })
          .end(
            `<Error><Code>Odd</Code><Message>${s3.server.secretAccessKey} ${s3.server.accessKeyId} ${request.headers.authorization}</Message></Error>`,
          );
    };
    const text = textOf(await failureOf(send()));
    expect(text).toContain('***');
    expect(text).not.toContain(s3.server.secretAccessKey);
    expect(text).not.toContain(s3.server.accessKeyId);
  });
});

describe('options', () => {
  test('encryption is asked for with each object, the key too', async () => {
    config = { ...config, encryption: 'aws:kms', kms_key_id: 'key-1' };
    s3.harm = (request, response, forward) => {
      // The server of the tests has no keys to encrypt with: it is told that nobody asked.
      for (const name of Object.keys(request.headers))
        if (name.startsWith('x-amz-server-side')) response.setHeader(name, 'seen');
      if (request.method === 'PUT' || /[?&]uploads/.test(request.url ?? '')) refuse(response, 400, 'Stop');
      else forward();
    };
    await failureOf(deliver({ type: 'S3', config, surroundings, events: sampleEvents(1) }));
    await failureOf(writeLarge(9 * MEBIBYTE));
    const writes = s3.seen.filter(({ method }) => method === 'PUT' || method === 'POST');
    expect(writes).toHaveLength(2);
    for (const { headers } of writes) {
      expect(headers['x-amz-server-side-encryption']).toBe('aws:kms');
      expect(headers['x-amz-server-side-encryption-aws-kms-key-id']).toBe('key-1');
    }
  });

  test('the bucket may be part of the host name', async () => {
    const hosts: string[] = [];
    const egress = createEgress({
      allow: '127.0.0.1',
      resolve: async (host) => {
        hosts.push(host);
        return [{ address: '127.0.0.1', family: 4 }];
      },
    });
    const { port } = new URL(s3.endpoint);
    config = { ...config, endpoint_url: `http://s3.test:${port}`, use_virtual_style_addressing: true };
    s3.harm = (_request, response) => void refuse(response, 403, 'AccessDenied');
    const inner = { ...surroundings, egress };
    await failureOf(deliver({ type: 'S3', config, surroundings: inner, events: [] }));
    expect(hosts).toEqual([`${bucket}.s3.test`]);
    expect(s3.seen[0]?.url).not.toContain(bucket);
    await egress.close();
  });

  test('without credentials nothing is sent: those of the machine are not used', async () => {
    const { aws_access_key_id: _id, aws_secret_access_key: _secret, ...rest } = config;
    config = rest;
    const failed = await failureOf(deliver({ type: 'S3', config, surroundings, events: [] }));
    expect(failed).toMatchObject({ code: 'not-configured', retryable: false });
    expect(s3.seen).toEqual([]);
    const step = await runTestStep({ type: 'S3', config }, 0, surroundings);
    expect(step?.result?.message).toContain("it's not configured");
  });

  test('objects tell which export and run wrote them', async () => {
    await deliver({ type: 'S3', config, surroundings, events: sampleEvents(1) });
    const Key = destination().keys(RUN).file(0);
    const { Metadata } = await s3.server.client.send(new HeadObjectCommand({ Bucket: bucket, Key }));
    expect(Metadata).toMatchObject({ 'sluice-export': RUN.exportId, 'sluice-run': RUN.runId });
  });

  test('a bucket that is not there fails the test of the connection', async () => {
    config = { ...config, bucket_name: 'no-such-bucket' };
    const step = await runTestStep({ type: 'S3', config }, 0, surroundings);
    expect(step?.result).toEqual({
      status: 'Failed',
      message: `Bucket "no-such-bucket" does not exist or we don't have permissions to use it`,
    });
  });
});
