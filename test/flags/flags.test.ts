import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { EVERYBODY, storeCohort, storeFlag, where } from './support.ts';

const api = apiForFile();
const USER = '0d0c2a4e-6a52-4b5f-9f53-2a7d0f9c1b11';
const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };

/** A project with flags of its own, so that tests do not see each other's. */
async function projectWith(name: string, flags: Parameters<typeof storeFlag>[2][]): Promise<Tenant> {
  const tenant = await api.createTenant(name);
  for (const flag of flags) await storeFlag(api.pool, tenant.projectId, flag);
  return tenant;
}

async function ask(tenant: Tenant, body: object = {}, query = 'v=2', headers = {}) {
  const payload = { api_key: tenant.projectToken, distinct_id: USER, ...body };
  return api.request(null, 'POST', `/flags/?${query}`, payload, headers);
}

async function flagsOf(tenant: Tenant, body: object = {}, headers = {}) {
  return (await ask(tenant, body, 'v=2', headers)).json().flags;
}

async function person(tenant: Tenant, distinctId: string, properties: object) {
  const event = { event: '$set', distinct_id: distinctId, properties: { $set: properties } };
  const payload = { api_key: tenant.projectToken, ...event };
  const answer = await api.request(null, 'POST', '/i/v0/e/', payload);
  expect(answer.statusCode).toBe(200);
}

describe('the answer', () => {
  let tenant: Tenant;
  beforeAll(async () => {
    tenant = await projectWith('answers', [
      { key: 'on', filters: { ...EVERYBODY, payloads: { true: '{"color":"blue"}' } } },
      { key: 'off', filters: { groups: [{ properties: [email], rollout_percentage: 100 }] } },
      { key: 'inactive', filters: EVERYBODY, active: false },
      {
        key: 'new-checkout',
        filters: {
          ...EVERYBODY,
          multivariate: {
            variants: [
              { key: 'control', rollout_percentage: 50 },
              { key: 'test', rollout_percentage: 30 },
              { key: 'test2', rollout_percentage: 20 },
            ],
          },
          payloads: { test2: '1.0' },
        },
      },
    ]);
  });

  test('tells each flag with its reason and payload', async () => {
    const answer = await ask(tenant, { distinct_id: 'user-2' });
    expect(answer.statusCode).toBe(200);
    const { requestId, evaluatedAt, ...rest } = answer.json();
    expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(evaluatedAt).toBeGreaterThan(1_700_000_000_000);
    expect(rest.errorsWhileComputingFlags).toBe(false);
    expect(Object.keys(rest)).toEqual(['errorsWhileComputingFlags', 'flags']);
    const metadata = { id: expect.any(Number), version: 1, description: null, has_experiment: false };
    expect(rest.flags).toEqual({
      on: {
        ...{ key: 'on', enabled: true, variant: null },
        reason: { code: 'condition_match', condition_index: 0, description: 'Matched condition set 1' },
        metadata: { ...metadata, payload: '{"color":"blue"}' },
      },
      off: {
        ...{ key: 'off', enabled: false, variant: null },
        reason: {
          ...{ code: 'no_condition_match', condition_index: 0 },
          description: 'No matching condition set',
        },
        metadata: { ...metadata, payload: null },
      },
      'new-checkout': {
        ...{ key: 'new-checkout', enabled: true, variant: 'test2' },
        reason: { code: 'condition_match', condition_index: 0, description: 'Matched condition set 1' },
        metadata: { ...metadata, payload: '1.0' },
      },
    });
  });

  test('has the forms of older clients', async () => {
    const values = { on: true, off: false, 'new-checkout': 'test2' };
    const payloads = { on: '{"color":"blue"}', 'new-checkout': '1.0' };
    const user = { distinct_id: 'user-2' };
    const first = (await ask(tenant, user, 'v=1')).json();
    expect(first).toMatchObject({ featureFlags: values, featureFlagPayloads: payloads });
    expect(first).not.toHaveProperty('flags');
    expect((await ask(tenant, user, 'config=true')).json()).toMatchObject({
      featureFlags: values,
      hasFeatureFlags: true,
      config: { enable_collect_everything: true },
    });
    const decide = async (version: string) => {
      const payload = { api_key: tenant.projectToken, ...user };
      return (await api.request(null, 'POST', `/decide/${version}`, payload)).json();
    };
    expect((await decide('')).featureFlags.sort()).toEqual(['new-checkout', 'on']);
    for (const version of ['?v=2', '?v=2&v=1.19.0', '?v=1.19.0&v=2']) {
      expect((await decide(version)).featureFlags).toEqual({ on: true, 'new-checkout': 'test2' });
    }
    expect(await decide('?v=3')).toMatchObject({
      ...{ featureFlags: values, featureFlagPayloads: payloads },
      errorsWhileComputingFlags: false,
    });
    expect((await decide('?v=4')).flags.on.enabled).toBe(true);
  });

  test('has the settings of clients if both parameters are missing, or if they are asked for', async () => {
    for (const query of ['', 'v=2&config=true']) {
      expect((await ask(tenant, {}, query)).json()).toMatchObject({
        flags: { on: { enabled: true } },
        supportedCompression: ['gzip', 'gzip-js', 'lz64'],
        isAuthenticated: false,
        toolbarParams: {},
        config: { enable_collect_everything: true },
      });
    }
    expect((await ask(tenant, {}, 'v=2')).json()).not.toHaveProperty('config');
  });

  test('repeats the id of a request', async () => {
    const id = '5b3ab0b4-9d3f-4d80-9a06-7ff2f9e0fa7c';
    expect((await ask(tenant, {}, 'v=2', { 'x-request-id': id })).json().requestId).toBe(id);
  });

  test('has only the flags that are asked for', async () => {
    expect(Object.keys(await flagsOf(tenant, { flag_keys: ['on', 'unknown'] }))).toEqual(['on']);
    expect(await flagsOf(tenant, { disable_flags: true })).toEqual({});
    const payload = { api_key: tenant.projectToken, disable_flags: true };
    expect((await api.request(null, 'POST', '/flags?v=2', payload)).statusCode).toBe(200);
  });
});

