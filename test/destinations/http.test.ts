import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { bindDestination } from '../../destinations/bind.ts';
import type { Delivered } from '../../destinations/destination.ts';
import { MOST_BODY_BYTES, timestampText, withMembers } from '../../destinations/http/batch.ts';
import { runTestStep } from '../../destinations/settings.ts';
import { createEgress, type Egress } from '../../egress/egress.ts';
import { modelOf } from '../../models/index.ts';
import { apiForFile } from '../support/api.ts';
import { deliver, failureOf, HASTE, RUN, textOf } from './harness.ts';
import { EVENT_COLUMNS, sampleEvents, sampleUuid } from './sample.ts';

const TOKEN = 'phc_canary_of_a_token';
const NOW = new Date('2026-02-01T12:00:00Z');
const api = apiForFile();
let egress: Egress;
let url = '';
interface Received {
  api_key: string;
  historical_migration?: boolean;
  batch: {
    uuid: string;
    distinct_id: string;
    timestamp: string;
    event: string;
    properties: Record<string, unknown>;
  }[];
}
let received: Received[] = [];
let sizes: number[] = [];
let answer: (request: IncomingMessage, response: ServerResponse, index: number) => void;

const receiver = http.createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return;
  }
  const body = Buffer.concat(chunks);
  if (request.method === 'POST') {
    sizes.push(body.length);
    received.push(JSON.parse(body.toString('utf8')));
  }
  answer(request, response, received.length);
});

