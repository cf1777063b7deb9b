import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MAX_BODY_BYTES } from '../../capture/decode/limits.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { LONG, rounds } from '../support/rounds.ts';

/** Shorter than in production, so that the test of it is. Clients that trickle send more often than that. */
const api = apiForFile({}, { bodyIdleMilliseconds: 3_000 });
/** Of events; a million in the long run. */
const NAMES = rounds(25_000, 1_000_000);
let anna: Tenant;
let port: number;
const open = new Set<Socket>();

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  port = (api.app.server.address() as AddressInfo).port;
});
afterAll(() => {
  for (const socket of open) socket.destroy();
});

type Body = NonNullable<RequestInit['body']>;

const one = (event: string, properties: object = {}) => ({
  api_key: anna.projectToken,
  event,
  distinct_id: 'u',
  properties,
});

async function post(path: string, body: Body, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
  } as RequestInit);
}

async function count(event: string): Promise<number> {
  const { rows } = await api.pool.query('select count(*)::int as count from events where event = $1', [
    event,
  ]);
  return rows[0].count;
}

async function heldBytes(): Promise<number> {
  const metric = await api.registry.getSingleMetric('sluice_capture_held_bytes')?.get();
  return metric?.values[0]?.value as number;
}

interface RawClient {
  socket: Socket;
  body: Buffer;
  answer: () => string;
  closed: Promise<void>;
}

/** A client that has sent its headers and nothing of its body yet. */
async function begin(body: Buffer): Promise<RawClient> {
  const socket = connect(port, '127.0.0.1');
  open.add(socket);
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  socket.write(`POST /e/ HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`);
  return { socket, body, answer: () => answer, closed };
}

describe('clients that take their time', () => {
  test('200 that send a byte now and then hold up nobody, and are served in the end', async () => {
    const clients = await Promise.all(
      Array.from({ length: 200 }, () => begin(Buffer.from(JSON.stringify(one('trickled'))))),
    );
    let sent = 0;
    const trickle = () => {
      for (const { socket, body } of clients) socket.write(body.subarray(sent, sent + 1));
      sent += 1;
    };
    for (let round = 0; round < 10; round += 1) {
      trickle();
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => post('/e/', JSON.stringify(one('quick')))),
      );
      expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 200));
    }
    expect(clients.map((client) => client.answer()).join('')).toBe('');
    expect(await count('quick')).toBe(100);
    expect(await count('trickled')).toBe(0);
    for (const { socket, body } of clients) socket.write(body.subarray(sent));
    await eventually(async () => clients.every((client) => client.answer().includes('{"status":"Ok"}')));
    expect(await count('trickled')).toBe(200);
    for (const { socket } of clients) socket.destroy();
  });

  test('one that stops is told so and let go', async () => {
    const client = await begin(Buffer.from(JSON.stringify(one('stopped'))));
    client.socket.write(client.body.subarray(0, 20));
    await client.closed;
    expect(client.answer()).toMatch(/^HTTP\/1\.1 408 /);
    expect(client.answer()).toContain('client stopped sending data');
    expect(await count('stopped')).toBe(0);
  });

  test('those that disconnect in the middle leave nothing behind', async () => {
    const body = Buffer.from(JSON.stringify(one('cut off', { text: 'x'.repeat(500_000) })));
    const clients = await Promise.all(Array.from({ length: 20 }, () => begin(body)));
    for (const { socket } of clients) socket.write(body.subarray(0, 300_000));
    await eventually(async () => (await heldBytes()) > 1_000_000);
    for (const { socket } of clients) socket.destroy();
    await eventually(async () => (await heldBytes()) === 0);
    expect(await count('cut off')).toBe(0);
    expect((await post('/e/', JSON.stringify(one('after')))).status).toBe(200);
  });
});