describe('requests', () => {
  let tenant: Tenant;
  beforeAll(async () => {
    tenant = await projectWith('requests', [{ key: 'on', filters: EVERYBODY }]);
  });

  test('may have any form that clients send', async () => {
    const json = JSON.stringify({ token: tenant.projectToken, distinct_id: 7, extra: [] });
    const base64 = Buffer.from(json).toString('base64');
    const withPlus = Buffer.from(json.replace('[]', '"~~~>>>"')).toString('base64');
    expect(withPlus).toContain('+');
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const cases: [query: string, body: string | Buffer, headers: Record<string, string>][] = [
      ['', json, { 'content-type': 'application/json' }],
      ['', json, { 'content-type': 'text/plain' }],
      ['', gzipSync(json), { 'content-type': 'text/plain' }],
      ['&compression=gzip-js', gzipSync(json), { 'content-type': 'text/plain' }],
      ['', gzipSync(json), { 'content-type': 'application/json', 'content-encoding': 'gzip' }],
      ['', json, { 'content-type': 'application/json', 'content-encoding': 'gzip' }],
      ['&compression=base64', base64, { 'content-type': 'text/plain' }],
      ['&compression=base64', `data=${encodeURIComponent(base64)}`, form],
      ['', `data=${encodeURIComponent(json)}`, form],
      ['', `data=${base64.slice(0, 17)} ${base64.slice(17)}`, form],
      ['', `data=${withPlus}`, form],
      ['', json.replace('"extra":[]', '"extra":NaN,"text":"NaN"'), { 'content-type': 'application/json' }],
    ];
    for (const [query, body, headers] of cases) {
      const answer = await api.request(null, 'POST', `/flags/?v=2${query}`, body, headers);
      expect([answer.statusCode, answer.body.slice(0, 80)]).toEqual([
        200,
        expect.stringContaining('"flags":{"on"'),
      ]);
    }
  });

  test('that cannot be read are refused with what is wrong', async () => {
    const json = { 'content-type': 'application/json' };
    const cases: [body: string | Buffer, headers: Record<string, string>, status: number, text: string][] = [
      ['{', json, 400, 'Failed to decode request: invalid JSON.'],
      ['[]', json, 400, 'the body must be an object'],
      [gzipSync('{'), { 'content-type': 'text/plain' }, 400, 'invalid JSON'],
      [Buffer.from('1f8b0001', 'hex'), { 'content-type': 'text/plain' }, 400, 'invalid GZIP data'],
      ['{}', { 'content-type': 'application/xml' }, 400, 'unsupported content type: application/xml'],
      ['{"token":1}', json, 400, 'token must be a string'],
      ['{"token":"phc_x","distinct_id":[]}', json, 400, 'distinct_id must be'],
      ['{"distinct_id":"a"}', json, 401, 'No API token provided.'],
      ['{"token":"","distinct_id":"a"}', json, 401, 'No API token provided.'],
      ['{"token":"phc_nobody","distinct_id":"a"}', json, 401, 'The provided API key is invalid'],
      [`{"token":"${'x'.repeat(500)}","distinct_id":"a"}`, json, 401, 'The provided API key is invalid'],
      [JSON.stringify({ token: tenant.projectToken }), json, 400, 'The distinct_id field is missing'],
      [gzipSync(Buffer.alloc(3_000_000, ' ')), { 'content-type': 'text/plain' }, 413, 'larger than'],
    ];
    for (const [body, headers, status, text] of cases) {
      const answer = await api.request(null, 'POST', '/flags/?v=2', body, headers);
      expect([answer.statusCode, answer.body]).toEqual([status, expect.stringContaining(text)]);
    }
    for (const headers of [json, { 'content-type': 'application/x-www-form-urlencoded' }]) {
      const lz = await api.request(null, 'POST', '/flags/?compression=lz64', '{}', headers);
      expect([lz.statusCode, lz.body]).toEqual([
        400,
        expect.stringContaining('Unsupported compression type'),
      ]);
    }
  });

  test('with other methods get what clients look for', async () => {
    expect((await api.request(null, 'GET', '/flags/')).json()).toMatchObject({ flags: {} });
    expect((await api.request(null, 'HEAD', '/flags')).statusCode).toBe(200);
    expect((await api.request(null, 'PUT', '/flags')).statusCode).toBe(405);
  });
});

