// Which flags a list has, what is known of their use, and how many a project may have.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { createCalls } from '../../flags/calls.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { EVERYBODY, where } from './support.ts';

const api = apiForFile();
let anna: Tenant;
let bert: Tenant;
let app: App | undefined;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  bert = await api.createTenant('Bert');
});
afterAll(() => app?.close());

const url = (rest = '', tenant = anna) => `/api/projects/${tenant.projectId}/feature_flags/${rest}`;
async function create(body: object, tenant = anna) {
  const answer = await api.request(tenant, 'POST', url('', tenant), { filters: EVERYBODY, ...body });
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json();
}
const get = async (rest: string) => (await api.request(anna, 'GET', url(rest))).json();
const keys = async (query: string): Promise<string[]> =>
  (await get(`?${query}`)).results.map((one: { key: string }) => one.key);
const status = async (id: number): Promise<string> => (await get(`${id}/status/`)).status;
const list = (...values: unknown[]) => encodeURIComponent(JSON.stringify(values));

describe('the list of flags', () => {
  test('is chosen and ordered by the query', async () => {
    await create({ key: 'alpha', tags: ['web', 'beta'], name: 'Z' });
    await create({ key: 'bravo', tags: ['beta'], active: false, evaluation_contexts: ['app'], name: 'Y' });
    await create({
      ...{ key: 'charlie', name: 'X', evaluation_runtime: 'server' },
      filters: { ...EVERYBODY, multivariate: { variants: [{ key: 'a', rollout_percentage: 100 }] } },
    });
    expect(await keys('')).toEqual(['charlie', 'bravo', 'alpha']);
    expect(await keys('order=key')).toEqual(['alpha', 'bravo', 'charlie']);
    expect(await keys('order=-name')).toEqual(['alpha', 'bravo', 'charlie']);
    expect(await keys('order=created_at&limit=1&offset=1')).toEqual(['bravo']);
    expect(await keys(`tags=${list('web')}`)).toEqual(['alpha']);
    expect(await keys(`excluded_tags=${list('web')}`)).toEqual(['charlie', 'bravo']);
    expect(await keys(`excluded_properties=${list('alpha', 'bravo')}`)).toEqual(['charlie']);
    expect(await keys('has_evaluation_contexts=true')).toEqual(['bravo']);
    expect(await keys('has_evaluation_contexts=false')).toEqual(['charlie', 'alpha']);
    expect(await keys('active=false')).toEqual(['bravo']);
    expect(await keys('type=multivariant')).toEqual(['charlie']);
    expect(await keys('evaluation_runtime=server')).toEqual(['charlie']);
    const { ids, total } = await get('matching_ids/?active=true&order=key');
    expect([ids.length, total]).toEqual([2, 2]);
    for (const query of ['order=filters', 'order=key;drop', 'tags=[1]', 'active=maybe']) {
      expect([query, (await api.request(anna, 'GET', url(`?${query}`))).statusCode]).toEqual([query, 400]);
    }
  });

  test('tells keys by ids, of the own project only', async () => {
    const own = await create({ key: 'own' });
    const foreign = await create({ key: 'foreign' }, bert);
    const ask = async (ids: unknown[]) =>
      (await api.request(anna, 'POST', url('bulk_keys/'), { ids })).json();
    expect(await ask([])).toEqual({ keys: {} });
    expect(await ask([own.id, String(own.id), foreign.id, 2_000_000_000])).toEqual({
      keys: { [own.id]: 'own' },
    });
    expect(await ask([own.id, { toString: 1 }])).toMatchObject({ keys: { [own.id]: 'own' } });
    expect(await ask([own.id, 'x', null])).toEqual({
      keys: { [own.id]: 'own' },
      warning: "Invalid flag IDs ignored: ['x', null]",
    });
    const wrong = await api.request(anna, 'POST', url('bulk_keys/'), { ids: ['x', -1] });
    expect([wrong.statusCode, wrong.json().attr]).toEqual([400, 'ids']);
  });

  test('is of the project whose key the query names', async () => {
    const key = await api.createKey(anna);
    const other = await api.request(anna, 'POST', '/api/organizations/@current/projects/', { name: 'Other' });
    const { id, api_token: token } = other.json();
    const made = await api.request(anna, 'POST', `/api/projects/${id}/feature_flags/`, {
      ...{ key: 'of-the-other', filters: EVERYBODY },
    });
    expect(made.statusCode).toBe(201);
    const keys = async (query: string, project = '@current') => {
      const answer = await api.request(key.value, 'GET', `/api/projects/${project}/feature_flags/${query}`);
      return answer.statusCode === 200
        ? answer.json().results.map((one: { key: string }) => one.key)
        : answer.statusCode;
    };
    expect(await keys(`?token=${token}`)).toEqual(['of-the-other']);
    expect(await keys(`?token=${anna.projectToken}&limit=1000`)).not.toContain('of-the-other');
    expect(await keys(`?token=${bert.projectToken}`)).toBe(403);
    expect(await keys('?token=phc_nobody')).toBe(401);
    // A path that names a project means it.
    expect(await keys(`?token=${anna.projectToken}`, String(id))).toEqual(['of-the-other']);
  });

  test('has a log, of all flags and of one', async () => {
    const flag = await create({ key: 'logged' });
    await api.request(anna, 'PATCH', url(`${flag.id}/`), { name: 'changed' });
    const one = await get(`${flag.id}/activity/`);
    expect(one).toMatchObject({
      count: 2,
      total_count: 2,
      results: [
        {
          activity: 'updated',
          detail: {
            changes: [
              { type: 'FeatureFlag', action: 'changed', field: 'name', before: '', after: 'changed' },
              { type: 'FeatureFlag', action: 'changed', field: 'version', before: 1, after: 2 },
            ],
          },
        },
        {
          activity: 'created',
          detail: { name: 'logged', changes: [], trigger: null, type: null, short_id: null },
        },
      ],
    });
    expect((await get(`${flag.id}/activity/?limit=1&page=2`)).results).toMatchObject([
      { activity: 'created' },
    ]);
    for (let name = 0; name < 11; name += 1) {
      await api.request(anna, 'PATCH', url(`${flag.id}/`), { name: `changed ${name}` });
    }
    const first = await get(`${flag.id}/activity/?page=1`);
    expect([first.count, first.results.length]).toEqual([13, 10]);
    const next = new URL(first.next);
    expect([next.search, first.previous]).toEqual(['?page=2&limit=10', null]);
    const second = (await api.request(anna, 'GET', `${next.pathname}${next.search}`)).json();
    expect([second.results.length, second.next]).toEqual([3, null]);
    expect(new URL(second.previous).search).toBe('?page=1&limit=10');
    const between = await get(`${flag.id}/activity/?limit=10&offset=5`);
    expect(new URL(between.previous).search).toBe('?limit=10');
    const all = await get('activity/?limit=1000');
    expect(all.count).toBeGreaterThan(2);
    expect(new Set(all.results.map((entry: { scope: string }) => entry.scope))).toEqual(
      new Set(['FeatureFlag']),
    );
    expect((await api.request(bert, 'GET', url(`${flag.id}/activity/`))).statusCode).toBe(404);
    expect((await api.request(bert, 'GET', url('activity/', bert))).body).not.toContain('logged');
  });
});