describe('one connection', () => {
  const request = (body: string, length = body.length) =>
    `POST /e/ HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n${body}`;

  test('carries one request after the other, refused ones between, also sent all at once', async () => {
    const client = await begin(Buffer.from(JSON.stringify(one('kept'))));
    client.socket.write(client.body);
    await eventually(async () => client.answer().includes('{"status":"Ok"}'));
    client.socket.write(request('{"broken') + request(JSON.stringify(one('kept'))) + request('{}'));
    await eventually(async () => client.answer().split('HTTP/1.1 ').length === 5);
    const statuses = [...client.answer().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect(statuses).toEqual([200, 400, 200, 401]);
    expect(client.answer().toLowerCase()).not.toContain('connection: close');
    expect(await count('kept')).toBe(2);
    client.socket.destroy();
  });

  test('is closed after the answer to a request that was not read to its end', async () => {
    const client = await begin(Buffer.alloc(0));
    await eventually(async () => client.answer().includes('HTTP/1.1 400'));
    client.socket.write(request('x', MAX_BODY_BYTES + 1));
    await client.closed;
    expect(client.answer()).toMatch(/HTTP\/1\.1 413 [\s\S]*connection: close/i);
  });
});

describe('the limit of 20 MiB, over the wire', () => {
  test.each([
    ['of a known length', `content-length: ${MAX_BODY_BYTES * 2}`, Buffer.alloc(MAX_BODY_BYTES * 2, 'x')],
    [
      'in chunks',
      'transfer-encoding: chunked',
      Buffer.concat([
        Buffer.from(`${(MAX_BODY_BYTES * 2).toString(16)}\r\n`),
        Buffer.alloc(MAX_BODY_BYTES * 2, 'x'),
        Buffer.from('\r\n0\r\n\r\n'),
      ]),
    ],
  ])('a client that reads only when it has sent all, %s, is told', async (_name, header, body) => {
    const client = await begin(Buffer.alloc(0));
    await eventually(async () => client.answer().includes('HTTP/1.1 400'));
    client.socket.pause();
    client.socket.write(`POST /e/ HTTP/1.1\r\nhost: x\r\n${header}\r\n\r\n`);
    for (let at = 0; at < body.length; at += 1_000_000) {
      const failed = await new Promise((resolve) =>
        client.socket.write(body.subarray(at, at + 1_000_000), resolve),
      );
      expect(failed ?? undefined).toBeUndefined();
    }
    client.socket.resume();
    await client.closed;
    expect(client.answer()).toMatch(/HTTP\/1\.1 413 [\s\S]*larger than 20971520 bytes/);
  });

  /** A body of exactly this size, most of it one text. */
  function exactly(size: number, event: string): Buffer {
    const frame = Buffer.byteLength(JSON.stringify(one(event, { text: '' })));
    return Buffer.from(JSON.stringify(one(event, { text: 'x'.repeat(size - frame) })));
  }
  const chunked = (body: Buffer) =>
    new ReadableStream({
      async start(controller) {
        for (let at = 0; at < body.length; at += 1_000_000) {
          controller.enqueue(body.subarray(at, at + 1_000_000));
          await pause(0);
        }
        controller.close();
      },
    });

  test.each([
    ['with its length', (body: Buffer) => post('/batch/', body as unknown as Body)],
    ['in chunks', (body: Buffer) => post('/batch/', chunked(body))],
    ['compressed', (body: Buffer) => post('/batch/', gzipSync(body, { level: 1 }) as unknown as Body)],
  ])('%s: the last byte decides', async (name, send) => {
    for (const by of LONG ? [-1, 0] : [0]) {
      expect((await send(exactly(MAX_BODY_BYTES + by, `${name} ${by}`))).status).toBe(200);
      expect(await count(`${name} ${by}`)).toBe(1);
    }
    const over = await send(exactly(MAX_BODY_BYTES + 1, `${name} over`));
    expect(over.status).toBe(413);
    expect(((await over.json()) as { detail: string }).detail).toContain('larger than 20971520 bytes');
    expect(await count(`${name} over`)).toBe(0);
  });

  test.each(['POST', 'GET'])('a client that never stops sending is cut off: %s', async (method) => {
    const client = await begin(Buffer.alloc(0));
    await eventually(async () => client.answer().includes('HTTP/1.1 400'));
    client.socket.write(`${method} /e/ HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
    const chunk = Buffer.concat([
      Buffer.from('f4240\r\n'),
      Buffer.alloc(1_000_000, 'x'),
      Buffer.from('\r\n'),
    ]);
    let isOpen = true;
    for (let sent = 0; isOpen && sent < 300; sent += 1) {
      isOpen = await new Promise((resolve) => client.socket.write(chunk, (error) => resolve(!error)));
    }
    expect(isOpen).toBe(false);
    client.socket.destroy();
  });

  test('a length that is announced as too large is refused before the body is sent', async () => {
    const socket = connect(port, '127.0.0.1');
    open.add(socket);
    const answer = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))));
    socket.write(`POST /e/ HTTP/1.1\r\nhost: x\r\ncontent-length: ${MAX_BODY_BYTES + 1}\r\n\r\n{`);
    expect(await answer).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  test('many bombs at once are refused, and others are served', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024), { level: 9 });
    const answers = await Promise.all([
      ...Array.from({ length: 12 }, () => post('/e/', bomb as unknown as Body)),
      post('/e/', JSON.stringify(one('beside bombs'))),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual([...Array(12).fill(413), 200]);
    expect(await heldBytes()).toBe(0);
  });
});

describe('odd content', () => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const raw = (event: string, properties: string) =>
    `{"api_key":"${anna.projectToken}","event":"${event}","distinct_id":"u","properties":${properties}}`;

  test('100 levels are stored, 100,000 are refused; in a batch only the deep event is missing', async () => {
    expect((await post('/e/', raw('deep', nested(100)))).status).toBe(200);
    expect(await count('deep')).toBe(1);
    const refused = await post('/e/', raw('deeper', nested(100_000)));
    expect(refused.status).toBe(400);
    expect(((await refused.json()) as { detail: string }).detail).toContain('nests 100001 levels deep');
    const batch = [raw('neighbour', '{}'), raw('deeper', nested(100_000)), raw('neighbour', '{}')];
    const mixed = await post('/batch/', `{"api_key":"${anna.projectToken}","batch":[${batch.join(',')}]}`);
    expect(mixed.status).toBe(200);
    expect([await count('neighbour'), await count('deeper')]).toEqual([2, 0]);
    const brackets = await post('/e/', '['.repeat(10_000_000));
    expect(brackets.status).toBe(400);
  });

  test('duplicate keys, __proto__, NUL, lone surrogates and 1e400 are stored as data', async () => {
    const properties =
      '{"a":1,"a":2,"__proto__":{"x":1},"nul":"\\u0000","half":"\\ud800","huge":1e400,"big":9007199254740993}';
    expect((await post('/e/', raw('odd', properties))).status).toBe(200);
    const { rows } = await api.pool.query(`select properties::text as text from events where event = 'odd'`);
    expect(rows).toHaveLength(1);
    const text = rows[0].text as string;
    expect(text).toContain('"__proto__":{"x":1}');
    expect(JSON.parse(text)).toMatchObject({
      a: 2,
      nul: '\ufffd',
      half: '\ufffd',
      huge: '1e400',
      big: '9007199254740993',
    });
  });

  test('a property of 1 MB is stored whole', async () => {
    const value = 'ä'.repeat(500_000);
    expect((await post('/e/', JSON.stringify(one('long', { value })))).status).toBe(200);
    const { rows } = await api.pool.query(
      `select length(properties ->> 'value') as length from events where event = 'long'`,
    );
    expect(rows).toEqual([{ length: 500_000 }]);
  });

  test(`${NAMES.toLocaleString('en')} distinct names of events are stored, and cost no memory`, async () => {
    const series = async () => (await api.registry.metrics()).match(/^sluice_/gm)?.length;
    await post('/batch/', JSON.stringify(one('before the names')));
    const before = await series();
    for (let from = 0; from < NAMES; from += 25_000) {
      const batch = Array.from({ length: 25_000 }, (_, index) => ({
        event: `name ${from + index}`,
        distinct_id: 'namer',
      }));
      const answer = await post('/batch/', JSON.stringify({ api_key: anna.projectToken, batch }));
      expect(answer.status).toBe(200);
    }
    const { rows } = await api.pool.query(
      `select count(*)::int as events, count(distinct event)::int as names from events where distinct_id = 'namer'`,
    );
    expect(rows).toEqual([{ events: NAMES, names: NAMES }]);
    // A name is no label.
    expect(await series()).toBe(before);
    expect((await post('/e/', JSON.stringify(one('after the names')))).status).toBe(200);
  });

  test('100,000 small events in one body, and 100,000 that are none', async () => {
    const events = Array.from({ length: 100_000 }, (_, index) => ({
      event: 'swarm',
      distinct_id: `${index % rounds(5_000, 100_000)}`,
    }));
    const body = JSON.stringify({ api_key: anna.projectToken, batch: events });
    expect((await post('/batch/', body)).status).toBe(200);
    expect(await count('swarm')).toBe(100_000);
    const nothing = `{"api_key":"${anna.projectToken}","batch":[${Array(100_000).fill('{}').join(',')}]}`;
    expect((await post('/batch/', nothing)).status).toBe(200);
  });

  test('more events than that are refused as too large, before they are made: clients send halves', async () => {
    for (const [count, single] of [
      [100_001, JSON.stringify({ event: 'horde', distinct_id: 'u' })],
      [1_000_000, '{"event":"horde"}'],
      [150_000, '0'],
    ] as [number, string][]) {
      const batch = Array(count).fill(single).join(',');
      const refused = await post('/batch/', `{"api_key":"${anna.projectToken}","batch":[${batch}]}`);
      expect(refused.status).toBe(413);
      expect(await refused.json()).toMatchObject({
        code: 'request_too_large',
        detail: expect.stringContaining(`the body holds ${count} events, at most 100000 are accepted`),
      });
    }
    expect(await count('horde')).toBe(0);
  });
});
