import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { EVERYBODY, storeFlag, where } from './support.ts';

let isAway = false;
let proxy: Awaited<ReturnType<typeof startPostgresProxy>>;
let lanePool: Pool;
let app: App;
let tenant: Tenant;
// Before the API's own database is dropped.
afterAll(async () => {
  isAway = false;
  await app?.close();
  await lanePool?.end();
  await proxy?.close();
});
const api = apiForFile();

beforeAll(async () => {
  tenant = await api.createTenant('Anna');
  const url = new URL(api.config.DATABASE_URL as string);
  proxy = await startPostgresProxy({
    behind: Number(url.port),
    watch: () => (isAway ? 'cut' : undefined),
  });
  url.host = `127.0.0.1:${proxy.port}`;
  lanePool = createPool({ url: url.href, name: 'lane', size: 2 });
  app = await api.rebuild({ lanePool });
  const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };
  await storeFlag(api.pool, tenant.projectId, { key: 'everybody', filters: EVERYBODY });
  await storeFlag(api.pool, tenant.projectId, { key: 'acme', filters: where(email) });
  const event = {
    ...{ api_key: tenant.projectToken, event: '$set', distinct_id: 'ann' },
    properties: { $set: { email: 'ann@acme.com' } },
  };
  expect((await api.request(null, 'POST', '/i/v0/e/', event)).statusCode).toBe(200);
});

async function ask(body: object = {}) {
  const payload = { api_key: tenant.projectToken, distinct_id: 'ann', ...body };
  const answer = await app.inject({ method: 'POST', url: '/flags?v=2', payload });
  expect(answer.statusCode).toBe(200);
  const { flags, errorsWhileComputingFlags } = answer.json();
  const codes = Object.values(flags as Record<string, { key: string; reason: { code: string } }>).map(
    (flag) => [flag.key, flag.reason.code],
  );
  return { errors: errorsWhileComputingFlags, ...Object.fromEntries(codes) };
}

test('while the database is away, only flags fail that need what is stored about the person', async () => {
  const right = { errors: false, everybody: 'condition_match', acme: 'condition_match' };
  expect(await ask()).toEqual(right);
  isAway = true;
  for (let times = 0; times < 20; times += 1) {
    expect(await ask()).toEqual({ errors: true, everybody: 'condition_match', acme: 'database_error' });
    const person_properties = { email: 'ann@acme.com' };
    expect(await ask({ person_properties })).toEqual(right);
  }
  // A client of OpenFeature is told to try again.
  const headers = { 'x-api-key': tenant.projectToken };
  const payload = { context: { targetingKey: 'ann' } };
  const url = '/ofrep/v1/evaluate/flags/acme';
  const refused = await app.inject({ method: 'POST', url, headers, payload });
  expect([refused.statusCode, refused.json().errorCode]).toEqual([503, 'GENERAL']);
  isAway = false;
  // The breaker lets one request ask again after a second.
  let answer = await ask();
  for (let times = 0; times < 300 && answer.errors; times += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    answer = await ask();
  }
  expect(answer).toEqual(right);
});