describe('what flags know of a user', () => {
  test('is stored, and what the request says counts more', async () => {
    const tenant = await projectWith('stored', [{ key: 'acme', filters: where(email) }]);
    expect((await flagsOf(tenant)).acme.enabled).toBe(false);
    await person(tenant, USER, { email: 'ann@acme.com' });
    expect((await flagsOf(tenant)).acme.enabled).toBe(true);
    const other = { person_properties: { email: 'ann@example.com' } };
    expect((await flagsOf(tenant, other)).acme.enabled).toBe(false);
  });

  test('keeps the spelling of numbers', async () => {
    const exact = (value: string) =>
      `{"groups":[{"properties":[{"key":"n","type":"person","operator":"exact","value":${value}}]}]}`;
    const tenant = await projectWith('numbers', [
      { key: 'one', filters: exact('1') },
      { key: 'one-point', filters: exact('1.0') },
      { key: 'large', filters: exact('9007199254740993') },
    ]);
    const on = async (n: string) => {
      const body = `{"token":"${tenant.projectToken}","distinct_id":"a","person_properties":{"n":${n}}}`;
      const answer = await api.request(null, 'POST', '/flags?v=1', body, {
        'content-type': 'application/json',
      });
      const { featureFlags } = answer.json();
      return Object.keys(featureFlags).filter((key) => featureFlags[key]);
    };
    expect(await on('1')).toEqual(['one']);
    expect(await on('1.0')).toEqual(['one-point']);
    expect(await on('9007199254740993')).toEqual(['large']);
    expect(await on('9007199254740992')).toEqual([]);
    expect(await on('"1.0"')).toEqual(['one-point']);
  });

  test('comes from its groups too', async () => {
    const tenant = await projectWith('groups', [
      {
        key: 'big',
        filters: {
          aggregation_group_type_index: 0,
          groups: [
            {
              properties: [{ key: 'size', type: 'group', group_type_index: 0, operator: 'gt', value: '100' }],
              rollout_percentage: 100,
            },
          ],
        },
      },
    ]);
    const event = {
      ...{ event: '$groupidentify', distinct_id: 'x' },
      properties: { $group_type: 'company', $group_key: 'acme', $group_set: { size: 250 } },
    };
    await api.request(null, 'POST', '/i/v0/e/', { api_key: tenant.projectToken, ...event });
    expect((await flagsOf(tenant)).big.reason.code).toBe('no_group_type');
    expect((await flagsOf(tenant, { groups: { company: 'acme' } })).big.enabled).toBe(true);
    expect((await flagsOf(tenant, { groups: { company: 'other' } })).big.enabled).toBe(false);
    const given = { groups: { company: 'acme' }, group_properties: { company: { size: 1 } } };
    expect((await flagsOf(tenant, given)).big.enabled).toBe(false);
  });

  test('includes its cohorts, of both kinds, and nested ones', async () => {
    const tenant = await api.createTenant('cohorts');
    const { pool } = api;
    const vips = await storeCohort(pool, tenant.projectId, { name: 'vips', isStatic: true });
    const acme = await storeCohort(pool, tenant.projectId, {
      name: 'acme',
      properties: { type: 'OR', values: [{ type: 'AND', values: [email] }] },
    });
    const both = await storeCohort(pool, tenant.projectId, {
      name: 'both',
      properties: {
        type: 'AND',
        values: [
          { type: 'cohort', key: 'id', value: vips },
          { type: 'cohort', key: 'id', value: acme },
        ],
      },
    });
    const cohort = (value: number, operator = 'in') => where({ type: 'cohort', key: 'id', value, operator });
    await storeFlag(pool, tenant.projectId, { key: 'vip', filters: cohort(vips) });
    await storeFlag(pool, tenant.projectId, { key: 'both', filters: cohort(both) });
    await storeFlag(pool, tenant.projectId, { key: 'others', filters: cohort(acme, 'not_in') });
    await storeFlag(pool, tenant.projectId, { key: 'lost', filters: cohort(999_999) });
    await storeFlag(pool, tenant.projectId, { key: 'fine', filters: EVERYBODY });
    await person(tenant, USER, { email: 'ann@acme.com' });
    await pool.query(
      `insert into cohort_people (project_id, cohort_id, person_id)
       select project_id, $2, person_id from person_distinct_ids where project_id = $1`,
      [tenant.projectId, vips],
    );
    const answer = (await ask(tenant)).json();
    const on = Object.values(answer.flags as Record<string, { key: string; enabled: boolean }>);
    expect(on.flatMap((one) => (one.enabled ? one.key : [])).toSorted()).toEqual(['both', 'fine', 'vip']);
    expect(answer.errorsWhileComputingFlags).toBe(true);
    expect(answer.flags.lost).toMatchObject({
      ...{ enabled: false, failed: true },
      reason: { code: 'dependency_not_found_cohort', description: 'Cohort dependency not found' },
    });
    expect((await flagsOf(tenant, { distinct_id: 'nobody' })).others.enabled).toBe(true);
  });
});

