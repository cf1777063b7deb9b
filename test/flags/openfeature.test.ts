import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OFREPProvider } from '@openfeature/ofrep-provider';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';
import { OpenFeature as ServerOpenFeature } from '@openfeature/server-sdk';
import { OpenFeature as WebOpenFeature } from '@openfeature/web-sdk';
import { apiForFile, type Tenant } from '../support/api.ts';
import { EVERYBODY, storeCohort, storeFlag, where } from './support.ts';

// Before the API is closed: the providers still have connections.
afterAll(() => Promise.all([ServerOpenFeature.close(), WebOpenFeature.close()]));
const api = apiForFile();
let tenant: Tenant;
let host: string;

const VARIANTS = {
  multivariate: {
    variants: [
      { key: 'control', rollout_percentage: 50 },
      { key: 'test', rollout_percentage: 50 },
    ],
  },
};
const PRO = { key: 'plan', type: 'person', operator: 'exact', value: 'pro' };

beforeAll(async () => {
  host = await api.app.listen({ port: 0, host: '127.0.0.1' });
  tenant = await api.createTenant('OpenFeature');
  const add = (key: string, filters: unknown, more = {}) =>
    storeFlag(api.pool, tenant.projectId, { key, filters, ...more });
  await add('static', { ...EVERYBODY, payloads: { true: '{"a":1}' } });
  await add('targeted', where(PRO));
  await add('half', { groups: [{ properties: [], rollout_percentage: 50 }] });
  await add('layout', { ...where(PRO), ...VARIANTS, payloads: { test: '[1]' } });
  await add('forced', {
    groups: [{ properties: [], rollout_percentage: 100, variant: 'test' }],
    ...VARIANTS,
  });
  await add('inactive', EVERYBODY, { active: false });
  const remote = { is_remote_configuration: true };
  await add('number', { ...EVERYBODY, payloads: { true: '12.50' } }, remote);
  await add('big', { ...EVERYBODY, payloads: { true: '9007199254740993' } }, remote);
  await add('object', { ...EVERYBODY, payloads: { true: '{"colors":["red"]}' } }, remote);
  await add('text', { ...EVERYBODY, payloads: { true: '"hello"' } }, remote);
  await add('empty', EVERYBODY, remote);
  await add('null', { ...EVERYBODY, payloads: { true: 'null' } }, remote);
  await add('broken', { ...EVERYBODY, payloads: { true: '{no json' } }, remote);
  await add('server-only', EVERYBODY, { evaluation_runtime: 'server' });
  await add('client-only', EVERYBODY, { evaluation_runtime: 'client' });
  await add('company', {
    groups: [
      {
        properties: [{ key: 'size', type: 'group', group_type_index: 0, operator: 'gt', value: '10' }],
        rollout_percentage: 100,
      },
    ],
    aggregation_group_type_index: 0,
  });
  await add('lost', where({ key: 'id', type: 'cohort', value: 999_999, operator: 'in' }));
  const cohort = await storeCohort(api.pool, tenant.projectId, {
    name: 'acme',
    properties: { type: 'OR', values: [{ type: 'AND', values: [{ ...PRO, value: 'free' }] }] },
  });
  await add('in-cohort', where({ key: 'id', type: 'cohort', value: cohort, operator: 'in' }));
  const other = await add('one', EVERYBODY);
  const circle = await add(
    'circle',
    where({ key: String(other), type: 'flag', operator: 'flag_evaluates_to', value: true }),
  );
  const back = where({ key: String(circle), type: 'flag', operator: 'flag_evaluates_to', value: true });
  await api.pool.query('update feature_flags set filters = $2 where id = $1', [other, JSON.stringify(back)]);
  await api.pool.query(
    `insert into group_types (project_id, group_type, group_type_index) values ($1, 'company', 0)`,
    [tenant.projectId],
  );
});

const bearer = () => ({ authorization: `Bearer ${tenant.projectToken}` });
const post = (path: string, body: unknown, headers: Record<string, string> = bearer()) =>
  api.app.inject({
    ...{ method: 'POST', url: `/ofrep/v1/evaluate/flags${path}` },
    headers: { 'content-type': 'application/json', ...headers },
    payload: typeof body === 'string' ? body : JSON.stringify(body),
  });
const context = (more: Record<string, unknown> = {}) => ({ context: { targetingKey: 'user-1', ...more } });

