import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Writable } from 'node:stream';
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { Gate, newTicket } from '../../api/public/gate.ts';
import { decodeBody } from '../../capture/decode/decode.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { Quiet } from '../../telemetry/quiet.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const ENCODINGS: [string, string, (text: string | Buffer) => Buffer][] = [
  ['gzip', 'gzip', gzipSync],
  ['deflate', 'deflate', deflateSync],
  ['bare deflate', 'deflate', deflateRawSync],
  ['br', 'br', (text) => brotliCompressSync(text, fast)],
  ['zstd', 'zstd', zstdCompressSync],
];

/** A body that becomes twice as large as one may be, by the name of what it is made with. */
const bombs = new Map<string, Buffer>();
const bombOf = (name: string) => bombs.get(name) as Buffer;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  const text = Buffer.alloc(40 * 1024 * 1024, ' ');
  for (const [name, , compress] of ENCODINGS) bombs.set(name, compress(text));
});

async function count(event: string): Promise<number> {
  const { rows } = await api.pool.query('select count(*)::int as count from events where event = $1', [
    event,
  ]);
  return rows[0].count;
}

type Headers = Record<string, string>;
const post = (url: string, payload: Buffer | string, headers: Headers = {}, app: App = api.app) =>
  app.inject({ method: 'POST', url, payload, headers: { 'content-type': 'application/json', ...headers } });

describe.each(ENCODINGS)('%s', (name, encoding, compress) => {
  const bodyFor = (event: string) =>
    JSON.stringify({ api_key: anna.projectToken, batch: [{ event, distinct_id: 'u' }] });

  test.each(['/i/v0/e/', '/e/', '/capture/', '/track/', '/engage/', '/batch/'])(
    'is read at %s, named by the header or by the query',
    async (path) => {
      const event = `${name} at ${path}`;
      const answers = [
        await post(path, compress(bodyFor(event)), { 'content-encoding': encoding }),
        await post(`${path}?compression=${encoding}`, compress(bodyFor(event)), {
          'content-type': 'text/plain',
        }),
      ];
      expect(answers.map((answer) => answer.statusCode)).toEqual([200, 200]);
      expect(await count(event)).toBe(2);
    },
  );

  test('is read at the v1 path', async () => {
    const event = `${name} at v1`;
    const uuid = '0197a3c0-0000-7000-8000-0000000000c1';
    const body = { created_at: new Date().toISOString(), batch: [{ uuid, event, distinct_id: `u ${name}` }] };
    const answer = await post('/i/v1/analytics/events', compress(JSON.stringify(body)), {
      'content-encoding': encoding,
      authorization: `Bearer ${(await api.createTenant(event)).projectToken}`,
    });
    expect([answer.statusCode, answer.json()]).toEqual([200, { results: { [uuid]: { result: 'ok' } } }]);
    expect(await count(event)).toBe(1);
  });

  test('is read at /decide/', async () => {
    const body = JSON.stringify({ api_key: anna.projectToken, distinct_id: 'u' });
    const answer = await post('/decide/?v=3', compress(body), { 'content-encoding': encoding });
    expect(answer.statusCode).toBe(200);
  });
});

interface RustEvent {
  event: string;
  distinct_id: string;
  properties: object;
}

/** What the encoders of posthog-rs 0.30.0 made of one body of its v1 mode, as base64. */
const rust: { body: { batch: RustEvent[] }; encoded: Record<string, string> } = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'golden/clients/posthog-rs.json'), 'utf8'),
);

test.each(Object.entries(rust.encoded))('what posthog-rs sends is read: %s', async (encoding, base64) => {
  const tenant = await api.createTenant(`rust ${encoding}`);
  const answer = await post('/i/v1/analytics/events', Buffer.from(base64, 'base64'), {
    'content-encoding': encoding,
    authorization: `Bearer ${tenant.projectToken}`,
  });
  expect([answer.statusCode, Object.values(answer.json().results)]).toEqual([
    200,
    [{ result: 'ok' }, { result: 'ok' }],
  ]);
  const { rows } = await api.pool.query(
    'select event, distinct_id, properties from events where project_id = $1 order by event desc',
    [tenant.projectId],
  );
  const sent = rust.body.batch.map(({ event, distinct_id, properties }) => ({
    event,
    distinct_id,
    properties,
  }));
  expect(rows).toMatchObject(sent);
});

