import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { RawConfig } from '../../destinations/config.ts';
import type { Surroundings } from '../../destinations/destination.ts';
import { s3Fields } from '../../destinations/s3/config.ts';
import { s3Store } from '../../destinations/s3/store.ts';
import { runTestStep } from '../../destinations/settings.ts';
import { createEgress } from '../../egress/egress.ts';
import { PATIENCE } from '../support/eventually.ts';
import { deliver, failureOf, HASTE } from './harness.ts';
import { sampleEvents } from './sample.ts';

// Servers that speak the protocol of S3 in order to harm the process that connects to them.

let surroundings: Surroundings;
const stops: (() => unknown)[] = [];
beforeAll(() => {
  surroundings = {
    ...{ egress: createEgress({ allow: '127.0.0.1' }), exportRoot: '/nowhere', patience: HASTE },
    // The floods of this process keep its thread from hearing answers.
    limits: { answer: PATIENCE, idle: PATIENCE },
  };
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(() => surroundings.egress.close());

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(answer: Answer): Promise<RawConfig> {
  const server = http.createServer((request, response) => {
    request.resume();
    request.on('end', () => answer(request, response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return {
    ...{ bucket_name: 'bucket', region: 'us-east-1', prefix: 'lake' },
    endpoint_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ aws_access_key_id: 'id', aws_secret_access_key: 'secret' },
  };
}

/** Answers for as long as somebody reads. */
function flood(response: ServerResponse, status: number, beginning = ''): void {
  const piece = Buffer.alloc(64 * 1024, 0x61);
  response.writeHead(status, { 'content-type': 'application/xml' }).write(beginning);
  const more = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', more);
  more();
}

const write = (config: RawConfig) => runTestStep({ type: 'S3', config }, 1, surroundings);
const send = (config: RawConfig) => deliver({ type: 'S3', config, surroundings, events: sampleEvents(1) });
const error = (code: string) => `<?xml version="1.0"?><Error><Code>${code}</Code></Error>`;

describe('answers without an end', () => {
  test.each([200, 400, 503])('of status %i are not collected', async (status) => {
    const config = await serve((request, response) => {
      if (request.method === 'HEAD') response.writeHead(404).end();
      else flood(response, status, '<?xml version="1.0"?><Error><Code>');
    });
    const said = expect.stringContaining('the answer is longer than 1048576 bytes');
    expect((await write(config))?.result).toEqual({ status: 'Failed', message: said });
  });

  test('of a manifest, and of the list of uploads, are not collected', async () => {
    const config = await serve((request, response) => {
      if (request.url?.includes('uploads')) flood(response, 200, '<ListMultipartUploadsResult><Bucket>');
      else response.writeHead(404).end(error('NoSuchKey'));
    });
    expect(await failureOf(send(config))).toMatchObject({ code: 'unavailable', retryable: true });
    const unlabelled = await serve((_request, response) => flood(response, 200));
    const store = s3Store(s3Fields.parse(unlabelled), surroundings);
    expect((await store.get('lake/x_manifest.json'))?.bytes).toHaveLength(0);
    await store.close();
  });
});

test('a list of uploads without an end is left', async () => {
  let pages = 0;
  const config = await serve((request, response) => {
    if (!request.url?.includes('uploads')) return response.writeHead(404).end(error('NoSuchKey'));
    pages += 1;
    return response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end(
        `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>${pages}</NextKeyMarker></ListMultipartUploadsResult>`,
      );
  });
  await failureOf(send(config));
  expect(pages).toBe(10);
});

// Names that every object has.
test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])('an error called %s', async (name) => {
  const config = await serve((_request, response) => response.writeHead(400).end(error(name)));
  expect(await failureOf(send(config))).toMatchObject({ name: 'DestinationError', code: 'rejected' });
});