describe('a flag that is of no use any more', () => {
  const age = (id: number, columns: string) =>
    api.pool.query(`update feature_flags set ${columns} where id = $1`, [id]);
  const OLD = "clock_timestamp() - interval '31 days'";

  test('is stale, and the list and the status agree', async () => {
    const variants = (share: number) => ({
      variants: [
        { key: 'a', rollout_percentage: share },
        { key: 'b', rollout_percentage: 100 - share },
      ],
    });
    const email = { key: 'email', type: 'person', operator: 'is_set' };
    const cases: [key: string, filters: object, columns: string, stale: boolean][] = [
      ['old-for-all', EVERYBODY, `created_at = ${OLD}`, true],
      ['new-for-all', EVERYBODY, 'created_at = created_at', false],
      ['old-for-some', where(email), `created_at = ${OLD}`, false],
      ['old-in-part', { groups: [{ properties: [], rollout_percentage: 99 }] }, `created_at = ${OLD}`, false],
      [
        'old-no-share',
        { groups: [{ properties: [email] }, { properties: [] }] },
        `created_at = ${OLD}`,
        true,
      ],
      ['old-variants', { ...EVERYBODY, multivariate: variants(50) }, `created_at = ${OLD}`, false],
      ['old-one-variant', { ...EVERYBODY, multivariate: variants(100) }, `created_at = ${OLD}`, true],
      ['called-lately', EVERYBODY, `created_at = ${OLD}, last_called_at = clock_timestamp()`, false],
      ['called-long-ago', where(email), `created_at = ${OLD}, last_called_at = ${OLD}`, true],
      ['stale-but-off', EVERYBODY, `created_at = ${OLD}, active = false`, false],
    ];
    for (const [key, filters, columns] of cases) await age((await create({ key, filters })).id, columns);
    const stale = await keys('active=STALE&limit=1000');
    const all = (await get('?limit=1000')).results as { key: string; id: number; status: string }[];
    for (const [key, , , isStale] of cases) {
      const shown = all.find((one) => one.key === key);
      expect([key, stale.includes(key), shown?.status === 'STALE']).toEqual([key, isStale, isStale]);
      expect([key, (await status(shown?.id as number)) === 'STALE']).toEqual([key, isStale]);
    }
  });

  test('is known by calls: by key, and by what SDKs say that they checked', async () => {
    for (const key of ['asked', 'checked', 'told-only', 'imported']) await create({ key });
    app = await api.rebuild({});
    const send = async (path: string, payload: object) => {
      const answer = await app?.inject({ method: 'POST', url: path, payload });
      expect([path, answer?.statusCode, answer?.body.slice(0, 300)]).toEqual([path, 200, expect.any(String)]);
    };
    await send('/flags?v=2', { token: anna.projectToken, distinct_id: 'a', flag_keys: ['asked', 'nobody'] });
    await send('/flags?v=2', { token: anna.projectToken, distinct_id: 'a' });
    const called = (key: unknown) => ({
      event: '$feature_flag_called',
      distinct_id: 'a',
      timestamp: '2026-01-01T00:00:00Z',
      properties: { $feature_flag: key, locally_evaluated: true },
    });
    await send('/batch/', {
      api_key: anna.projectToken,
      batch: [called('checked'), called(5), called('x'.repeat(500))],
    });
    await send('/batch/', {
      api_key: anna.projectToken,
      batch: [called('imported')],
      historical_migration: true,
    });
    // Whatever is not written down yet is written when the process ends.
    await app.close();
    app = undefined;
    const { rows } = await api.pool.query(
      `select key, last_called_at is not null as called, version from feature_flags
       where project_id = $1 and key in ('asked', 'checked', 'told-only', 'imported') order by key`,
      [anna.projectId],
    );
    expect(rows).toEqual([
      { key: 'asked', called: true, version: 1 },
      { key: 'checked', called: true, version: 1 },
      { key: 'imported', called: false, version: 1 },
      { key: 'told-only', called: false, version: 1 },
    ]);
  });

  test.each([
    ['small', ''],
    ['large', 'x'.repeat(300_000)],
  ])('is known by what a %s body says that SDKs checked, also of nobody', async (name, padding) => {
    const carl = await api.createTenant(`Calls in a ${name} body`);
    for (const key of ['of-somebody', 'of-nobody', 'of-groups', 'imported', 'unsaid'])
      await create({ key }, carl);
    app = await api.rebuild({});
    const called = (key: string, properties: object) => ({
      event: '$feature_flag_called',
      distinct_id: 'a',
      timestamp: '2026-01-01T00:00:00Z',
      properties: { $feature_flag: key, padding, ...properties },
    });
    const nobody = { $process_person_profile: false };
    const send = (batch: object[], more: object = {}) =>
      app?.inject({
        method: 'POST',
        url: '/batch/',
        payload: { api_key: carl.projectToken, batch, ...more },
      });
    const said = await send([
      called('of-somebody', {}),
      called('of-nobody', nobody),
      called('of-groups', { ...nobody, $groups: { company: 'c' } }),
      { ...called('unsaid', nobody), event: 'something else' },
    ]);
    const imported = await send([called('imported', nobody)], { historical_migration: true });
    expect([said?.statusCode, imported?.statusCode]).toEqual([200, 200]);
    await app.close();
    app = undefined;
    const { rows } = await api.pool.query<{ key: string }>(
      'select key from feature_flags where project_id = $1 and last_called_at is not null order by key',
      [carl.projectId],
    );
    expect(rows.map(({ key }) => key)).toEqual(['of-groups', 'of-nobody', 'of-somebody']);
  });

  test('costs a write in ten minutes at most, in the own project, and nothing is lost while the database is away', async () => {
    const flag = await create({ key: 'busy' });
    const same = await create({ key: 'busy' }, bert);
    const writes: unknown[] = [];
    let isAway = true;
    let time = Date.now() - 3_600_000;
    const queryable = {
      query: (async (...given: unknown[]) => {
        if (isAway) throw new Error('away');
        writes.push(given);
        return (api.pool.query as (...all: unknown[]) => unknown)(...given);
      }) as typeof api.pool.query,
    };
    const calls = createCalls({
      queryable,
      logger: { warn: () => undefined },
      every: 3_600_000,
      now: () => time,
    });
    const stored = async (id: number) => {
      const { rows } = await api.pool.query('select last_called_at, xmin from feature_flags where id = $1', [
        id,
      ]);
      return rows[0] as { last_called_at: string | null; xmin: string };
    };
    for (let n = 0; n < 1_000; n += 1) calls.note(anna.projectId, 'busy');
    await calls.flush();
    expect((await stored(flag.id)).last_called_at).toBeNull();
    isAway = false;
    await calls.flush();
    await calls.flush();
    expect(writes).toHaveLength(1);
    const first = await stored(flag.id);
    expect(Date.parse(first.last_called_at as string)).toBe(time);
    time += 5 * 60_000;
    calls.note(anna.projectId, 'busy');
    await calls.flush();
    expect(await stored(flag.id)).toEqual(first);
    time += 6 * 60_000;
    calls.note(anna.projectId, 'busy');
    await calls.close();
    expect(Date.parse((await stored(flag.id)).last_called_at as string)).toBe(time);
    expect((await stored(same.id)).last_called_at).toBeNull();
  });
});

