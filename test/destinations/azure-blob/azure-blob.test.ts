import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { bindDestination } from '../../../destinations/bind.ts';
import type { RawConfig } from '../../../destinations/config.ts';
import type { Surroundings } from '../../../destinations/destination.ts';
import { IN_FLIGHT_BYTES, partSize } from '../../../destinations/parts.ts';
import { placeOfFiles } from '../../../destinations/registry.ts';
import { checkSettings, patchSettings, runTestStep, shownSettings } from '../../../destinations/settings.ts';
import { createEgress } from '../../../egress/egress.ts';
import { azuriteForFile, blobsIn } from '../../support/azurite.ts';
import { eventually } from '../../support/eventually.ts';
import { faultProxyForFile, type Harm } from '../../support/fault-proxy.ts';
import { deliver, failureOf, HASTE, RUN, textOf } from '../harness.ts';
import { largeFile, writeLargeFile } from '../large-file.ts';
import { sampleEvents } from '../sample.ts';
import { CANARY } from '../subject.ts';

const MEBIBYTE = 1024 * 1024;
const azure = azuriteForFile();
const proxy = faultProxyForFile(() => new URL(azure.endpoint).origin);
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
    container_name: await azure.createContainer(),
    account_name: azure.account,
    account_key: azure.key,
    endpoint_url: `${proxy.endpoint}/${azure.account}`,
  };
});

const events = sampleEvents(300);
const send = (given: Partial<Parameters<typeof deliver>[0]> = {}) =>
  deliver({ type: 'AzureBlob', config, surroundings, events, ...given });
const visible = () => blobsIn(azure.container(config.container_name));
const isBlock = ({ method, url = '' }: IncomingMessage) => method === 'PUT' && url.includes('comp=block&');
const isCommit = ({ method, url = '' }: IncomingMessage) =>
  method === 'PUT' && url.includes('comp=blocklist');
const isWhole = ({ method, url = '' }: IncomingMessage) =>
  method === 'PUT' && url.includes('.jsonl') && !url.includes('comp=');
const refuse = (response: ServerResponse, status: number, code: string, headers = {}) => {
  const body = `<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code><Message>no</Message></Error>`;
  response.writeHead(status, { 'content-type': 'application/xml', 'x-ms-error-code': code, ...headers });
  response.end(body);
};

function destination() {
  const bound = bindDestination({ type: 'AzureBlob', config }, surroundings);
  if (bound.kind !== 'files') throw new Error('AzureBlob takes files');
  return bound;
}

const writeLarge = (bytes: number, onChunk?: (written: number) => void, signal?: AbortSignal) =>
  writeLargeFile(destination(), bytes, onChunk, signal);

const stored = () =>
  azure.container(config.container_name).getBlobClient(destination().keys(RUN).file(0)).downloadToBuffer();