describe('a body that cannot be decoded', () => {
  const registry = createRegistry('refusing');
  const lines: Record<string, unknown>[] = [];
  let app: App;
  beforeAll(async () => {
    const stream = new Writable({
      write(chunk, _encoding, done) {
        lines.push(JSON.parse(String(chunk)));
        done();
      },
    });
    app = await api.rebuild({ registry, logger: createLogger({ name: 'test', level: 'info' }, stream) });
  });
  afterAll(() => app.close());

  const send = (url: string, payload: Buffer | string, headers: Headers = {}) =>
    post(url, payload, headers, app);
  const broken = Buffer.from('hello there');
  const warningsOf = async (tenant: Tenant) => {
    // Another process than the one that counted them would show them a second later.
    const { results } = (
      await app.inject({
        url: `/api/projects/${tenant.projectId}/ingestion_warnings/`,
        headers: { authorization: `Bearer ${tenant.key}` },
      })
    ).json();
    return results as { reason: string; effect: string; count: number; sample: Record<string, unknown> }[];
  };
  async function refusedBodies(): Promise<Record<string, number>> {
    const metric = await registry.getSingleMetric('sluice_capture_refused_bodies_total')?.get();
    return Object.fromEntries((metric?.values ?? []).map(({ labels, value }) => [labels.reason, value]));
  }

  test('is counted by its reason, and shown to the project whose key is beside it', async () => {
    const eve = await api.createTenant('Eve');
    const key = eve.projectToken;
    const bearer = { authorization: `Bearer ${key}` };
    const before = await refusedBodies();
    const large = zstdCompressSync(Buffer.alloc(21 * 1024 * 1024, ' '));
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const answers = [
      await send('/i/v1/analytics/events', broken, {
        ...bearer,
        'content-encoding': 'zstd',
        'user-agent': 'posthog-rs/9',
      }),
      await send('/i/v1/analytics/events', broken, { ...bearer, 'content-encoding': 'br' }),
      await send('/i/v1/analytics/events', broken, { ...bearer, 'content-encoding': 'lz4' }),
      await send('/i/v1/analytics/events', large, { ...bearer, 'content-encoding': 'zstd' }),
      await send(`/batch/?api_key=${key}`, broken, { 'content-encoding': 'deflate' }),
      await send(`/e/?token=${key}`, broken.subarray(0, 3), { 'content-encoding': 'gzip' }),
      await send('/e/', `data=%7B%22event&api_key=${key}`, form),
      await send('/batch/', JSON.stringify({ api_key: key, batch: 'none' })),
      await send('/batch/', JSON.stringify({ api_key: key, batch: [] })),
      await send(`/e/?api_key=${key}`, ''),
      await send('/e/', broken),
      await send('/e/?api_key=phc_nobody', broken),
      await send('/e/?api_key=phx_personal', broken),
    ];
    expect(answers.map((answer) => answer.statusCode)).toEqual([
      ...[400, 400, 400, 413, 400, 400, 400, 400, 400, 400, 400, 400, 400],
    ]);
    const counted = await refusedBodies();
    const difference = Object.entries(counted).map(([reason, value]) => [
      reason,
      value - (before[reason] ?? 0),
    ]);
    expect(Object.fromEntries(difference)).toEqual({
      ...{ invalid_zstd: 1, invalid_br: 1, unknown_encoding: 1, body_too_large: 1, invalid_deflate: 1 },
      ...{ invalid_gzip: 1, invalid_json: 4, invalid_request: 1, no_event: 1, empty_body: 1 },
    });
    const warnings = await warningsOf(eve);
    expect(Object.fromEntries(warnings.map((one) => [one.reason, [one.effect, one.count]]))).toEqual({
      ...{ invalid_zstd: ['skipped', 1], invalid_br: ['skipped', 1], unknown_encoding: ['skipped', 1] },
      ...{ body_too_large: ['skipped', 1], invalid_deflate: ['skipped', 1], invalid_gzip: ['skipped', 1] },
      ...{ invalid_json: ['skipped', 1], invalid_request: ['skipped', 1] },
    });
    expect(warnings.find((one) => one.reason === 'invalid_zstd')?.sample).toEqual({
      detail: expect.stringContaining('invalid zstd data'),
      content_encoding: 'zstd',
      content_type: 'application/json',
      user_agent: 'posthog-rs/9',
      bytes: broken.length,
    });
  });

  test('is a line in the log, without its content, and at most one line a second', async () => {
    const told = lines.filter((line) => line.msg === 'capture refused a body');
    expect(told[0]).toMatchObject({
      level: 'warn',
      reason: 'invalid_zstd',
      content_encoding: 'zstd',
      bytes: 11,
      untold: 0,
    });
    expect(JSON.stringify(told)).not.toContain('hello');
    let now = 0;
    const quiet = new Quiet(() => now);
    const written: number[] = [];
    for (; now < 2_500; now += 100) quiet.tell((untold) => written.push(untold));
    expect(written).toEqual([0, 9, 9]);
  });
});