describe('flags that depend on flags', () => {
  test('see their values; circles and missing flags fail only those concerned', async () => {
    const tenant = await api.createTenant('dependencies');
    const { pool } = api;
    const add = (key: string, filters: unknown, active = true) =>
      storeFlag(pool, tenant.projectId, { key, filters, active });
    const on = (id: number, value: unknown = true) =>
      where({ type: 'flag', key: String(id), operator: 'flag_evaluates_to', value });
    const base = await add('base', EVERYBODY);
    const off = await add('off', EVERYBODY, false);
    await add('child', on(base));
    await add('not-child', on(base, false));
    await add('of-inactive', on(off, false));
    await add('of-missing', on(987_654));
    const one = await add('circle-1', EVERYBODY);
    const two = await add('circle-2', on(one));
    await pool.query('update feature_flags set filters = $2 where id = $1', [one, JSON.stringify(on(two))]);
    const answer = (await ask(tenant)).json();
    const values = Object.entries(answer.flags as Record<string, { enabled: boolean }>);
    expect(Object.fromEntries(values.map(([key, flag]) => [key, flag.enabled]))).toEqual({
      ...{ base: true, child: true, 'not-child': false, 'of-inactive': true, 'of-missing': false },
    });
    expect(answer.flags['of-missing'].reason.code).toBe('missing_dependency');
    expect(answer.errorsWhileComputingFlags).toBe(true);
    const asked = (await ask(tenant, { flag_keys: ['child'] })).json();
    expect(Object.keys(asked.flags)).toEqual(['base', 'child']);
    expect(asked.errorsWhileComputingFlags).toBe(false);
  });
});

