import { beforeAll, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { queriesOf } from '../support/query-log.ts';

const MOST = 10;
const api = apiForFile({ SLUICE_REFUSALS_PER_MINUTE: String(MOST) });
let anna: Tenant;
let ben: Tenant;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  ben = await api.createTenant('Ben');
});

const ask = (key: string, url = '/api/users/@me/', remoteAddress = '10.0.0.1') =>
  api.app.inject({ url, headers: { authorization: `Bearer ${key}` }, remoteAddress });
const statuses = async (count: number, one: (n: number) => ReturnType<typeof ask>) => {
  const found: number[] = [];
  for (let n = 0; n < count; n += 1) found.push((await one(n)).statusCode);
  return found;
};

test('keys that nobody has are looked up so often for an address, and lock out no key that is known', async () => {
  expect((await ask(anna.key)).statusCode).toBe(200);
  expect(await statuses(MOST, (n) => ask(`phx_guess_${n}`))).toEqual(Array(MOST).fill(401));
  const { result: refused, queries } = await queriesOf(() => ask('phx_another_guess'));
  expect([refused.statusCode, refused.json().code, queries]).toEqual([429, 'throttled', []]);
  expect(refused.headers['retry-after']).toMatch(/^[1-6]$/);
  // A key that was right before is right here too. One that this process has not seen waits, or comes from elsewhere.
  expect((await ask(anna.key)).statusCode).toBe(200);
  expect((await ask(ben.key)).statusCode).toBe(429);
  expect((await ask(ben.key, '/api/users/@me/', '10.0.0.2')).statusCode).toBe(200);
  expect((await ask(ben.key)).statusCode).toBe(200);
});

test('a key that nobody has is looked up once', async () => {
  const from = (n: number) => ask('phx_the_same', '/api/users/@me/', `10.0.1.${n}`);
  expect((await from(1)).statusCode).toBe(401);
  const { result, queries } = await queriesOf(() => from(2));
  expect([result.statusCode, queries]).toEqual([401, []]);
});

test('a key that has expired works again as soon as it may', async () => {
  const from = '10.0.3.1';
  const { id, value } = await api.createKey(anna);
  const expire = (at: string) =>
    api.pool.query('update personal_api_keys set expires_at = $2 where id = $1', [id, at]);
  expect((await ask(value, '/api/users/@me/', from)).statusCode).toBe(200);
  await expire('2020-01-01');
  expect(await statuses(MOST, () => ask(value, '/api/users/@me/', from))).toEqual(Array(MOST).fill(401));
  // It is not known any more, so it counts like any other wrong key.
  expect((await ask(value, '/api/users/@me/', from)).statusCode).toBe(429);
  await expire('2100-01-01');
  expect((await ask(value, '/api/users/@me/', '10.0.3.2')).statusCode).toBe(200);
});

test('a key that is refused too often with 403 or 404 waits, and no other key of its user does', async () => {
  const other = await api.createKey(anna);
  const read = await api.createKey(anna, { scopes: ['project:read'] });
  const elsewhere = `/api/projects/${ben.projectId}/`;
  expect(await statuses(MOST, () => ask(other.value, elsewhere, '10.0.2.1'))).toEqual(Array(MOST).fill(404));
  const { result: refused, queries } = await queriesOf(() => ask(other.value, elsewhere, '10.0.2.2'));
  expect([refused.statusCode, refused.json().code, queries]).toEqual([429, 'throttled', []]);
  expect((await ask(anna.key, '/api/users/@me/', '10.0.2.1')).statusCode).toBe(200);
  expect(await statuses(MOST, () => ask(read.value, '/api/users/@me/', '10.0.2.1'))).toEqual(
    Array(MOST).fill(403),
  );
  expect((await ask(read.value, '/api/users/@me/', '10.0.2.1')).statusCode).toBe(429);
});