describe('one flag', () => {
  test.each([
    // What everybody gets, who is meant, what a hash decides, and what nothing decides.
    ['static', {}, { value: true, reason: 'STATIC' }],
    ['targeted', { plan: 'pro' }, { value: true, reason: 'TARGETING_MATCH' }],
    ['targeted', { plan: 'free' }, { value: false, reason: 'DEFAULT' }],
    ['targeted', {}, { value: false, reason: 'DEFAULT' }],
    ['half', {}, { value: true, reason: 'SPLIT' }],
    ['half', { targetingKey: 'user-4' }, { value: false, reason: 'SPLIT' }],
    ['layout', { plan: 'pro' }, { value: 'control', variant: 'control', reason: 'SPLIT' }],
    ['layout', { plan: 'free' }, { value: undefined, variant: undefined, reason: 'DEFAULT' }],
    ['forced', {}, { value: 'test', variant: 'test', reason: 'STATIC' }],
    ['inactive', {}, { value: undefined, reason: 'DISABLED' }],
    ['number', {}, { value: 12.5, reason: 'STATIC' }],
    ['object', {}, { value: { colors: ['red'] }, reason: 'STATIC' }],
    ['text', {}, { value: 'hello', reason: 'STATIC' }],
    ['empty', {}, { value: undefined, reason: 'STATIC' }],
    ['null', {}, { value: undefined, reason: 'STATIC' }],
    [
      'company',
      { groups: { company: 'acme' }, group_properties: { company: { size: 11 } } },
      { value: true },
    ],
    ['company', { groups: { company: 'acme' } }, { value: false, reason: 'DEFAULT' }],
    ['in-cohort', { plan: 'free' }, { value: true, reason: 'TARGETING_MATCH' }],
    ['server-only', {}, { value: true }],
  ])('%s for %j', async (key, more, expected) => {
    const answer = await post(`/${key}`, context(more));
    expect(answer.statusCode).toBe(200);
    const { value, variant, reason } = answer.json();
    expect({ key: answer.json().key, value, variant, reason }).toMatchObject({ key, ...expected });
  });

  test('tells its id, its version, why, and its payload, and keeps numbers as they were spelled', async () => {
    const { metadata } = (await post('/static', context())).json();
    const stored = await api.pool.query('select id from feature_flags where project_id = $1 and key = $2', [
      tenant.projectId,
      'static',
    ]);
    expect(metadata).toEqual({
      ...{ flag_id: stored.rows[0].id, flag_version: 1 },
      ...{ reason: 'Matched condition set 1', payload: '{"a":1}' },
    });
    expect((await post('/number', context())).body).toContain('"value":12.50,');
    expect((await post('/big', context())).body).toContain('"value":9007199254740993,');
  });

  test.each([
    ['nobody', context(), 404, { key: 'nobody', errorCode: 'FLAG_NOT_FOUND' }],
    ['client-only', context(), 404, { key: 'client-only', errorCode: 'FLAG_NOT_FOUND' }],
    ['constructor', context(), 404, { key: 'constructor', errorCode: 'FLAG_NOT_FOUND' }],
    ['lost', context(), 400, { errorCode: 'GENERAL', errorDetails: 'Cohort dependency not found.' }],
    ['one', context(), 400, { key: 'one', errorCode: 'GENERAL' }],
    ['broken', context(), 400, { errorCode: 'PARSE_ERROR' }],
    ['static', '{', 400, { key: 'static', errorCode: 'PARSE_ERROR' }],
    ['static', '[]', 400, { errorCode: 'PARSE_ERROR' }],
    ['static', {}, 400, { errorCode: 'TARGETING_KEY_MISSING' }],
    ['static', context({ targetingKey: '' }), 400, { errorCode: 'TARGETING_KEY_MISSING' }],
    ['static', context({ targetingKey: {} }), 400, { errorCode: 'INVALID_CONTEXT' }],
    ['static', { context: [] }, 400, { errorCode: 'INVALID_CONTEXT' }],
    [
      ...(['static', context({ groups: 'acme' }), 400] as const),
      { errorCode: 'INVALID_CONTEXT', errorDetails: 'The context cannot be read: groups must be an object' },
    ],
  ] as const)('%s for %j is refused with %i', async (key, body, status, expected) => {
    const answer = await post(`/${key}`, body);
    expect([answer.statusCode, answer.json()]).toEqual([status, expect.objectContaining(expected)]);
  });

  test('takes the key of the project in either header, and no other key', async () => {
    const status = async (headers: Record<string, string>) =>
      (await post('/static', context(), headers)).statusCode;
    expect(await status({ 'x-api-key': tenant.projectToken })).toBe(200);
    expect(await status({ authorization: `bearer ${tenant.projectToken}` })).toBe(200);
    expect(await status({})).toBe(401);
    expect(await status({ 'x-api-key': 'phc_unknown' })).toBe(401);
    expect(await status({ authorization: `Bearer ${tenant.key}` })).toBe(401);
  });

  test('of another project is not found', async () => {
    const other = await api.createTenant('Another');
    const answer = await post('/static', context(), { 'x-api-key': other.projectToken });
    expect(answer.statusCode).toBe(404);
  });
});