test('a flag stays what it was when its user becomes known, before and after the person is stored', async () => {
  const half = { groups: [{ properties: [], rollout_percentage: 50 }] };
  const tenant = await projectWith('continuity', [
    { key: 'new-checkout', filters: half, ensure_experience_continuity: true },
  ]);
  const value = async (body: object) => (await flagsOf(tenant, body))['new-checkout'].enabled;
  // By hash, user-3 is in and user-1 is out.
  expect(await value({ distinct_id: 'user-3' })).toBe(true);
  expect(await value({ distinct_id: 'user-1' })).toBe(false);
  expect(await value({ distinct_id: 'user-1', $anon_distinct_id: 'user-3' })).toBe(true);
  expect(await value({ distinct_id: 'user-1' })).toBe(true);
  const identify = {
    ...{ event: '$identify', distinct_id: 'user-1' },
    properties: { $anon_distinct_id: 'user-3' },
  };
  await api.request(null, 'POST', '/i/v0/e/', { api_key: tenant.projectToken, ...identify });
  expect(await value({ distinct_id: 'user-1' })).toBe(true);
  // A person who is known already keeps it through a later merge.
  await person(tenant, 'known', { a: 1 });
  expect(await value({ distinct_id: 'known', $anon_distinct_id: 'user-3' })).toBe(true);
  // What is remembered of somebody stands before what is remembered of the id that they had.
  await person(tenant, 'late', { a: 3 });
  expect(await value({ distinct_id: 'late', $anon_distinct_id: 'user-5' })).toBe(false);
  expect(await value({ distinct_id: 'known', $anon_distinct_id: 'late' })).toBe(true);
  await person(tenant, 'user-2', { a: 2 });
  expect(await value({ distinct_id: 'user-2' })).toBe(false);
  const merge = {
    ...{ event: '$merge_dangerously', distinct_id: 'user-2' },
    properties: { alias: 'known' },
  };
  await api.request(null, 'POST', '/i/v0/e/', { api_key: tenant.projectToken, ...merge });
  expect(await value({ distinct_id: 'user-2' })).toBe(true);
});

test('a device is named by the request, or else by a property of the person', async () => {
  const half = { groups: [{ properties: [], rollout_percentage: 50 }] };
  const tenant = await projectWith('devices', [
    { key: 'new-checkout', filters: half, bucketing_identifier: 'device_id' },
  ]);
  const value = async (body: object) => (await flagsOf(tenant, body))['new-checkout'].enabled;
  const [isIn, isOut] = ['user-3', 'user-1'];
  expect(await value({ device_id: isIn })).toBe(true);
  expect(await value({ person_properties: { $device_id: isIn } })).toBe(true);
  expect(await value({ device_id: isOut, person_properties: { $device_id: isIn } })).toBe(false);
  expect(await value({ device_id: '', person_properties: { $device_id: isIn } })).toBe(true);
  for (const none of ['', 12_345, null]) {
    expect(await value({ person_properties: { $device_id: none } })).toBe(false);
  }
});

test('flags for other places and contexts are left out', async () => {
  const tenant = await projectWith('places', [
    { key: 'everywhere', filters: EVERYBODY },
    { key: 'server', filters: EVERYBODY, evaluation_runtime: 'server' },
    { key: 'client', filters: EVERYBODY, evaluation_runtime: 'client' },
    { key: 'docs', filters: EVERYBODY, evaluation_contexts: ['docs', 'help'] },
  ]);
  const keys = async (body: object, headers: object = {}) =>
    Object.keys(await flagsOf(tenant, body, { 'user-agent': 'other', ...headers }));
  expect(await keys({})).toEqual(['everywhere', 'docs']);
  expect(await keys({ evaluation_runtime: 'server' })).toEqual(['everywhere', 'server', 'docs']);
  expect(await keys({ evaluation_runtime: 'CLIENT' })).toEqual(['everywhere', 'client', 'docs']);
  expect(await keys({ evaluation_runtime: 'edge' })).toEqual(['everywhere', 'server', 'client', 'docs']);
  expect(await keys({}, { 'user-agent': 'posthog-node/5.70.0' })).toEqual(['everywhere', 'server', 'docs']);
  expect(await keys({}, { 'user-agent': 'Mozilla/5.0' })).toEqual(['everywhere', 'client', 'docs']);
  expect(await keys({}, { origin: 'https://a.example' })).toEqual(['everywhere', 'client', 'docs']);
  expect(await keys({ evaluation_contexts: ['main'] })).toEqual(['everywhere']);
  expect(await keys({ evaluation_contexts: ['help'] })).toEqual(['everywhere', 'docs']);
});

test('a change is seen without a new start, also one of an override or a cohort', async () => {
  const tenant = await projectWith('changes', [{ key: 'changing', filters: EVERYBODY }]);
  const read = async () => (await flagsOf(tenant)).changing?.reason.code;
  expect(await read()).toBe('condition_match');
  const { rows } = await api.pool.query('select id from feature_flags where project_id = $1', [
    tenant.projectId,
  ]);
  const until = async (wanted: string | undefined) => {
    for (let tries = 0; tries < 200 && (await read()) !== wanted; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(await read()).toBe(wanted);
  };
  await api.pool.query(
    "insert into feature_flag_overrides (project_id, flag_id, distinct_id, value) values ($1, $2, $3, 'false')",
    [tenant.projectId, rows[0].id, USER],
  );
  await until('override');
  await api.pool.query('update feature_flags set active = false where id = $1', [rows[0].id]);
  await until(undefined);
});