beforeAll(async () => {
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/batch/`;
  egress = createEgress({ allow: '127.0.0.1' });
});
afterAll(async () => {
  await egress.close();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});
beforeEach(() => {
  received = [];
  sizes = [];
  answer = (_request, response) => response.end('{"status":"Ok"}');
});

const surroundings = () => ({ egress, exportRoot: '/nowhere', patience: HASTE, now: () => NOW });
const send = (events = sampleEvents(3), more: Partial<Parameters<typeof deliver>[0]> = {}) =>
  deliver({
    type: 'HTTP',
    config: { url, token: TOKEN },
    surroundings: surroundings(),
    events,
    ...more,
  }) as Promise<Delivered>;

test('the form of /batch/', async () => {
  const events = sampleEvents(2, (index) =>
    index === 1 ? { event: '$autocapture', elements_chain: 'a:"x"', properties: '{}' } : {},
  );
  expect(await send(events)).toMatchObject({ rows: 2, written: 2, rejected: 0, bytes: sizes[0] });
  expect(received).toEqual([
    {
      api_key: TOKEN,
      batch: [
        {
          uuid: sampleUuid(0),
          distinct_id: 'person-0',
          timestamp: '2026-01-31T12:00:00.000000Z',
          event: '$pageview',
          properties: { ...JSON.parse(events[0]?.properties as string), $geoip_disable: true },
        },
        {
          uuid: sampleUuid(1),
          distinct_id: 'person-1',
          timestamp: '2026-01-31T12:00:00.001000Z',
          event: '$autocapture',
          properties: { $geoip_disable: true, $elements_chain: 'a:"x"' },
        },
      ],
    },
  ]);
});

test('events that are older than 48 hours by any clock go as a historical migration, in requests of their own', async () => {
  const bound = NOW.getTime() - 49 * 3_600_000;
  const events = sampleEvents(4, (index) => ({
    timestamp: new Date(bound + [-1, 0, 1, -3_600_000][index]!),
  }));
  await send(events);
  const sent = received.map(({ historical_migration: historical, batch }) => [
    historical,
    batch.map(({ uuid }) => Number.parseInt(uuid.slice(-4), 16)),
  ]);
  expect(sent.sort()).toEqual(
    [
      [undefined, [1, 2]],
      [true, [0, 3]],
    ].sort(),
  );
});

test('requests hold at most 5000 events', async () => {
  await send(sampleEvents(12_001));
  expect(received.map(({ batch }) => batch.length).sort((a, b) => a - b)).toEqual([2_001, 5_000, 5_000]);
  expect(new Set(received.flatMap(({ batch }) => batch.map(({ uuid }) => uuid))).size).toBe(12_001);
});

test('requests stay below what Sluice takes; an event that is larger than that is kept apart', async () => {
  const sized = (bytes: number) => ({ properties: JSON.stringify({ text: 'x'.repeat(bytes) }) });
  const large = [
    sized(3_000_000),
    sized(3_000_000),
    sized(MOST_BODY_BYTES - 1_000),
    sized(MOST_BODY_BYTES),
    sized(1),
  ];
  const result = await send(sampleEvents(5, (index) => large[index] ?? {}));
  expect(result).toMatchObject({ rows: 5, written: 4, rejected: 1 });
  expect(result.rejections).toEqual([
    { key: sampleUuid(3), reason: expect.stringContaining('a request may have 20971519') },
  ]);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(MOST_BODY_BYTES);
  expect(received).toHaveLength(4);
});

test('the largest event that fits, fits to the byte', async () => {
  const [event] = sampleEvents(1);
  await send([{ ...event!, properties: '{"text":""}' }]);
  const room = MOST_BODY_BYTES - (sizes[0] as number);
  const exact = { ...event!, properties: JSON.stringify({ text: 'x'.repeat(room) }) };
  expect(await send([exact])).toMatchObject({ rejected: 0 });
  expect(sizes[1]).toBe(MOST_BODY_BYTES);
  const over = { ...event!, properties: JSON.stringify({ text: 'x'.repeat(room + 1) }) };
  expect(await send([over])).toMatchObject({ rejected: 1 });
});

describe('answers', () => {
  /** Four requests. The last one begins when one of the others was answered, so that events have arrived by then. */
  const sendFour = () => send(sampleEvents(20_000));
  const isFourth = (index: number) => index === 4 || index === 5;

  test.each([429, 500, 502, 503, 504])(
    '%d after events have arrived: the request is repeated',
    async (status) => {
      answer = (_request, response, index) => response.writeHead(isFourth(index) ? status : 200).end('{}');
      expect(await sendFour()).toMatchObject({ written: 20_000 });
      expect(received).toHaveLength(6);
    },
  );

  test.each([429, 503])(
    '%d before any event has arrived: the attempt ends, and the run waits',
    async (status) => {
      answer = (_request, response) => response.writeHead(status, { 'retry-after': '7' }).end();
      expect(await failureOf(send())).toMatchObject({ retryable: true, retryAfterMilliseconds: 7_000 });
      expect(received).toHaveLength(1);
    },
  );

  test('503 for ever after events have arrived: the run is to be repeated', async () => {
    answer = (_request, response, index) => response.writeHead(index > 3 ? 503 : 200).end();
    expect(await failureOf(sendFour())).toMatchObject({ code: 'unavailable', retryable: true });
    expect(received).toHaveLength(3 + HASTE.attempts);
  });

  test('a longer pause than half a minute is left to the run', async () => {
    answer = (_request, response, index) =>
      response.writeHead(index > 3 ? 429 : 200, { 'retry-after': '31' }).end();
    expect(await failureOf(sendFour())).toMatchObject({ code: 'throttled', retryAfterMilliseconds: 31_000 });
    expect(received).toHaveLength(4);
  });

  test.each([
    [401, 'denied'],
    [403, 'denied'],
    [404, 'missing'],
    [301, 'mismatch'],
  ])('%d: the operator must act, and it is said once', async (status, code) => {
    answer = (_request, response) =>
      response.writeHead(status, { location: 'https://elsewhere.test/x' }).end(`no: ${TOKEN}`);
    const failed = await failureOf(send());
    expect(failed).toMatchObject({ code, retryable: false });
    expect(failed.message).toContain(`answered ${status}`);
    expect(textOf(failed)).not.toContain(TOKEN);
    expect(received).toHaveLength(1);
  });

  test('a connection that is cut after events have arrived', async () => {
    answer = (_request, response, index) => {
      if (isFourth(index)) response.destroy();
      else response.end();
    };
    expect(await sendFour()).toMatchObject({ written: 20_000 });
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ['never comes', () => undefined],
    [
      'trickles',
      (response) => {
        const trickle = setInterval(() => response.write('x'), 10);
        response.on('close', () => clearInterval(trickle));
      },
    ],
  ])('an answer that %s ends the attempt, with a name', async (_what, harm) => {
    answer = (_request, response) => harm(response);
    const around = { ...surroundings(), limits: { answer: 500 } };
    const failed = await failureOf(send(undefined, { surroundings: around }));
    expect(failed).toMatchObject({ code: 'timed-out', retryable: true });
    expect(failed.message).toMatch(/^HTTP http:.*: no answer from 127\.0\.0\.1:\d+ within 0\.\d+ seconds$/);
    expect(received).toHaveLength(1);
    const step = await runTestStep({ type: 'HTTP', config: { url, token: TOKEN } }, 0, around);
    expect(step?.result).toEqual({ status: 'Failed', message: expect.stringContaining('no answer from') });
  });

  test.each([400, 413, 422])('%d for some: they are kept apart, the others arrive', async (status) => {
    const bad = new Set([sampleUuid(3), sampleUuid(4), sampleUuid(1_000)]);
    const taken: string[] = [];
    answer = (_request, response, index) => {
      const uuids = (received[index - 1]?.batch ?? []).map(({ uuid }) => uuid);
      const isBad = uuids.some((uuid) => bad.has(uuid));
      if (!isBad) taken.push(...uuids);
      response.writeHead(isBad ? status : 200).end(`not that: ${TOKEN}`);
    };
    const result = await send(sampleEvents(2_000));
    expect(result).toMatchObject({ rows: 2_000, written: 1_997, rejected: 3 });
    expect(result.rejections.map(({ key }) => key).sort()).toEqual([...bad].sort());
    expect(result.rejections[0]?.reason).toMatch(new RegExp(`answered ${status} \\(not that: \\*\\*\\*\\)`));
    expect(taken).toHaveLength(1_997);
    expect(new Set(taken).size).toBe(1_997);
    for (const { api_key } of received) expect(api_key).toBe(TOKEN);
    expect(received.length).toBeLessThan(80);
  });

  test('a receiver that takes less at once gets less', async () => {
    answer = (_request, response, index) =>
      response.writeHead((sizes[index - 1] as number) > 20_000 ? 413 : 200).end();
    expect(await send(sampleEvents(1_000))).toMatchObject({ written: 1_000, rejected: 0 });
  });

  test.each([3, 60_000])(
    '%d events and none taken: the operator must act, and it is said soon',
    async (count) => {
      answer = (_request, response) => response.writeHead(400).end(`no: ${TOKEN}`);
      const failed = await failureOf(send(sampleEvents(count)));
      expect(failed).toMatchObject({ code: 'rejected', retryable: false });
      expect(failed.message).toContain('answered 400');
      expect(textOf(failed)).not.toContain(TOKEN);
      expect(received.length).toBeLessThan(150);
    },
  );
});

test('columns that an event cannot do without', async () => {
  const bound = bindDestination({ type: 'HTTP', config: { url, token: TOKEN } }, surroundings());
  if (bound.kind !== 'rows') throw new Error('HTTP takes rows');
  const columns = EVENT_COLUMNS.filter(({ name }) => name !== 'properties');
  const read = async function* () {
    yield Buffer.alloc(0);
  };
  expect(
    await failureOf(bound.deliver({ run: RUN, columns, rules: modelOf('events').table, read })),
  ).toMatchObject({ code: 'mismatch' });
});

test.each([
  ['{}', '{"z":1}'],
  ['{ }', '{ "z":1}'],
  [' {"a":1} ', '{"a":1,"z":1}'],
  ['{"a":{}}\n', '{"a":{},"z":1}'],
  ['{"z":0}', '{"z":0,"z":1}'],
  ['null', '{"z":1}'],
  ['[1]', '{"z":1}'],
  [null, '{"z":1}'],
])('members added to %j', (object, expected) => {
  const bytes = withMembers(object === null ? null : Buffer.from(object), '"z":1').toString();
  expect(bytes).toBe(expected);
  expect(JSON.parse(bytes).z).toBe(1);
});

test.each([
  [0n, '2000-01-01T00:00:00.000000Z'],
  [1n, '2000-01-01T00:00:00.000001Z'],
  [-1n, '1999-12-31T23:59:59.999999Z'],
  [823_186_800_123_456n, '2026-01-31T15:00:00.123456Z'],
])('%d microseconds since 2000', (microseconds, text) => {
  expect(timestampText(microseconds)).toBe(text);
});

test('the test of a connection that its receiver refuses', async () => {
  answer = (_request, response) => response.writeHead(404).end();
  const settings = { type: 'HTTP', config: { url, token: TOKEN } };
  const first = await runTestStep(settings, 0, surroundings());
  expect(first?.result).toEqual({ status: 'Failed', message: expect.stringContaining('answered 404') });
  const second = await runTestStep(settings, 1, surroundings());
  expect(second?.result?.message).toBe('The receiver has no project with this token (it answered 404)');
  const other = { type: 'HTTP', config: { url: url.replace('batch', 'hook'), token: TOKEN } };
  expect((await runTestStep(other, 1, surroundings()))?.result?.status).toBe('Skipped');
});

test('one Sluice feeds another: what the receiver stores is what was sent, once, old events too', async () => {
  const tenant = await api.createTenant('receiver');
  const base = await api.app.listen({ port: 0, host: '127.0.0.1' });
  const now = new Date();
  const events = sampleEvents(200, (index) => ({
    timestamp: new Date(now.getTime() - index * 3_600_000 - 60_000),
    ...(index === 5 ? { event: '$autocapture', elements_chain: 'div:text="a"' } : {}),
  }));
  const config = { url: `${base}/batch/`, token: tenant.projectToken };
  const around = { egress, exportRoot: '/nowhere', patience: HASTE };
  for (const _attempt of [1, 2]) await send(events, { config, surroundings: around });
  const { rows } = await api.pool.query(
    'select uuid::text, event, distinct_id, timestamp, properties, elements_chain from events where project_id = $1 order by uuid',
    [tenant.projectId],
  );
  expect(rows).toHaveLength(200);
  for (const [index, event] of events.entries()) {
    expect(rows[index]).toMatchObject({
      uuid: event.uuid,
      event: event.event,
      distinct_id: event.distinct_id,
    });
    expect(Date.parse(rows[index].timestamp)).toBe(event.timestamp.getTime());
    expect(rows[index].properties).toMatchObject(JSON.parse(event.properties));
  }
  expect(rows[5].elements_chain).toBe('div:text="a"');
});
