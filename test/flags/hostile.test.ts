import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { transaction } from '../../db/pool.ts';
import { type Geoip, openGeoip } from '../../geoip/geoip.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { rounds } from '../support/rounds.ts';
import { EVERYBODY, storeFlag, where } from './support.ts';

let geoip: Geoip;
let app: App;
afterAll(async () => {
  await app?.close();
  geoip?.close();
});
// Requests of tests come from this address, as if it were that of a proxy.
const api = apiForFile({ SLUICE_TRUST_PROXY: '127.0.0.1' });
let tenant: Tenant;

beforeAll(async () => {
  tenant = await api.createTenant('Hostile');
  const file = path.join(import.meta.dirname, '../fixtures/geoip/GeoLite2-City-Test.mmdb');
  geoip = await openGeoip({ file });
  app = await api.rebuild({ flagPlace: geoip.flagProperties });
});

const url = (rest = '') => `/api/projects/${tenant.projectId}/feature_flags/${rest}`;
const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };

async function ask(body: string | object, headers: Record<string, string> = {}, from = tenant) {
  const payload = typeof body === 'string' ? body : JSON.stringify({ api_key: from.projectToken, ...body });
  const answer = await app.inject({
    ...{ method: 'POST', url: '/flags?v=2', payload },
    headers: { 'content-type': 'application/json', ...headers },
  });
  return { status: answer.statusCode, ...(answer.statusCode === 200 ? answer.json() : {}) };
}

test('a flag with 10,000 conditions is refused with a sentence, and works where it is stored', async () => {
  const groups = Array.from({ length: 10_000 }, (_, index) => ({
    properties: [{ key: 'number', type: 'person', operator: 'exact', value: String(index) }],
    rollout_percentage: 100,
  }));
  const short = { groups: groups.map(() => ({})) };
  const refused = await api.request(tenant, 'POST', url(), { key: 'many', filters: short });
  expect([refused.statusCode, refused.json().detail]).toEqual([400, expect.stringMatching(/at most/)]);
  const own = await api.createTenant('Many');
  await storeFlag(api.pool, own.projectId, { key: 'many', filters: { groups } });
  const { flags } = await ask({ distinct_id: 'ann', person_properties: { number: 9_999 } }, {}, own);
  expect(flags.many).toMatchObject({ enabled: true, reason: { condition_index: 9_999 } });
});

test('a person with 1 MB of properties', async () => {
  const own = await api.createTenant('Large');
  await storeFlag(api.pool, own.projectId, { key: 'acme', filters: where(email) });
  const properties = { email: 'ann@acme.com', long: randomBytes(500_000).toString('hex') };
  await api.pool.query(
    `with id as (
       insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
       values ($1, 'ann', gen_random_uuid(), 0, now()) returning person_id)
     insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
     select $1, person_id, now(), true, $2, 0, now() from id`,
    [own.projectId, JSON.stringify(properties)],
  );
  const { flags, errorsWhileComputingFlags } = await ask({ distinct_id: 'ann' }, {}, own);
  expect([flags.acme.enabled, errorsWhileComputingFlags]).toEqual([true, false]);
  // The request says 1 MB itself.
  const said = { distinct_id: 'bob', person_properties: properties };
  expect((await ask(said, {}, own)).flags.acme.enabled).toBe(true);
});

test('cohorts that name each other 50 deep', async () => {
  const own = await api.createTenant('Deep');
  const cohorts = `/api/projects/${own.projectId}/cohorts/`;
  let values: unknown[] = [email];
  let id = 0;
  for (let level = 0; level < 50; level += 1) {
    const filters = { properties: { type: 'OR', values: [{ type: 'AND', values }] } };
    const created = await api.request(own, 'POST', cohorts, { name: `level ${level}`, filters });
    expect(created.statusCode).toBe(201);
    id = created.json().id;
    values = [{ key: 'id', type: 'cohort', value: id, negation: true }];
  }
  const filters = where({ key: 'id', type: 'cohort', value: id, operator: 'in' });
  await storeFlag(api.pool, own.projectId, { key: 'deep', filters });
  const of = async (address: string) =>
    (await ask({ distinct_id: 'ann', person_properties: { email: address } }, {}, own)).flags.deep.enabled;
  // 49 negations, one after the other.
  expect([await of('ann@acme.com'), await of('ann@example.com')]).toEqual([false, true]);
});

