import { generateKeyPairSync } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { bindDestination } from '../../../destinations/bind.ts';
import type { RawConfig } from '../../../destinations/config.ts';
import type { Surroundings } from '../../../destinations/destination.ts';
import { Waiting } from '../../../destinations/google-cloud-storage/upload.ts';
import { IN_FLIGHT_BYTES, partSize } from '../../../destinations/parts.ts';
import { placeOfFiles } from '../../../destinations/registry.ts';
import { checkSettings, patchSettings, runTestStep, shownSettings } from '../../../destinations/settings.ts';
import { createEgress } from '../../../egress/egress.ts';
import { eventually } from '../../support/eventually.ts';
import { faultProxyForFile, type Harm } from '../../support/fault-proxy.ts';
import { keyFileWith, pemOf } from '../../support/google-front.ts';
import { googleStorageForFile } from '../../support/google-storage.ts';
import { deliver, failureOf, HASTE, RUN, textOf } from '../harness.ts';
import { largeFile, writeLargeFile } from '../large-file.ts';
import { sampleEvents } from '../sample.ts';
import { CANARY } from '../subject.ts';

const MEBIBYTE = 1024 * 1024;
const TYPE = 'GoogleCloudStorage';
const google = googleStorageForFile();
const proxy = faultProxyForFile(() => google.endpoint);
let config: RawConfig;
let surroundings: Surroundings;

beforeAll(() => {
  surroundings = { egress: createEgress({ allow: '127.0.0.1' }), exportRoot: '/nowhere', patience: HASTE };
});
afterAll(async () => {
  await surroundings.egress.close();
});
beforeEach(async () => {
  config = {
    bucket_name: await google.createBucket(),
    service_account_key: JSON.stringify(google.keyFile),
    endpoint_url: proxy.endpoint,
  };
});

const events = sampleEvents(300);
const send = (given: Partial<Parameters<typeof deliver>[0]> = {}) =>
  deliver({ type: TYPE, config, surroundings, events, ...given });
const visible = () => google.objectsIn(config.bucket_name);
const step = (index: number, given = config) =>
  runTestStep({ type: TYPE, config: given }, index, surroundings);

const rangeOf = ({ headers }: { headers: http.IncomingHttpHeaders }) =>
  String(headers['content-range'] ?? '');
const isPart = (request: IncomingMessage) => /^bytes \d+-\d+\/\*$/.test(rangeOf(request));
const isEnd = (request: IncomingMessage) => /^bytes (\*|\d+-\d+)\/\d+$/.test(rangeOf(request));
const isWhole = ({ url = '' }: IncomingMessage) => url.includes('uploadType=multipart');
const refuse = (response: ServerResponse, status: number, reason: string, headers = {}) => {
  const error = { code: status, message: 'no', errors: [{ domain: 'global', reason, message: 'no' }] };
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ error }));
};
/** Lets the server act, and the client hear nothing of it. */
const lose = (response: ServerResponse) => {
  response.writeHead = () => response.destroy() as ServerResponse;
};

function destination() {
  const bound = bindDestination({ type: TYPE, config }, surroundings);
  if (bound.kind !== 'files') throw new Error(`${TYPE} takes files`);
  return bound;
}
const writeLarge = (bytes: number, onChunk?: (written: number) => void, signal?: AbortSignal) =>
  writeLargeFile(destination(), bytes, onChunk, signal);
const stored = () => google.read(config.bucket_name, destination().keys(RUN).file(0));
const expectStored = async (bytes: number) => expect((await stored()).equals(largeFile(bytes))).toBe(true);