describe('a project', () => {
  test('has a limited number of flags, and of bytes in them', async () => {
    const carl = await api.createTenant('Carl');
    const config = { ...api.config, SLUICE_FLAGS_PER_PROJECT: 3, SLUICE_FLAG_BYTES_PER_PROJECT: 2_000 };
    const limited = await api.rebuild({ config });
    const ask = (method: 'POST' | 'PATCH', rest: string, payload: object) =>
      limited.inject({
        ...{ method, url: url(rest, carl), payload },
        headers: { authorization: `Bearer ${carl.key}` },
      });
    const long = (bytes: number) =>
      where({ key: 'a', type: 'person', operator: 'exact', value: 'x'.repeat(bytes) });
    try {
      const first = (await ask('POST', '', { key: 'one', filters: long(900) })).json();
      const large = await ask('POST', '', { key: 'two', filters: long(1_200) });
      expect([large.statusCode, large.json().code, large.json().detail]).toEqual([
        400,
        'limit',
        expect.stringMatching(/^The filters of all .* would have \d+ bytes; 2000 are allowed/),
      ]);
      const two = (await ask('POST', '', { key: 'two', filters: EVERYBODY })).json();
      expect((await ask('PATCH', `${two.id}/`, { filters: long(1_200) })).json().code).toBe('limit');
      expect((await ask('PATCH', `${first.id}/`, { filters: long(1_000) })).statusCode).toBe(200);
      expect((await ask('POST', '', { key: 'three' })).statusCode).toBe(201);
      const fourth = await ask('POST', '', { key: 'four' });
      expect([fourth.statusCode, fourth.json().code, fourth.json().detail]).toEqual([
        400,
        'limit',
        expect.stringMatching(/^A project may have 3 feature flags/),
      ]);
      // What is there can be changed, and what is deleted makes room until it comes back.
      expect((await ask('PATCH', `${two.id}/`, { deleted: true })).statusCode).toBe(200);
      expect((await ask('POST', '', { key: 'four' })).statusCode).toBe(201);
      expect((await ask('PATCH', `${two.id}/`, { deleted: false })).json().code).toBe('limit');
    } finally {
      await limited.close();
    }
  });

  test('is also at the older path without a project', async () => {
    const tenant = await api.createTenant('Older');
    const made = await api.request(tenant, 'POST', '/api/feature_flag/', { key: 'first' });
    expect([made.statusCode, made.json().key]).toEqual([201, 'first']);
    const read = async (path: string, key: string | null = tenant.key) => {
      const answer = await api.request(key, 'GET', path);
      return [answer.statusCode, answer.json().results?.map((one: { key: string }) => one.key)];
    };
    for (const path of [
      '/api/feature_flag',
      '/api/feature_flag/',
      `/api/feature_flag/?token=${tenant.projectToken}`,
    ]) {
      expect([path, await read(path)]).toEqual([path, [200, ['first']]]);
    }
    expect((await api.request(tenant, 'GET', `/api/feature_flag/${made.json().id}/`)).json().key).toBe(
      'first',
    );
    expect(await read('/api/feature_flag/', null)).toEqual([401, undefined]);
    expect(await read('/api/feature_flag/?token=phc_nobody')).toEqual([401, undefined]);
    expect(await read(`/api/feature_flag/?token=${bert.projectToken}`)).toEqual([403, undefined]);
    const cohort = await api.request(tenant, 'POST', '/api/cohort/', { name: 'older', is_static: true });
    expect(await read(`/api/cohort/${cohort.json().id}/persons`)).toEqual([200, []]);
    expect((await api.request(tenant, 'GET', '/api/feature_flags/')).statusCode).toBe(404);
  });
});