test('each request sees one consistent set, while definitions change', async () => {
  const own = await api.createTenant('Changing');
  const first = await storeFlag(api.pool, own.projectId, { key: 'first', filters: EVERYBODY });
  const second = await storeFlag(api.pool, own.projectId, { key: 'second', filters: EVERYBODY });
  const change = (number: number) =>
    transaction(api.pool, (client) =>
      client.query('update feature_flags set filters = $2, version = version + 1 where id = any($1)', [
        [first, second],
        JSON.stringify({ ...EVERYBODY, payloads: { true: String(number) } }),
      ]),
    );
  let isOver = false;
  const seen = new Set<string>();
  const watch = async () => {
    while (!isOver) {
      const { flags } = await ask({ distinct_id: 'ann' }, {}, own);
      const [one, other] = [flags.first.metadata, flags.second.metadata];
      expect([one.payload, one.version]).toEqual([other.payload, other.version]);
      seen.add(one.payload);
    }
  };
  const watching = [watch(), watch(), watch()];
  const changes = rounds(40, 1_000);
  for (let number = 0; number < changes; number += 1) await change(number);
  for (let times = 0; times < 500 && !seen.has(String(changes - 1)); times += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  isOver = true;
  await Promise.all(watching);
  expect(seen.has(String(changes - 1))).toBe(true);
});

describe('bodies that people write by hand', () => {
  test.each([
    ['names and texts without double quotes', (token: string) => `{api_key: '${token}', distinct_id: 'ann'}`],
    ['a comma at the end', (token: string) => `{"api_key": "${token}", "distinct_id": "ann",}`],
    ['comments', (token: string) => `// me\n{"api_key": "${token}", /* and */ "distinct_id": "ann"}`],
    [
      ...(['numbers in other notations'] as const),
      (token: string) =>
        `{"api_key": "${token}", "distinct_id": +0x10, person_properties: {a: -Infinity, b: .5}}`,
    ],
    [
      ...(['no numbers'] as const),
      (token: string) => `{"api_key": "${token}", "distinct_id": "ann", "person_properties": {"a": NaN}}`,
    ],
  ])('%s', async (_name, write) => {
    expect((await ask(write(tenant.projectToken))).status).toBe(200);
  });

  test('are refused where they are no JSON of any kind, however deep or long', async () => {
    for (const body of [
      '{',
      '{a}',
      '{"a": undefined}',
      `{a:${'['.repeat(30_000)}`,
      `{a: '${'x'.repeat(100_000)}'}`,
    ]) {
      expect([body.slice(0, 20), (await ask(body)).status]).toEqual([body.slice(0, 20), 400]);
    }
    // No name is special.
    const { status } = await ask(
      `{api_key: '${tenant.projectToken}', distinct_id: 'ann', __proto__: {a: 1}}`,
    );
    expect([status, ({} as { a?: unknown }).a]).toEqual([200, undefined]);
  });
});

describe('the place of the address', () => {
  let own: Tenant;
  const LONDON = '81.2.69.142';
  beforeAll(async () => {
    own = await api.createTenant('Places');
    const country = { key: '$geoip_country_code', type: 'person', operator: 'exact', value: ['GB'] };
    await storeFlag(api.pool, own.projectId, { key: 'british', filters: where(country) });
  });
  const isBritish = async (body: object, headers: Record<string, string>) =>
    (await ask({ distinct_id: 'ann', ...body }, headers, own)).flags.british.enabled;

  test('is that which a trusted proxy names, and not what the client says before it', async () => {
    expect(await isBritish({}, { 'x-forwarded-for': LONDON })).toBe(true);
    expect(await isBritish({}, {})).toBe(false);
    // The last address that no trusted proxy has is that of the client. What stands before it, the client wrote itself.
    expect(await isBritish({}, { 'x-forwarded-for': `${LONDON}, 8.8.8.8` })).toBe(false);
    expect(await isBritish({}, { 'x-forwarded-for': `8.8.8.8, ${LONDON}` })).toBe(true);
  });

  test('counts only where the request says nothing, and not if it forbids it', async () => {
    const headers = { 'x-forwarded-for': LONDON };
    expect(await isBritish({ geoip_disable: true }, headers)).toBe(false);
    expect(await isBritish({ person_properties: { $geoip_country_code: 'FR' } }, headers)).toBe(false);
    expect(await isBritish({ person_properties: { $geoip_country_code: null } }, headers)).toBe(true);
  });

  test('says nothing about the users of a server that asks for one flag by OpenFeature', async () => {
    const british = async (key: string, context = {}) => {
      const answer = await app.inject({
        ...{ method: 'POST', url: `/ofrep/v1/evaluate/flags${key}` },
        headers: { 'x-forwarded-for': LONDON, 'x-api-key': own.projectToken },
        payload: { context: { targetingKey: 'ann', ...context } },
      });
      return (answer.json().flags?.[0] ?? answer.json()).value;
    };
    expect([
      await british('/british'),
      await british(''),
      await british('', { $geoip_disable: true }),
    ]).toEqual([false, true, false]);
  });

  test('is not taken from a header where no proxy is trusted', async () => {
    const untrusting = await api.rebuild({
      flagPlace: geoip.flagProperties,
      config: { ...api.config, SLUICE_TRUST_PROXY: '' },
    });
    const answer = await untrusting.inject({
      ...{ method: 'POST', url: '/flags?v=2', headers: { 'x-forwarded-for': LONDON } },
      payload: { api_key: own.projectToken, distinct_id: 'ann' },
    });
    await untrusting.close();
    expect(answer.json().flags.british.enabled).toBe(false);
  });
});