describe('large files', () => {
  const BYTES = 20 * MEBIBYTE + 12_345;

  test('go in one session, part after part, and all but the end comes in whole quanta', async () => {
    await writeLarge(BYTES);
    await expectStored(BYTES);
    const ranges = proxy.seen.map(rangeOf).filter(Boolean);
    expect(ranges).toEqual([
      `bytes 0-${8 * MEBIBYTE - 1}/*`,
      `bytes ${8 * MEBIBYTE}-${16 * MEBIBYTE - 1}/*`,
      `bytes ${16 * MEBIBYTE}-${20 * MEBIBYTE - 1}/*`,
      `bytes ${20 * MEBIBYTE}-${BYTES - 1}/${BYTES}`,
    ]);
    // Whoever knows a session needs no token, so none is sent with the bytes.
    for (const one of proxy.seen) if (rangeOf(one)) expect(one.headers.authorization).toBeUndefined();
  });

  test('exactly whole parts', async () => {
    await writeLarge(16 * MEBIBYTE);
    await expectStored(16 * MEBIBYTE);
    expect(rangeOf(proxy.seen.findLast(rangeOf) as IncomingMessage)).toBe(`bytes */${16 * MEBIBYTE}`);
  });

  test('hold no more than a few parts in memory, however slow the server', async () => {
    const waiting: (() => void)[] = [];
    proxy.harm = (request, _response, forward) => {
      if (isPart(request)) waiting.push(forward);
      else forward();
    };
    let written = 0;
    const work = writeLarge(48 * MEBIBYTE, (bytes) => {
      written = bytes;
    });
    await eventually(async () => written > IN_FLIGHT_BYTES + partSize(0) - MEBIBYTE);
    await eventually(async () => waiting.length > 0);
    expect(waiting).toHaveLength(1);
    expect(written).toBeLessThanOrEqual(IN_FLIGHT_BYTES + partSize(0) + MEBIBYTE);
    proxy.harm = undefined;
    for (const go of waiting) go();
    await work;
    await expectStored(48 * MEBIBYTE);
  });

  test('cancelled while a part is on its way, nothing is visible, and the next attempt is whole', async () => {
    const controller = new AbortController();
    const reason = new Error('cancelled');
    proxy.harm = (request, _response, forward) => {
      forward();
      if (isPart(request)) controller.abort(reason);
    };
    expect(await failureOf(writeLarge(BYTES, undefined, controller.signal))).toBe(reason);
    expect(await visible()).toEqual([]);
    // The session is given up.
    expect(proxy.seen.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
    proxy.harm = undefined;
    await writeLarge(BYTES);
    await expectStored(BYTES);
  });

  test('ended, but the answer got lost: it is recognised as done', async () => {
    let lost = 0;
    proxy.harm = (request, response, forward) => {
      if (isEnd(request) && lost === 0) {
        lost += 1;
        lose(response);
      }
      forward();
    };
    await writeLarge(BYTES);
    expect(lost).toBe(1);
    await expectStored(BYTES);
  });

  test('a part was kept, but the answer got lost: the server is asked, and nothing is sent twice', async () => {
    let parts = 0;
    proxy.harm = (request, response, forward) => {
      if (isPart(request)) parts += 1;
      if (isPart(request) && parts === 2) lose(response);
      forward();
    };
    await writeLarge(BYTES);
    await expectStored(BYTES);
    const ranges = proxy.seen.map(rangeOf).filter(Boolean);
    expect(ranges[2]).toBe('bytes */*');
    expect(ranges.filter((one) => one === ranges[1])).toHaveLength(1);
  });

  test('a server that has lost what it had kept ends the attempt', async () => {
    let parts = 0;
    proxy.harm = (request, response, forward) => {
      if (isPart(request)) parts += 1;
      if (parts < 2) return forward();
      if (isPart(request)) return void response.destroy();
      if (rangeOf(request) === 'bytes */*') response.writeHead(308).end();
      else forward();
    };
    expect(await failureOf(writeLarge(BYTES))).toMatchObject({ code: 'conflict', retryable: true });
    expect(await visible()).toEqual([]);
  });

  test('damaged on their way: the run is to be repeated', async () => {
    proxy.harm = (request, response, forward) => {
      if (!isEnd(request)) return forward();
      request.resume();
      response.end(JSON.stringify({ md5Hash: 'c29tZXRoaW5nIGVsc2UgIQ==' }));
    };
    expect(await failureOf(writeLarge(BYTES))).toMatchObject({ code: 'interrupted', retryable: true });
  });

  test('two attempts at once never leave a mixture: whoever comes second is overtaken', async () => {
    let between: (() => Promise<unknown>) | undefined = () => writeLarge(9 * MEBIBYTE);
    proxy.harm = (request, _response, forward) => {
      const first = isEnd(request) ? between : undefined;
      if (!first) return forward();
      between = undefined;
      void first().then(forward);
    };
    const failed = await failureOf(writeLarge(BYTES));
    expect(failed).toMatchObject({ code: 'overtaken', retryable: true });
    await expectStored(9 * MEBIBYTE);
  });
});

test('the ends of files that wait to be published have room for a time', () => {
  const waiting = new Waiting();
  let taken = 0;
  while (waiting.takes(MEBIBYTE)) taken += 1;
  expect(taken).toBe(64);
  waiting.give(MEBIBYTE);
  expect([waiting.takes(MEBIBYTE), waiting.takes(1)]).toEqual([true, false]);
});

test('a small file that comes late does not replace what another attempt wrote since', async () => {
  let between: (() => Promise<unknown>) | undefined = () => send({ run: { ...RUN, runId: 'run-2' } });
  proxy.harm = (request, _response, forward) => {
    const first = isWhole(request) ? between : undefined;
    if (!first) return forward();
    between = undefined;
    void first().then(forward);
  };
  const failed = await failureOf(send({ events: events.slice(0, 10) }));
  expect(failed).toMatchObject({ code: 'overtaken', retryable: true });
  expect((await destination().verify(RUN)).files.map(({ state }) => state)).toEqual(['same']);
});

const answers = (status: number, reason: string, headers = {}): Harm => {
  let left = 1;
  return (request, response, forward) => {
    if (left > 0 && isPart(request)) {
      left -= 1;
      request.resume();
      refuse(response, status, reason, headers);
    } else forward();
  };
};

describe('faults that pass', () => {
  const passing: [string, () => Harm][] = [
    ['500', () => answers(500, 'internalError')],
    ['503', () => answers(503, 'backendError')],
    ['429', () => answers(429, 'rateLimitExceeded', { 'retry-after': '0' })],
    [
      'a cut connection',
      () => {
        let left = 1;
        return (request, response, forward) => {
          if (left > 0 && isPart(request)) {
            left -= 1;
            response.destroy();
          } else forward();
        };
      },
    ],
  ];

  test.each(passing)('%s after rows have arrived: the request is repeated', async (_name, how) => {
    const harm = how();
    let hasFlowed = false;
    proxy.harm = (request, response, forward) => {
      if (hasFlowed) return harm(request, response, forward);
      forward();
      if (isPart(request)) response.on('finish', () => (hasFlowed = true));
    };
    await writeLarge(26 * MEBIBYTE);
    await expectStored(26 * MEBIBYTE);
  });

  test('from the beginning: the attempt ends after one request, and is to be repeated', async () => {
    proxy.harm = (_request, response) => refuse(response, 503, 'backendError', { 'retry-after': '7' });
    expect(await failureOf(send())).toMatchObject({ code: 'throttled', retryable: true });
    expect(proxy.seen).toHaveLength(1);
  });

  test('a server that falls silent ends the attempt', async () => {
    const impatient = { ...surroundings, limits: { answer: 300, idle: 300 } };
    proxy.harm = () => undefined;
    const failed = await failureOf(send({ surroundings: impatient }));
    expect(failed).toMatchObject({ code: 'timed-out', retryable: true });
  });
});

describe('faults for the operator', () => {
  test.each([
    ['authError', 401, 'denied'],
    ['forbidden', 403, 'denied'],
    ['retentionPolicyNotMet', 403, 'rejected'],
    ['userProjectMissing', 400, 'rejected'],
    ['invalid', 400, 'rejected'],
  ])('%s: it is said once, and nothing is visible', async (reason, status, kind) => {
    proxy.harm = (request, response, forward) => {
      if (isWhole(request)) refuse(response, status, reason);
      else forward();
    };
    expect(await failureOf(send())).toMatchObject({ code: kind, retryable: false });
    expect(proxy.seen.filter((one) => isWhole(one as IncomingMessage))).toHaveLength(1);
    expect(await visible()).toEqual([]);
  });

  test('a redirect is not followed: it would take the token along', async () => {
    proxy.harm = (_request, response) => {
      response.writeHead(307, { location: google.endpoint });
      response.end();
    };
    expect(await failureOf(send())).toMatchObject({ code: 'mismatch', retryable: false });
    expect(proxy.seen).toHaveLength(1);
  });

  test('a session that leads elsewhere is looked for at the endpoint', async () => {
    proxy.harm = (request, response, forward) => {
      if (request.url?.includes('uploadType=resumable') && request.method === 'POST') {
        const writeHead = response.writeHead.bind(response) as (
          status: number,
          headers: object,
        ) => ServerResponse;
        response.writeHead = ((status: number, headers: Record<string, string>) => {
          const { pathname, search } = new URL(headers.location as string);
          return writeHead(status, { ...headers, location: `http://169.254.169.254${pathname}${search}` });
        }) as typeof response.writeHead;
      }
      forward();
    };
    await writeLarge(9 * MEBIBYTE);
    await expectStored(9 * MEBIBYTE);
  });

  test.each(['key file', 'HMAC key'])(
    'a bucket that is not there fails the run and the test (%s)',
    async (kind) => {
      config = { ...config, bucket_name: 'nowhere', ...(kind === 'HMAC key' ? hmac() : {}) };
      expect(await failureOf(send())).toMatchObject({ code: 'missing', retryable: false });
      expect((await step(0))?.result).toEqual({
        status: 'Failed',
        message: 'Bucket "nowhere" does not exist or we don\'t have permissions to use it',
      });
    },
  );

  test('without credentials nothing is sent', async () => {
    config = { ...config, service_account_key: null };
    expect(await failureOf(send())).toMatchObject({ code: 'not-configured', retryable: false });
    expect(proxy.seen).toEqual([]);
  });

  test('an answer without an end is not collected', async () => {
    proxy.harm = (_request, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      const piece = Buffer.alloc(MEBIBYTE, ' ');
      const go = () => void (response.destroyed || response.write(piece, go));
      go();
    };
    expect(await failureOf(send())).toMatchObject({ code: 'unavailable' });
  });
});

const hmac = () => ({
  service_account_key: null,
  ...{ hmac_access_key: google.hmac.accessKey, hmac_secret: google.hmac.secret },
});

describe('an HMAC key', () => {
  beforeEach(() => {
    config = { ...config, ...hmac() };
  });

  test('is enough for a test, small and large files, a second run and a check', async () => {
    for (const index of [0, 1])
      expect((await step(index))?.result).toEqual({ status: 'Passed', message: null });
    expect(await visible()).toEqual([]);
    // The names of objects have signs that a signature writes in a form of its own.
    config = { ...config, prefix: "it's (a) *lake*/{table}!" };
    await send();
    await send({ run: { ...RUN, runId: 'run-2' } });
    expect(await visible()).toHaveLength(2);
    expect((await destination().verify(RUN)).files.map(({ state }) => state)).toEqual(['same']);
    await writeLarge(9 * MEBIBYTE + 5);
    await expectStored(9 * MEBIBYTE + 5);
  });

  test('keeps an attempt that comes late from replacing what another wrote', async () => {
    let between: (() => Promise<unknown>) | undefined = () => writeLarge(8 * MEBIBYTE + 1);
    proxy.harm = (request, _response, forward) => {
      const first = isEnd(request) ? between : undefined;
      if (!first) return forward();
      between = undefined;
      void first().then(forward);
    };
    expect(await failureOf(writeLarge(9 * MEBIBYTE))).toMatchObject({ code: 'overtaken' });
    await expectStored(8 * MEBIBYTE + 1);
  });

  test.each([
    ['secret', { hmac_secret: CANARY }, 'hmac_secret does not belong to hmac_access_key'],
    ['access key', { hmac_access_key: 'GOOG1EUNKNOWN' }, 'hmac_access_key is not known there'],
  ])('with a wrong %s is for the operator', async (_what, wrong, message) => {
    config = { ...config, ...wrong };
    // The answer to HEAD has no text, so the reason is that of the first GET.
    const failed = await failureOf(send());
    expect(failed).toMatchObject({ code: 'denied', retryable: false });
    expect(failed.message).toContain(message);
    expect(textOf(failed)).not.toContain(CANARY);
    expect((await step(0))?.result?.status).toBe('Failed');
  });
});

describe('a key file', () => {
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const save = (service_account_key: unknown) =>
    checkSettings({ type: TYPE, config: { bucket_name: 'lake', service_account_key } });

  test('is kept as what of it is needed, given as text or as an object, and never shown', () => {
    const given = { ...google.keyFile, private_key_id: 'abc', universe_domain: 'googleapis.com' };
    for (const one of [given, JSON.stringify(given)]) {
      const kept = save(one);
      expect(kept.config).toEqual({
        bucket_name: 'lake',
        service_account_key: JSON.stringify(google.keyFile),
      });
      expect(shownSettings(kept).config).toEqual({ bucket_name: 'lake' });
      const elsewhere = { endpoint_url: 'https://elsewhere.test' };
      expect(() => patchSettings(kept, { type: TYPE, config: elsewhere })).toThrow(
        "missing required secrets: ['service_account_key']",
      );
      const along = { ...elsewhere, service_account_key: one };
      expect(patchSettings(kept, { type: TYPE, config: along }).config).toEqual({
        ...kept.config,
        ...elsewhere,
      });
    }
  });

  const pem = pemOf(other);
  test.each<[string, unknown, string]>([
    ['is not JSON', `${CANARY} {`, 'The key is not JSON'],
    [
      'is of another type',
      { ...keyFileWith('http://x', pem), type: 'authorized_user' },
      'not the key file of a',
    ],
    ['has no private key', keyFileWith('http://x', CANARY), 'has no private key'],
    [
      'has a private key that does not parse',
      keyFileWith('http://x', `-----BEGIN PRIVATE KEY-----\n${CANARY}\n-----END PRIVATE KEY-----\n`),
      'The private key of the key file cannot be used',
    ],
    [
      'has a private key of another kind',
      keyFileWith('http://x', pemOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)),
      'The private key of the key file cannot be used',
    ],
    [
      'gets its tokens from no URL',
      { ...keyFileWith('http://x', pem), token_uri: `file:///${CANARY}` },
      'token_uri of the key file must be',
    ],
  ])('that %s is refused, and not repeated', (_what, key, message) => {
    expect(() => save(key)).toThrow(message);
    expect(() => save(key)).not.toThrow(CANARY);
  });

  test('that belongs to another account is for the operator', async () => {
    config = { ...config, service_account_key: JSON.stringify(keyFileWith(google.endpoint, pem)) };
    const failed = await failureOf(send());
    expect(failed).toMatchObject({ code: 'denied', retryable: false });
    expect(failed.message).toContain('400, Invalid JWT Signature.');
    expect(proxy.seen).toEqual([]);
    expect((await step(0))?.result?.message).toContain('Check the provided credentials');
  });

  test('gets its tokens through the guard', async () => {
    const key = keyFileWith('http://169.254.169.254', pem);
    config = { ...config, service_account_key: JSON.stringify(key) };
    expect(await failureOf(send())).toMatchObject({ code: 'egress-refused', retryable: false });
  });

  test.each([
    [503, 'unavailable', true],
    [429, 'unavailable', true],
    [307, 'denied', false],
    [400, 'denied', false],
  ])('whose place of tokens answers %d: it is %s, and repeats no secret', async (status, code, retryable) => {
    let asked = 0;
    const server = http.createServer((request, response) => {
      asked += 1;
      let body = '';
      request.on('data', (piece) => {
        body += piece;
      });
      request.on('end', () => {
        const assertion = new URLSearchParams(body).get('assertion');
        response.writeHead(status, { location: '/other', 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: 'no', error_description: `${assertion} ${pem}` }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const key = keyFileWith(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, pem);
      config = { ...config, service_account_key: JSON.stringify(key) };
      const failed = await failureOf(send());
      expect(failed).toMatchObject({ code, retryable });
      expect(failed.message).toContain('***');
      expect(failed.message).not.toContain('eyJ');
      expect(failed.message).not.toContain(pem.split('\n')[1]?.slice(0, 40));
      expect(asked).toBe(1);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

test('the same bucket under any spelling is one place', () => {
  const of = (given: RawConfig) => placeOfFiles({ type: TYPE, config: given }, null);
  const plain = { bucket_name: 'lake', prefix: 'p' };
  expect(of({ ...plain, endpoint_url: 'https://STORAGE.googleapis.com/' })).toEqual(of(plain));
  expect(of({ ...plain, endpoint_url: 'https://other.test' })).not.toEqual(of(plain));
  expect(of({ ...plain, bucket_name: 'pool' })).not.toEqual(of(plain));
});