describe('large files', () => {
  const BYTES = 20 * MEBIBYTE + 12_345;

  test('go in blocks, each with its checksum, and are the same afterwards', async () => {
    await writeLarge(BYTES);
    expect((await stored()).equals(largeFile(BYTES))).toBe(true);
    const blocks = proxy.seen.filter((one) => isBlock(one as IncomingMessage));
    expect(blocks.map(({ headers }) => Number(headers['content-length'])).sort((a, b) => a - b)).toEqual([
      BYTES - 16 * MEBIBYTE,
      8 * MEBIBYTE,
      8 * MEBIBYTE,
    ]);
    for (const { headers } of blocks) expect(headers['content-md5']).toMatch(/^[\w+/]{22}==$/);
  });

  test('exactly whole blocks', async () => {
    await writeLarge(16 * MEBIBYTE);
    expect((await stored()).equals(largeFile(16 * MEBIBYTE))).toBe(true);
  });

  test('hold no more than a few blocks in memory, however slow the server', async () => {
    const waiting: (() => void)[] = [];
    proxy.harm = (request, _response, forward) => {
      if (isBlock(request)) waiting.push(forward);
      else forward();
    };
    let written = 0;
    const work = writeLarge(60 * MEBIBYTE, (bytes) => {
      written = bytes;
    });
    await eventually(async () => waiting.length === IN_FLIGHT_BYTES / partSize(0));
    await eventually(async () => written > IN_FLIGHT_BYTES + partSize(0) - MEBIBYTE);
    expect(waiting.length).toBe(IN_FLIGHT_BYTES / partSize(0));
    expect(written).toBeLessThanOrEqual(IN_FLIGHT_BYTES + partSize(0) + MEBIBYTE);
    proxy.harm = undefined;
    for (const go of waiting) go();
    await work;
    expect((await stored()).equals(largeFile(60 * MEBIBYTE))).toBe(true);
  });

  test('cancelled while blocks are on their way, nothing is visible, and the next attempt is whole', async () => {
    const controller = new AbortController();
    const reason = new Error('cancelled');
    proxy.harm = (request, _response, forward) => {
      forward();
      if (isBlock(request)) controller.abort(reason);
    };
    expect(await failureOf(writeLarge(BYTES, undefined, controller.signal))).toBe(reason);
    expect(await visible()).toEqual([]);
    proxy.harm = undefined;
    await writeLarge(BYTES);
    expect((await stored()).equals(largeFile(BYTES))).toBe(true);
  });

  test('committed, but the answer got lost: it is recognised as done', async () => {
    let lost = 0;
    proxy.harm = (request, response, forward) => {
      if (isCommit(request) && lost === 0) {
        lost += 1;
        response.writeHead = () => response.destroy() as ServerResponse;
      }
      forward();
    };
    await writeLarge(BYTES);
    expect(lost).toBe(1);
    expect((await stored()).equals(largeFile(BYTES))).toBe(true);
  });

  test('two attempts at once never leave a mixture: whoever comes second is overtaken', async () => {
    let between: (() => Promise<unknown>) | undefined = () => writeLarge(9 * MEBIBYTE);
    proxy.harm = (request, _response, forward) => {
      const first = isCommit(request) ? between : undefined;
      if (!first) return forward();
      between = undefined;
      void first().then(forward);
    };
    const failed = await failureOf(writeLarge(BYTES));
    expect(failed).toMatchObject({ code: 'overtaken', retryable: true });
    expect((await stored()).equals(largeFile(9 * MEBIBYTE))).toBe(true);
  });
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

const answers = (status: number, code: string, headers = {}): Harm => {
  let left = 1;
  return (request, response, forward) => {
    if (left > 0 && isBlock(request)) {
      left -= 1;
      request.resume();
      refuse(response, status, code, headers);
    } else forward();
  };
};

describe('faults that pass', () => {
  const passing: [string, () => Harm][] = [
    ['500', () => answers(500, 'InternalError')],
    ['503', () => answers(503, 'ServerBusy')],
    ['429', () => answers(429, 'TooManyRequests', { 'retry-after': '0' })],
    ['a block that was damaged on its way', () => answers(400, 'Md5Mismatch')],
    [
      'a cut connection',
      () => {
        let left = 1;
        return (request, response, forward) => {
          if (left > 0 && isBlock(request)) {
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
      // The answer to the first block has come.
      if (isBlock(request)) response.on('finish', () => (hasFlowed = true));
    };
    await writeLarge(70 * MEBIBYTE);
    expect((await stored()).equals(largeFile(70 * MEBIBYTE))).toBe(true);
  });

  test('from the beginning: the attempt ends after one request, and is to be repeated', async () => {
    proxy.harm = (_request, response) => refuse(response, 503, 'ServerBusy', { 'retry-after': '7' });
    expect(await failureOf(send())).toMatchObject({ code: 'throttled', retryable: true });
    expect(proxy.seen).toHaveLength(1);
  });

  test('a server that falls silent ends the attempt', async () => {
    surroundings = { ...surroundings, limits: { answer: 300, idle: 300 } };
    try {
      proxy.harm = () => undefined;
      expect(await failureOf(send())).toMatchObject({ code: 'timed-out', retryable: true });
    } finally {
      const { limits: _, ...rest } = surroundings;
      surroundings = rest;
    }
  });
});

describe('faults for the operator', () => {
  test.each([
    ['AuthenticationFailed', 403, 'denied'],
    ['AuthorizationPermissionMismatch', 403, 'denied'],
    ['ContainerNotFound', 404, 'missing'],
    ['BlobImmutableDueToPolicy', 409, 'rejected'],
  ])('%s: it is said once, and nothing is visible', async (code, status, kind) => {
    proxy.harm = (request, response, forward) => {
      if (isWhole(request)) refuse(response, status, code);
      else forward();
    };
    expect(await failureOf(send())).toMatchObject({ code: kind, retryable: false });
    expect(proxy.seen.filter((one) => isWhole(one as IncomingMessage))).toHaveLength(1);
    expect(await visible()).toEqual([]);
  });

  test('a lease of somebody else: the run is to be repeated', async () => {
    proxy.harm = (request, response, forward) => {
      if (isWhole(request)) refuse(response, 412, 'LeaseIdMissing');
      else forward();
    };
    expect(await failureOf(send())).toMatchObject({ code: 'conflict', retryable: true });
  });

  test('a redirect is not followed: it would take the signature along', async () => {
    proxy.harm = (_request, response) => {
      response.writeHead(307, { location: azure.endpoint });
      response.end();
    };
    expect(await failureOf(send())).toMatchObject({ code: 'mismatch', retryable: false });
    expect(proxy.seen).toHaveLength(1);
  });

  test('a container that is not there fails the run and the test', async () => {
    config = { ...config, container_name: 'nowhere' };
    expect(await failureOf(send())).toMatchObject({ code: 'missing', retryable: false });
    const step = await runTestStep({ type: 'AzureBlob', config }, 0, surroundings);
    expect(step?.result).toEqual({
      status: 'Failed',
      message: 'Container "nowhere" does not exist or we don\'t have permissions to use it',
    });
  });

  test('without credentials nothing is sent', async () => {
    config = { ...config, account_key: null };
    expect(await failureOf(send())).toMatchObject({ code: 'not-configured', retryable: false });
    expect(proxy.seen).toEqual([]);
  });

  test('an answer without an end is not collected', async () => {
    proxy.harm = (_request, response) => {
      response.writeHead(400, { 'content-type': 'application/xml' });
      const piece = Buffer.alloc(MEBIBYTE, ' ');
      const go = () => void (response.destroyed || response.write(piece, go));
      go();
    };
    expect(await failureOf(send())).toMatchObject({ code: 'unavailable' });
  });
});

describe('credentials', () => {
  const connectionString = () =>
    `DefaultEndpointsProtocol=http;AccountName=${azure.account};AccountKey=${azure.key};BlobEndpoint=${azure.endpoint};`;

  test('a connection string is kept as its parts, none of which is shown', async () => {
    const { container_name } = config;
    const given = { type: 'AzureBlob', config: { container_name, connection_string: connectionString() } };
    const kept = checkSettings(given);
    expect(kept.config).toEqual({
      container_name,
      account_name: azure.account,
      account_key: azure.key,
      sas_token: null,
      endpoint_url: azure.endpoint,
    });
    expect(shownSettings(kept).config).toEqual({
      container_name,
      account_name: azure.account,
      endpoint_url: azure.endpoint,
    });
    for (const index of [0, 1])
      expect((await runTestStep(given, index, surroundings))?.result).toEqual({
        status: 'Passed',
        message: null,
      });
    config = kept.config;
    await send();
    expect(await visible()).toHaveLength(2);
    // Another account, with all that belongs to it.
    const next =
      'DefaultEndpointsProtocol=https;AccountName=other;AccountKey=b3RoZXI=;EndpointSuffix=core.windows.net';
    expect(
      patchSettings(kept, { type: 'AzureBlob', config: { connection_string: next } }).config,
    ).toMatchObject({
      account_name: 'other',
      account_key: 'b3RoZXI=',
      endpoint_url: null,
    });
  });

  test.each(['', 'nonsense', 'AccountName=abc', `AccountName=${CANARY};=x`])(
    'the connection string %j is refused, and not repeated',
    (connection_string) => {
      const save = () =>
        checkSettings({ type: 'AzureBlob', config: { container_name: 'lake', connection_string } });
      expect(save).toThrow(
        /connection_string is not|required field: 'account_name'|inputs are empty: \['connection_string'\]/,
      );
      expect(save).not.toThrow(CANARY);
    },
  );

  test('a signature is enough for a run and its test, and stands in no message', async () => {
    const credential = new StorageSharedKeyCredential(azure.account, azure.key);
    const sign = (permissions: string) =>
      generateBlobSASQueryParameters(
        {
          containerName: config.container_name as string,
          permissions: ContainerSASPermissions.parse(permissions),
          expiresOn: new Date(Date.now() + 3_600_000),
        },
        credential,
      ).toString();
    config = { ...config, account_key: null, sas_token: sign('rcwd') };
    for (const index of [0, 1])
      expect((await runTestStep({ type: 'AzureBlob', config }, index, surroundings))?.result?.status).toBe(
        'Passed',
      );
    await send();
    expect(await visible()).toHaveLength(2);
    config = { ...config, sas_token: sign('r') };
    const failed = await failureOf(send());
    expect(failed).toMatchObject({ code: 'denied', retryable: false });
    const signature = new URLSearchParams(config.sas_token as string).get('sig') as string;
    expect(textOf(failed)).not.toContain(signature);
  });

  test('the same container under any spelling is one place', () => {
    const of = (given: RawConfig) => placeOfFiles({ type: 'AzureBlob', config: given }, null);
    const plain = { container_name: 'lake', account_name: 'sea', prefix: 'p' };
    expect(of({ ...plain, endpoint_url: 'https://SEA.blob.core.windows.net/' })).toEqual(of(plain));
    expect(of({ ...plain, account_name: 'pond' })).not.toEqual(of(plain));
    expect(of({ ...plain, container_name: 'pool' })).not.toEqual(of(plain));
  });
});
