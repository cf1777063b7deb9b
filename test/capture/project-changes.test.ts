import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { buildApp } from '../../api/app.ts';
import type { App } from '../../api/dependencies.ts';
import { createListener, type Listener } from '../../db/listen.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

// Registered before the API's own hook, so that it runs before the database goes.
let other: App;
let ears: Listener;
afterAll(async () => {
  await other?.close();
  await ears?.close();
});
const api = apiForFile();

beforeAll(async () => {
  ears = createListener({ url: api.config.DATABASE_URL as string, name: 'other' });
  other = await buildApp({
    products: api.products,
    config: api.config,
    pool: api.pool,
    listener: ears,
    ingest: api.ingest,
    schedules: api.schedules,
    compiler: api.compiler,
    egress: api.egress,
    keyring: api.keyring,
    logger: createLogger({ name: 'other', level: 'silent' }),
    registry: createRegistry('other'),
    isPrepared: () => true,
    isDraining: () => false,
  });
  await other.ready();
  await bothListen();
});

const bothListen = () => eventually(async () => api.listener.isListening() && ears.isListening());

async function send(app: App, token: string, event = 'e'): Promise<number> {
  const body = { api_key: token, event, distinct_id: 'u', properties: { $ip: '1.2.3.4' } };
  return (await app.inject({ method: 'POST', url: '/e/', payload: body })).statusCode;
}

/** What both processes answer for a key. While they listen, an answer is remembered for a minute. */
const both = async (token: string) => [await send(api.app, token), await send(other, token)];
const soonBoth = (token: string, status: number) =>
  eventually(async () => (await both(token)).every((one) => one === status));

async function rotate(tenant: Tenant): Promise<string> {
  const answer = await api.request(tenant, 'PATCH', `/api/projects/${tenant.projectId}/reset_token/`);
  expect(answer.statusCode).toBe(200);
  return answer.json().api_token;
}

test('a rotated key takes effect in every process at once, also where the new one was refused before', async () => {
  const anna = await api.createTenant('Anna');
  expect(await both(anna.projectToken)).toEqual([200, 200]);
  const next = await rotate(anna);
  await soonBoth(anna.projectToken, 401);
  expect(await both(next)).toEqual([200, 200]);
  expect(await both('phc_to_come')).toEqual([401, 401]);
  await api.pool.query(`update projects set api_token = 'phc_to_come' where id = $1`, [anna.projectId]);
  await soonBoth('phc_to_come', 200);
  expect(await both(next)).toEqual([401, 401]);
});

test('so does a setting', async () => {
  const ben = await api.createTenant('Ben');
  expect(await both(ben.projectToken)).toEqual([200, 200]);
  const answer = await api.request(ben, 'PATCH', `/api/projects/${ben.projectId}/`, { anonymize_ips: true });
  expect(answer.statusCode).toBe(200);
  for (const app of [api.app, other]) {
    let attempt = 0;
    await eventually(async () => {
      attempt += 1;
      const name = `anonymous ${app === other} ${attempt}`;
      await send(app, ben.projectToken, name);
      const { rows } = await api.pool.query(
        `select properties ->> '$ip' as ip from events where project_id = $1 and event = $2`,
        [ben.projectId, name],
      );
      return rows[0].ip === null;
    });
  }
});

test('so does a deletion, of a project and of its organization', async () => {
  const [carl, dora] = [await api.createTenant('Carl'), await api.createTenant('Dora')];
  expect([await both(carl.projectToken), await both(dora.projectToken)]).toEqual([
    [200, 200],
    [200, 200],
  ]);
  expect((await api.request(carl, 'DELETE', `/api/projects/${carl.projectId}/`)).statusCode).toBe(204);
  expect((await api.request(dora, 'DELETE', `/api/organizations/${dora.organizationId}/`)).statusCode).toBe(
    204,
  );
  await soonBoth(carl.projectToken, 401);
  await soonBoth(dora.projectToken, 401);
});

test('a change made while nobody could hear it takes effect when the connection is back', async () => {
  const emil = await api.createTenant('Emil');
  expect(await both(emil.projectToken)).toEqual([200, 200]);
  // In one transaction, so that the connections are gone before the change is told.
  const client = await api.pool.connect();
  await client.query('begin');
  await client.query(`update projects set api_token = 'phc_unheard' where id = $1`, [emil.projectId]);
  const { rowCount } = await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = any($1) and datname = current_database()`,
    [['sluice-test-listener', 'sluice-other']],
  );
  await client.query('commit');
  client.release();
  expect(rowCount).toBe(2);
  await soonBoth(emil.projectToken, 401);
  expect(await both('phc_unheard')).toEqual([200, 200]);
  await bothListen();
});
