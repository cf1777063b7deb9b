import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { buildApp } from '../../api/app.ts';
import type { App } from '../../api/dependencies.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { apiForFile } from '../support/api.ts';

const BURST = 5;
const SUSTAINED = 8;
// Hooks run in the order of their definition: this one before the database goes.
afterAll(() => second?.close());
const api = apiForFile({
  SLUICE_RATE_LIMIT: 'true',
  SLUICE_RATE_LIMIT_BURST: String(BURST),
  SLUICE_RATE_LIMIT_SUSTAINED: String(SUSTAINED),
});
let second: App;

beforeAll(async () => {
  second = await buildApp({
    products: api.products,
    config: api.config,
    pool: api.pool,
    listener: api.listener,
    ingest: api.ingest,
    schedules: api.schedules,
    compiler: api.compiler,
    egress: api.egress,
    keyring: api.keyring,
    logger: createLogger({ name: 'test', level: 'silent' }),
    registry: createRegistry('second'),
    isPrepared: () => true,
    isDraining: () => false,
  });
});

const ask = (key: string, app = api.app, remoteAddress = '10.0.0.1') =>
  app.inject({ url: '/api/users/@me/', headers: { authorization: `Bearer ${key}` }, remoteAddress });
const limits = ({ headers }: { headers: Record<string, unknown> }) => [
  headers['x-ratelimit-limit'],
  headers['x-ratelimit-remaining'],
];
/** As if a minute had passed: the counters of the short window are over. */
const nextMinute = () => api.pool.query(`update rate_limits set expire = 0 where key like 'burst:%'`);

describe('rate limits', () => {
  test('count down, refuse with 429 and say when to come back', async () => {
    const { key } = await api.createTenant('Anna');
    for (let left = BURST - 1; left >= 0; left -= 1) {
      const answer = await ask(key);
      expect([answer.statusCode, ...limits(answer)]).toEqual([200, String(BURST), String(left)]);
    }
    const refused = await ask(key);
    const seconds = Number(refused.headers['retry-after']);
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(refused.headers['x-ratelimit-reset']).toBe(String(seconds));
    expect([refused.statusCode, refused.json()]).toEqual([
      429,
      {
        type: 'throttled_error',
        code: 'throttled',
        detail: `Request was throttled. Expected available in ${seconds} second${seconds === 1 ? '' : 's'}.`,
        attr: null,
      },
    ]);
  });

  test('hold in two windows', async () => {
    const { key } = await api.createTenant('Ben');
    for (let n = 0; n < BURST; n += 1) await ask(key);
    await nextMinute();
    const statuses: number[] = [];
    for (let n = 0; n < SUSTAINED - BURST + 1; n += 1) statuses.push((await ask(key)).statusCode);
    expect(statuses).toEqual([200, 200, 200, 429]);
    const refused = await ask(key);
    expect(refused.headers['retry-after']).toMatch(/^3[56]\d\d$/);
    expect(limits(refused)).toEqual([String(SUSTAINED), '0']);
  });

  test('are shared by two API processes, also under fire', async () => {
    const { key } = await api.createTenant('Cleo');
    const answers = await Promise.all(
      Array.from({ length: 4 * BURST }, (_, n) => ask(key, n % 2 === 0 ? api.app : second)),
    );
    expect(answers.filter((one) => one.statusCode === 200)).toHaveLength(BURST);
    expect(answers.filter((one) => one.statusCode === 429)).toHaveLength(3 * BURST);
  });

  test('are of each key alone, wherever it is used from', async () => {
    const dora = await api.createTenant('Dora');
    const other = await api.createKey(dora);
    for (let n = 0; n < BURST; n += 1) await ask(dora.key, api.app, `10.0.1.${n}`);
    expect((await ask(dora.key)).statusCode).toBe(429);
    expect((await ask(other.value)).statusCode).toBe(200);
  });

  test('count nothing for requests that were refused before', async () => {
    const { key, organizationId } = await api.createTenant('Eve');
    const eve2 = await api.createTenant('Eve 2');
    for (let n = 0; n < 2 * BURST; n += 1) {
      const url = `/api/organizations/${eve2.organizationId}/`;
      expect((await api.request(key, 'GET', url)).statusCode).toBe(404);
    }
    expect(limits(await api.request(key, 'GET', `/api/organizations/${organizationId}/`))).toEqual([
      String(BURST),
      String(BURST - 1),
    ]);
  });

  test('of routes without a key count by address', async () => {
    const begin = (remoteAddress: string) =>
      api.app.inject({ method: 'POST', url: '/api/wizard/initialize/', remoteAddress });
    const statuses: number[] = [];
    for (let n = 0; n < BURST + 1; n += 1) statuses.push((await begin('10.0.2.1')).statusCode);
    expect(statuses).toEqual([...Array(BURST).fill(200), 429]);
    expect((await begin('10.0.2.2')).statusCode).toBe(200);
  });

  test('of the wizard are twenty a day for a user, whatever the key', async () => {
    const finn = await api.createTenant('Finn');
    const other = await api.createKey(finn);
    const url = `/api/organizations/${finn.organizationId}/authenticate_wizard/`;
    const statuses: number[] = [];
    for (let n = 0; n < 21; n += 1) {
      statuses.push(
        (await api.request(n % 2 ? finn.key : other.value, 'POST', url, { hash: 'x' })).statusCode,
      );
    }
    expect(statuses).toEqual([...Array(20).fill(400), 429]);
  });

  test('never touch health', async () => {
    for (let n = 0; n < 3 * BURST; n += 1) {
      expect((await api.request(null, 'GET', '/_livez')).statusCode).toBe(200);
    }
  });
});

describe('without the switch', () => {
  const free = apiForFile();
  test('nothing is counted and no header tells of limits', async () => {
    const anna = await free.createTenant('Anna');
    for (let n = 0; n < 3 * BURST; n += 1) {
      const answer = await free.request(anna, 'GET', '/api/users/@me/');
      expect([answer.statusCode, answer.headers['x-ratelimit-limit']]).toEqual([200, undefined]);
    }
    const { rows } = await free.pool.query('select * from rate_limits');
    expect(rows).toEqual([]);
  });
});