describe('the memory of decompression', () => {
  const MIB = 1024 * 1024;
  const SHARE = { held: 50 * MIB, atWork: 12 * MIB, unpacking: 2 };
  /** On a busy machine too, all get their turn. */
  const PATIENT = 60_000;
  test.each(ENCODINGS)(
    '%s: is counted while it is made, of many bombs at once too',
    async (name, encoding) => {
      const gate = new Gate(SHARE, PATIENT);
      const bytes = bombOf(name);
      let most = 0;
      const failures = await Promise.all(
        Array.from({ length: 5 }, async () => {
          const ticket = newTicket();
          const memory = gate.memoryOf(ticket);
          const grow = memory.grow.bind(memory);
          memory.grow = (count) => {
            grow(count);
            most = Math.max(most, gate.held);
          };
          const admit = (size: number) => gate.enter(ticket, size);
          const failure = await decodeBody({ bytes, contentEncoding: encoding, memory, admit }).catch(
            (error) => error,
          );
          gate.leave(ticket);
          return failure;
        }),
      );
      expect(failures.map((one) => one.reason)).toEqual(failures.map(() => 'body_too_large'));
      expect(most).toBeGreaterThan(15 * MIB);
      expect(most).toBeLessThanOrEqual(2 * 20 * MIB);
      expect(gate.held).toBe(0);
    },
  );

  test('that is used up refuses the body, and is given back', async () => {
    const gate = new Gate({ ...SHARE, held: 5 * MIB });
    const ticket = newTicket();
    const wire = { bytes: bombOf('gzip'), memory: gate.memoryOf(ticket) };
    await expect(decodeBody(wire)).rejects.toMatchObject({ status: 503 });
    expect(gate.held).toBeGreaterThan(4 * MIB);
    gate.leave(ticket);
    expect(gate.held).toBe(0);
  });

  test('counts a body once: what is inside of a layer takes the place of the layer', async () => {
    const gate = new Gate(SHARE);
    const ticket = newTicket();
    const text = JSON.stringify({ text: 'x'.repeat(5 * MIB) });
    const bytes = gzipSync(brotliCompressSync(deflateSync(text, { level: 0 }), fast));
    const admit = (size: number) => {
      expect(gate.held).toBeLessThan(6 * MIB);
      return gate.enter(ticket, size);
    };
    await decodeBody({ bytes, contentEncoding: 'deflate, br, gzip', memory: gate.memoryOf(ticket), admit });
    expect(gate.held).toBe(text.length);
    gate.leave(ticket);
    expect(gate.held).toBe(0);
  });

  test('waits for its turn, also inside of a body that was being parsed, and nobody waits for himself', async () => {
    const gate = new Gate({ ...SHARE, unpacking: 1 }, PATIENT);
    const text = JSON.stringify({ event: 'e', text: 'x'.repeat(MIB) });
    const inner = { data: gzipSync(text, { level: 0 }).toString('base64'), compression: 'gzip' };
    const bytes = gzipSync(JSON.stringify(inner), { level: 0 });
    const decoded = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const ticket = newTicket();
        const admit = (size: number) => gate.enter(ticket, size);
        const { root } = await decodeBody({ bytes, memory: gate.memoryOf(ticket), admit });
        gate.leave(ticket);
        return (root as { event: string }).event;
      }),
    );
    expect(decoded).toEqual(Array(8).fill('e'));
    expect(gate.held).toBe(0);
  });
});

test('bombs of every encoding at once are refused, and everybody else is served', async () => {
  const sent = ENCODINGS.flatMap(([name, encoding]) => Array(3).fill([encoding, bombOf(name)]));
  const innocent = JSON.stringify({ api_key: anna.projectToken, event: 'innocent', distinct_id: 'u' });
  const packed = zstdCompressSync(innocent);
  const [refused, served] = await Promise.all([
    Promise.all(sent.map(([encoding, body]) => post('/e/', body, { 'content-encoding': encoding }))),
    Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        index % 2 ? post('/e/', innocent) : post('/e/', packed, { 'content-encoding': 'zstd' }),
      ),
    ),
  ]);
  // One that waits too long for its turn is told to come again.
  for (const { statusCode } of refused) expect([413, 503]).toContain(statusCode);
  expect(served.map((answer) => answer.statusCode)).toEqual(served.map(() => 200));
  expect(await count('innocent')).toBe(40);
  const held = await api.registry.getSingleMetric('sluice_capture_held_bytes')?.get();
  expect(held?.values[0]?.value).toBe(0);
});
