import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance } from 'fastify';
import { serializerCompiler } from 'fastify-type-provider-zod';
import { captureRoutes } from '../../api/capture/routes.ts';
import { createFlags } from '../../api/flags/dependencies.ts';
import { createRequestDurations } from '../../api/http-metrics.ts';
import { Gates, newTicket } from '../../api/public/gate.ts';
import { type Lane, openLane } from '../../api/public/lane.ts';
import { remoteConfigRoutes } from '../../api/remote-config.ts';
import { createOfferedSurveys } from '../../api/surveys/offered.ts';
import { createWarnings } from '../../capture/warnings.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
const KIB = 1024;

/** A further product, whole: its route answers with the body, and waits where `pause` says so. */
function echoRoutes(lane: Lane, pause: (body: string) => Promise<void>): void {
  const { add } = lane.join({
    name: 'echo',
    tag: 'echo',
    share: { held: 3 * KIB, atWork: KIB, unpacking: 1 },
    largestBody: { bytes: 2 * KIB, refusal: 'An echo has at most 2048 bytes.' },
  });
  add('POST', '/echo/', async ({ request, body }) => {
    const { id } = await lane.keys.authenticate(request.headers['x-key']);
    await pause(body.toString());
    return { status: 200, body: JSON.stringify({ project: id, bytes: body.length }) };
  });
}

let lane: Lane;
let app: FastifyInstance;
let anna: Tenant;
let pause: (body: string) => Promise<void> = async () => undefined;
const registry = createRegistry('lane');

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  const { pool, listener, ingest } = api;
  const warnings = createWarnings({ queryable: pool });
  const flags = createFlags({
    lanePool: pool,
    listener,
    logger: createLogger({ name: 'test', level: 'silent' }),
    isPrepared: () => true,
    registry,
    config: api.config,
  });
  app = Fastify();
  app.setSerializerCompiler(serializerCompiler);
  app.addHook('onClose', () => warnings.close());
  const durations = createRequestDurations(registry);
  await app.register(async (site) => {
    lane = openLane(site, { lanePool: pool, listener, durations, isPrepared: () => true });
    captureRoutes(lane, {
      ingest,
      registry,
      warnings,
      logger: createLogger({ name: 'test', level: 'silent' }),
    });
    const surveys = createOfferedSurveys({ lanePool: pool, listener, isPrepared: () => true });
    lane.onClose(() => surveys.close());
    remoteConfigRoutes(lane, { lanePool: pool, listener, flags, surveys, isPrepared: () => true });
    echoRoutes(lane, (body) => pause(body));
  });
  await app.ready();
});
afterAll(() => app.close());

const echo = async (payload: string, key = anna.projectToken) => {
  const headers = { 'x-key': key, origin: 'https://shop.example.com' };
  const answer = await app.inject({ method: 'POST', url: '/echo/', headers, payload });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
};
const send = async (url: string, body: object) =>
  (await app.inject({ method: 'POST', url, payload: { api_key: anna.projectToken, ...body } })).statusCode;

describe('a further product of the public lane', () => {
  test('answers beside the others, with keys, limits, CORS and metrics of the lane', async () => {
    expect(await echo('hello')).toMatchObject({
      status: 200,
      headers: { 'access-control-allow-origin': 'https://shop.example.com', vary: 'Origin' },
      body: { project: anna.projectId, bytes: 5 },
    });
    expect(await echo('hello', 'phc_nobody')).toMatchObject({
      status: 401,
      body: { detail: 'API key is not valid: unknown' },
    });
    expect(await echo('x'.repeat(2 * KIB + 1))).toMatchObject({
      status: 413,
      body: { code: 'request_too_large', detail: 'An echo has at most 2048 bytes.' },
    });
    const asked = await app.inject({ method: 'OPTIONS', url: '/echo/' });
    expect([asked.statusCode, asked.headers['access-control-allow-methods']]).toEqual([
      200,
      'GET, HEAD, POST, OPTIONS',
    ]);
    const metrics = await registry.metrics();
    expect(metrics).toMatch(/sluice_http_request_seconds_count\{[^}]*route="\/echo\/",status="413"[^}]*\} 1/);
  });

  test('is refused above its share with 503, while capture and remote config still answer', async () => {
    let entered = () => {};
    let release = () => {};
    const inside = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    pause = async (body) => {
      if (!body.startsWith('wait')) return;
      entered();
      await released;
    };
    const waiting = echo('wait'.padEnd(2 * KIB));
    await inside;
    expect(await echo('x'.repeat(2 * KIB))).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { code: 'unavailable', detail: 'Too many large requests at once. Send it again.' },
    });
    expect((await echo('x'.repeat(KIB))).status).toBe(200);
    const large = { event: 'large', distinct_id: 'u', properties: { text: 'x'.repeat(300 * KIB) } };
    expect(await send('/e/', large)).toBe(200);
    expect(await send('/decide/', { distinct_id: 'u', text: 'x'.repeat(300 * KIB) })).toBe(200);
    release();
    expect((await waiting).status).toBe(200);
    expect((await echo('x'.repeat(2 * KIB))).status).toBe(200);
  });

  test('joins only with a share that the others leave and its largest body fits', () => {
    const join = (held: number, atWork: number) =>
      lane.join({
        name: 'greedy',
        tag: 'greedy',
        share: { held, atWork, unpacking: 0 },
        largestBody: { bytes: KIB, refusal: 'Too large.' },
      });
    expect(() => join(100 * KIB * KIB, KIB)).toThrow(
      /^The gate of greedy needs 104857600 \(held\), but other products leave only \d+ of the total/,
    );
    expect(() => join(KIB, 100 * KIB * KIB)).toThrow('(atWork)');
    expect(() => join(KIB - 1, KIB)).toThrow(
      'greedy accepts bodies of 1024 bytes, but its share holds 1023.',
    );
  });
});

test('the shares of all gates are at most the total, and none takes what is of another', () => {
  const ticket = newTicket;
  const gates = new Gates({ held: 1_000, atWork: 100, unpacking: 3 });
  const first = gates.open('first', { held: 600, atWork: 40, unpacking: 2 });
  const second = gates.open('second', { held: 400, atWork: 60, unpacking: 1 });
  for (const share of [
    { held: 1, atWork: 0, unpacking: 0 },
    { held: 0, atWork: 1, unpacking: 0 },
    { held: 0, atWork: 0, unpacking: 1 },
  ]) {
    expect(() => gates.open('third', share)).toThrow('The gate of third needs 1 (');
  }
  first.hold(ticket(), 600);
  expect(() => first.hold(ticket(), 1)).toThrow('Too many large requests at once');
  second.hold(ticket(), 400);
  expect([first.held, second.held]).toEqual([600, 400]);
});
