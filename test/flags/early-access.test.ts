import { describe, expect, test } from '@jest/globals';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
async function ask(method: Method, rest: string, body?: object, tenant = anna) {
  const url = `/api/projects/${tenant.projectId}/${rest}`;
  const answer = await api.request(tenant, method, url, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
}
const create = (body: object, tenant = anna) => ask('POST', 'early_access_feature/', body, tenant);
const flag = async (id: number) => (await ask('GET', `feature_flags/${id}/`)).body;
async function offered(query = '', tenant = anna) {
  const url = `/api/early_access_features/?token=${tenant.projectToken}${query}`;
  const answer = await api.app.inject({ url, headers: { origin: 'https://shop.example.com' } });
  expect(answer.statusCode).toBe(200);
  expect(answer.headers['access-control-allow-origin']).toBeDefined();
  return (answer.json().earlyAccessFeatures as { name: string }[]).map((one) => one.name);
}
async function value(key: string, properties: object) {
  const payload = { api_key: anna.projectToken, distinct_id: 'u', person_properties: properties };
  return (await api.app.inject({ method: 'POST', url: '/flags?v=2', payload })).json().flags[key];
}

describe('an early access feature', () => {
  test('makes a flag of its name, for nobody but those who enrol from alpha on', async () => {
    const made = await create({ name: 'Größere Bäume!', stage: 'concept' });
    expect(made).toMatchObject({
      status: 201,
      body: { stage: 'concept', payload: {}, feature_flag: { key: 'gro-ere-baume', active: true } },
    });
    const { id, feature_flag } = made.body;
    const enrolled = { '$feature_enrollment/gro-ere-baume': true };
    const becomes = (enabled: boolean) =>
      eventually(async () => (await value('gro-ere-baume', enrolled))?.enabled === enabled);
    await becomes(false);
    for (const [stage, isOpen] of [
      ['alpha', true],
      ['draft', false],
      ['beta', true],
      ['archived', false],
      ['general-availability', true],
    ] as const) {
      const changed = await ask('PATCH', `early_access_feature/${id}/`, { stage });
      expect(changed.body.feature_flag.filters.feature_enrollment).toBe(isOpen ? true : null);
      await becomes(isOpen);
    }
    expect(await value('gro-ere-baume', enrolled)).toMatchObject({
      reason: { code: 'super_condition_value' },
    });
    expect((await value('gro-ere-baume', {})).enabled).toBe(false);
    const list = await ask('GET', 'early_access_feature/');
    expect(list.body.results.map((one: { id: string }) => one.id)).toContain(id);
    const twice = await create({ name: 'Größere Bäume!', stage: 'draft' });
    expect([twice.status, twice.body]).toMatchObject([
      400,
      { code: 'unique', attr: 'key', detail: 'There is already a feature flag with this key.' },
    ]);
    for (const key of ['early-access', 'early-access-2']) {
      expect((await create({ name: '???', stage: 'draft' })).body.feature_flag.key).toBe(key);
    }

    const kept = await ask('PATCH', `feature_flags/${feature_flag.id}/`, { deleted: true });
    expect([kept.status, kept.body.attr]).toEqual([400, 'deleted']);
    expect(kept.body.detail).toBe(
      'Cannot delete a feature flag that is in use with early access features. Please delete the early access feature before deleting the flag.',
    );
    expect(kept.body.reason).toContain('Größere Bäume!');
    expect((await ask('DELETE', `early_access_feature/${id}/`)).status).toBe(204);
    expect((await ask('GET', `early_access_feature/${id}/`)).status).toBe(404);
    expect((await flag(feature_flag.id)).filters.feature_enrollment).toBeNull();
    expect((await ask('PATCH', `feature_flags/${feature_flag.id}/`, { deleted: true })).status).toBe(200);
    const { rows } = await api.pool.query(
      "select activity from activity_log where scope = 'EarlyAccessFeature' and item_id = $1 order by id",
      [id],
    );
    expect(rows.map((row) => row.activity)).toEqual(['created', ...Array(5).fill('updated'), 'deleted']);
  });

  test('takes a flag that exists, whose conditions go on to count', async () => {
    const groups = [{ properties: [], rollout_percentage: 30 }];
    const { body: own } = await ask('POST', 'feature_flags/', { key: 'own', filters: { groups } });
    const made = await create({ name: 'Linked', stage: 'beta', feature_flag_id: own.id });
    expect(made.body.feature_flag).toMatchObject({
      ...{ id: own.id, key: 'own' },
      filters: { groups: [{ rollout_percentage: 30 }], feature_enrollment: true },
    });
    const again = await create({ name: 'Again', stage: 'beta', feature_flag_id: own.id });
    expect(again.body).toMatchObject({
      ...{ attr: 'feature_flag_id', detail: 'Linked feature flag own already has a feature attached to it.' },
    });
  });

  test('refuses flags that nobody can choose', async () => {
    const variants = [{ key: 'a', rollout_percentage: 100 }];
    const everybody = [{ properties: [], rollout_percentage: 100 }];
    const of = async (filters: object, tenant = anna) =>
      (await ask('POST', 'feature_flags/', { key: `f${Math.random()}`.replace('.', ''), filters }, tenant))
        .body.id;
    for (const [id, text] of [
      [await of({ groups: everybody, multivariate: { variants } }), 'Multivariate feature flags'],
      [await of({ groups: everybody, aggregation_group_type_index: 0 }), 'Group-based feature flags'],
      [await of({ groups: everybody }, bert), 'Feature Flag with this ID does not exist'],
    ]) {
      const refused = await create({ name: 'No', stage: 'beta', feature_flag_id: id });
      expect([refused.status, refused.body.attr]).toEqual([400, 'feature_flag_id']);
      expect(refused.body.detail).toContain(text);
    }
    expect((await create({ name: 'No', stage: 'gamma' })).body.attr).toBe('stage');
  });

  test('is offered to browsers by its stage, while its flag is active', async () => {
    const tenant = await api.createTenant('Offers');
    const made: Record<string, { id: string; feature_flag: { id: number } }> = {};
    for (const stage of ['draft', 'concept', 'alpha', 'beta', 'general-availability', 'archived']) {
      made[stage] = (await create({ name: stage, stage }, tenant)).body;
    }
    const becomes = (names: string[], query = '') =>
      eventually(async () => JSON.stringify(await offered(query, tenant)) === JSON.stringify(names));
    await becomes(['beta']);
    await becomes(['concept', 'alpha'], '&stage=concept&stage=alpha&stage=draft');
    expect(await offered('&stage=draft', tenant)).toEqual(['beta']);
    const flagId = made.beta?.feature_flag.id;
    await ask('PATCH', `feature_flags/${flagId}/`, { active: false }, tenant);
    await becomes([]);
    await ask('PATCH', `early_access_feature/${made.alpha?.id}/`, { stage: 'beta' }, tenant);
    await becomes(['alpha']);
    expect(await offered('', bert)).toEqual([]);
    for (const [token, detail] of [
      ['', 'credentials'],
      ['?token=phc_unknown', 'unknown'],
    ]) {
      const refused = await api.app.inject({ url: `/api/early_access_features/${token}` });
      expect(refused.statusCode).toBe(401);
      expect(refused.json().detail).toContain(detail);
    }
  });

  test('is seen by nobody else', async () => {
    const { body: mine } = await create({ name: 'Mine', stage: 'beta' });
    for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
      expect((await ask(method, `early_access_feature/${mine.id}/`, {}, bert)).status).toBe(404);
    }
  });
});

test('a feature takes a flag that exists only from keys that may change flags', async () => {
  const made = (await ask('POST', 'feature_flags/', { key: 'taken-by-scope' })).body;
  const url = `/api/projects/${anna.projectId}/early_access_feature/`;
  const body = { name: 'By scope', stage: 'beta' };
  const take = (key: string) => api.request(key, 'POST', url, { ...body, feature_flag_id: made.id });
  const few = await api.createKey(anna, { scopes: ['early_access_feature:write', 'feature_flag:read'] });
  const refused = await take(few.value);
  expect([refused.statusCode, refused.json().detail]).toEqual([
    403,
    "API key missing required scope 'feature_flag:write'",
  ]);
  expect((await flag(made.id)).version).toBe(1);
  expect((await api.request(few.value, 'POST', url, body)).statusCode).toBe(201);
  const all = await api.createKey(anna, { scopes: ['early_access_feature:write', 'feature_flag:write'] });
  expect((await take(all.value)).statusCode).toBe(201);
});