describe('all flags', () => {
  const keysOf = (answer: { json(): { flags: { key: string }[] } }) =>
    answer.json().flags.map(({ key }) => key);

  test('have an ETag, and 304 as long as nothing changes for the user', async () => {
    const first = await post('', context());
    const etag = first.headers.etag as string;
    expect([first.statusCode, etag]).toEqual([200, expect.stringMatching(/^"[\w-]{22}"$/)]);
    const again = async (more: Record<string, unknown>, known: string) => {
      const answer = await post('', context(more), { ...bearer(), 'if-none-match': known });
      return [answer.statusCode, answer.body === ''];
    };
    expect(await again({}, etag)).toEqual([304, true]);
    expect(await again({ unrelated: 1 }, `"x", W/${etag}`)).toEqual([304, true]);
    expect(await again({ plan: 'pro' }, etag)).toEqual([200, false]);
    const page = await post('', context(), { ...bearer(), origin: 'https://example.com' });
    expect(page.headers['access-control-expose-headers']).toContain('etag');
  });

  test('are those for clients, each alone if it fails', async () => {
    const answer = await post('', context());
    const keys = keysOf(answer);
    expect(keys).toEqual(
      expect.arrayContaining(['static', 'client-only', 'lost', 'one', 'circle', 'broken']),
    );
    expect(keys).not.toEqual(expect.arrayContaining(['inactive']));
    expect(keys).not.toEqual(expect.arrayContaining(['server-only']));
    const failed = answer.json().flags.filter((one: { errorCode?: string }) => one.errorCode);
    expect(failed.map(({ key }: { key: string }) => key).sort()).toEqual(['broken', 'circle', 'lost', 'one']);
  });

  test('are refused without a targeting key', async () => {
    const answer = await post('', { context: {} });
    expect([answer.statusCode, answer.json().errorCode]).toEqual([400, 'TARGETING_KEY_MISSING']);
    expect((await post('', '{')).json().errorCode).toBe('PARSE_ERROR');
  });
});

test('the provider for servers', async () => {
  const provider = new OFREPProvider({ baseUrl: host, headers: [['X-API-Key', tenant.projectToken]] });
  await ServerOpenFeature.setProviderAndWait('server', provider);
  const client = ServerOpenFeature.getClient('server');
  const user = { targetingKey: 'user-1', plan: 'pro' };
  expect(await client.getBooleanDetails('targeted', false, user)).toMatchObject({
    ...{ value: true, reason: 'TARGETING_MATCH', flagKey: 'targeted' },
    flagMetadata: { flag_version: 1 },
  });
  expect(await client.getStringDetails('layout', 'none', user)).toMatchObject({
    value: 'control',
    variant: 'control',
  });
  expect(await client.getNumberValue('number', 0, user)).toBe(12.5);
  expect(await client.getObjectValue('object', {}, user)).toEqual({ colors: ['red'] });
  const errorOf = async (key: string, more = {}) =>
    (await client.getBooleanDetails(key, true, { ...user, ...more })).errorCode;
  expect(await errorOf('nobody')).toBe('FLAG_NOT_FOUND');
  expect(await errorOf('layout')).toBe('TYPE_MISMATCH');
  expect(await errorOf('lost')).toBe('GENERAL');
  expect(await errorOf('static', { targetingKey: '' })).toBe('TARGETING_KEY_MISSING');
  expect(await errorOf('static', { groups: 'acme' })).toBe('INVALID_CONTEXT');
  // What has no value leaves the default of the code.
  expect(await client.getStringValue('layout', 'none', { ...user, plan: 'free' })).toBe('none');
  expect(await client.getBooleanValue('inactive', true, user)).toBe(true);
});

test('the provider for browsers', async () => {
  const provider = new OFREPWebProvider({
    ...{ baseUrl: host, pollInterval: 0, cacheMode: 'disabled' },
    headers: [['Authorization', `Bearer ${tenant.projectToken}`]],
  });
  await WebOpenFeature.setContext('web', { targetingKey: 'user-1', plan: 'pro' });
  await WebOpenFeature.setProviderAndWait('web', provider);
  const client = WebOpenFeature.getClient('web');
  expect(client.getBooleanDetails('targeted', false)).toMatchObject({
    value: true,
    reason: 'TARGETING_MATCH',
  });
  expect(client.getStringValue('layout', 'none')).toBe('control');
  expect(client.getNumberValue('number', 0)).toBe(12.5);
  expect(client.getBooleanDetails('lost', true)).toMatchObject({ value: true, errorCode: 'GENERAL' });
  expect(client.getBooleanDetails('nobody', true)).toMatchObject({
    value: true,
    errorCode: 'FLAG_NOT_FOUND',
  });
  await WebOpenFeature.setContext('web', { targetingKey: 'user-1', plan: 'free' });
  expect(client.getBooleanDetails('targeted', true)).toMatchObject({ value: false, reason: 'DEFAULT' });
  expect(client.getStringDetails('layout', 'none')).toMatchObject({ value: 'none', reason: 'DEFAULT' });
});
