import { describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { queriesOf } from '../support/query-log.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

const url = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/cohorts/${rest}`;
const post = (body: object, tenant = anna) => api.request(tenant, 'POST', url(tenant), body);
const patch = (id: number, body: object, tenant = anna) =>
  api.request(tenant, 'PATCH', url(tenant, `${id}/`), body);
const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };
const of = (...values: unknown[]) => ({ properties: { type: 'OR', values: [{ type: 'AND', values }] } });
const inCohort = (value: number) => ({ type: 'cohort', key: 'id', value });
async function create(body: object, tenant = anna) {
  const answer = await post(body, tenant);
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json();
}

async function flagOn(cohort: number, tenant: Tenant, key: string) {
  const filters = {
    groups: [{ properties: [{ ...inCohort(cohort), operator: 'in' }], rollout_percentage: 100 }],
  };
  const path = `/api/projects/${tenant.projectId}/feature_flags/`;
  return api.request(tenant, 'POST', path, { key, filters });
}

test('a cohort is created, read, changed, deleted and brought back', async () => {
  const created = await create({ name: 'Acme', filters: of(email) });
  expect(created).toMatchObject({
    ...{ name: 'Acme', is_static: false, version: 1, count: null, deleted: false },
    ...{ filters: of(email), cohort_type: 'person_property', created_by: { email: anna.email } },
  });
  const { id } = created;
  expect((await api.request(anna, 'GET', url(anna, `${id}/`))).json()).toEqual(created);
  const changed = await patch(id, { name: 'Acme Inc', filters: of({ ...email, value: 1.5 }) });
  expect(changed.json()).toMatchObject({ name: 'Acme Inc', version: 2 });
  const removal = await api.request(anna, 'DELETE', url(anna, `${id}/`));
  expect([removal.statusCode, removal.body]).toEqual([405, '']);
  expect((await patch(id, { deleted: true })).json().deleted).toBe(true);
  expect((await api.request(anna, 'GET', url(anna, `${id}/`))).statusCode).toBe(404);
  expect((await patch(id, { deleted: false })).json()).toMatchObject({ deleted: false, version: 4 });
  const list = await api.request(anna, 'GET', url(anna, '?search=acme'));
  expect(list.json().results.map((one: { id: number }) => one.id)).toEqual([id]);
  for (const path of [`${id}/`, `${id}/persons/`]) {
    expect((await api.request(bert, 'GET', url(bert, path))).statusCode).toBe(404);
    expect((await api.request(bert, 'GET', url(anna, path))).statusCode).toBe(404);
  }
});

test('what was done to cohorts is listed, of all and of one', async () => {
  const { id } = await create({ name: 'Logged', filters: of(email) });
  await create({ name: 'Other', filters: of(email) });
  await patch(id, { name: 'Renamed' });
  const read = async (path: string, tenant = anna) =>
    (await api.request(tenant, 'GET', url(tenant, path))).json();
  const one = await read(`${id}/activity/`);
  expect(one).toMatchObject({
    total_count: 2,
    results: [
      {
        ...{ scope: 'Cohort', item_id: `${id}`, activity: 'updated', user: { email: anna.email } },
        detail: {
          name: 'Renamed',
          changes: [{ type: 'Cohort', field: 'name', before: 'Logged', after: 'Renamed' }],
        },
      },
      { activity: 'created', detail: { name: 'Logged', changes: [] } },
    ],
  });
  const all = await read('activity/?limit=3');
  expect(all.results.map((entry: { detail: { name: string } }) => entry.detail.name)).toEqual([
    ...['Renamed', 'Other', 'Logged'],
  ]);
  expect((await read('activity/', bert)).total_count).toBe(0);
  expect((await api.request(bert, 'GET', url(bert, `${id}/activity/`))).statusCode).toBe(404);
});

test('members are counted and listed in turns with other projects, not beside all other requests', async () => {
  const { id } = await create({ name: 'Listed', is_static: true });
  for (const path of ['', `${id}/`, `${id}/persons/`]) {
    const { result, queries } = await queriesOf(() => api.request(anna, 'GET', url(anna, path)));
    expect(result.statusCode).toBe(200);
    const counts = queries.flatMap((text, at) =>
      /count\(\*\).* from cohort_people/s.test(text) ? [at] : [],
    );
    expect(counts).toHaveLength(1);
    expect(queries[(counts[0] as number) - 1]).toContain('begin read only');
  }
});

test('who is merged into another person leaves them the place in static cohorts', async () => {
  const send = (event: string, distinct_id: string, properties: object) =>
    api.request(null, 'POST', '/i/v0/e/', { api_key: anna.projectToken, event, distinct_id, properties });
  await send('$set', 'listed', { $set: { a: 1 } });
  await send('$set', 'stays', { $set: { a: 2 } });
  const { id } = await create({ name: 'Of one', is_static: true, _create_static_person_ids: ['listed'] });
  await send('$merge_dangerously', 'stays', { alias: 'listed' });
  const { rows } = await api.pool.query(
    'select person_id from person_distinct_ids where project_id = $1 and distinct_id = $2',
    [anna.projectId, 'stays'],
  );
  const members = (await api.request(anna, 'GET', url(anna, `${id}/persons/`))).json();
  expect(members.results).toEqual([{ id: rows[0].person_id, uuid: rows[0].person_id }]);
});

test('a form says yes and no in words', async () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const make = async (said: string) =>
    (await api.request(anna, 'POST', url(anna), `name=Said+${said}&is_static=${said}`, form)).json();
  for (const said of ['true', 'True', '1', 'on', 'yes']) expect((await make(said)).is_static).toBe(true);
  expect(await make('maybe')).toMatchObject({ attr: 'is_static', detail: 'Must be a valid boolean.' });
});

test('conditions in the older form mean the same', async () => {
  const condition = (value: string) => ({ key: 'plan', value, type: 'person' });
  const cases: [groups: unknown, values: unknown[]][] = [
    [[{ properties: { plan: 'pro' } }], [{ type: 'AND', values: [condition('pro')] }]],
    [
      [{ properties: [{ key: 'plan', value: 'pro' }] }, { properties: [condition('team')] }],
      [
        { type: 'AND', values: [condition('pro')] },
        { type: 'AND', values: [condition('team')] },
      ],
    ],
    [[{ properties: of(email).properties }], [of(email).properties]],
    [JSON.stringify([{ properties: { plan: 'pro' } }]), [{ type: 'AND', values: [condition('pro')] }]],
  ];
  for (const [groups, values] of cases) {
    const made = await create({ name: 'older', groups });
    expect([made.groups, made.filters]).toEqual([[], { properties: { type: 'OR', values } }]);
  }
  const { id } = await create({ name: 'newer', filters: of(email) });
  const changed = (await patch(id, { groups: [{ properties: { plan: 'pro' } }] })).json();
  expect(changed.filters.properties.values).toEqual([{ type: 'AND', values: [condition('pro')] }]);
  const kept = (await patch(id, { groups: [{ properties: {} }], filters: of(email) })).json();
  expect(kept.filters).toEqual(of(email));
  for (const [groups, attr, code] of [
    [[{ action_id: 5 }], 'groups', 'behavioral_cohort_found'],
    [[1], 'groups', 'invalid_input'],
    [{ properties: [] }, 'groups', 'invalid_input'],
    ['{', 'groups', 'invalid_input'],
    [[{ properties: [{ key: 'a', value: 'b', operator: 'like' }] }], 'filters', 'invalid_input'],
  ] as const) {
    const answer = await post({ name: 'refused', groups });
    expect([answer.statusCode, answer.json()]).toMatchObject([400, { attr, code }]);
  }
});

test('cohorts are listed by their kind and by who made them', async () => {
  const tenant = await api.createTenant('Lister');
  const made = [
    await create({ name: 'kept', is_static: true }, tenant),
    await create({ name: 'decided', filters: of(email) }, tenant),
  ];
  const [{ id: kept, created_by: maker }, { id: decided }] = made;
  const list = async (query: string) =>
    (await api.request(tenant, 'GET', url(tenant, query)))
      .json()
      .results.map((one: { id: number }) => one.id);
  expect(await list('?type=static')).toEqual([kept]);
  expect(await list('?type=dynamic&hide_behavioral_cohorts=true')).toEqual([decided]);
  expect(await list(`?created_by_id=${maker.id}&limit=1&offset=1`)).toEqual([kept]);
  expect(await list(`?created_by_id=${maker.id + 1}`)).toEqual([]);
});

describe('filters that nobody can evaluate are refused', () => {
  const cases: [name: string, filters: unknown, detail: RegExp, code: string][] = [
    ['none', undefined, /required/, 'required'],
    ['no tree', {}, /^Must contain a 'properties' key with type and values/, 'invalid_input'],
    ['an unknown group', { properties: { type: 'XOR', values: [] } }, /type "XOR"/i, 'invalid_input'],
    [
      'what persons did',
      of({ type: 'behavioral', key: 'x', value: 'performed_event' }),
      /what persons did/,
      'behavioral_cohort_found',
    ],
    [
      'properties of events',
      of({ type: 'event', key: 'x', value: '1' }),
      /must be person or cohort/,
      'invalid_input',
    ],
    ['no key', of({ type: 'person', value: '1' }), /key is required/, 'invalid_input'],
    ['an unknown operator', of({ ...email, operator: 'like' }), /unknown operator/i, 'invalid_input'],
    ['a bad pattern', of({ ...email, operator: 'regex', value: '(' }), /./, 'invalid_input'],
    [
      'a bad date',
      of({ ...email, operator: 'is_date_after', value: 'soon' }),
      /must be a date/,
      'invalid_input',
    ],
    ['an unknown cohort', of(inCohort(987_654)), /Invalid Cohort ID in filter/, 'invalid_input'],
    [
      'too deep',
      { properties: Array.from({ length: 30 }).reduce((inner) => ({ type: 'AND', values: [inner] }), email) },
      /nested more than/,
      'invalid_input',
    ],
  ];
  test.each(cases)('%s', async (_name, filters, detail, code) => {
    const answer = await post({ name: 'refused', filters });
    const { reason: _, ...body } = answer.json();
    expect([answer.statusCode, body]).toEqual([
      400,
      { type: 'validation_error', attr: 'filters', code, detail: expect.stringMatching(detail) },
    ]);
  });

  test('a circle, also when two are changed at once', async () => {
    const a = await create({ name: 'a', filters: of(email) });
    const b = await create({ name: 'b', filters: of(email) });
    const answers = await Promise.all([
      patch(a.id, { filters: of(inCohort(b.id)) }),
      patch(b.id, { filters: of(inCohort(a.id)) }),
    ]);
    expect(answers.map((one) => one.statusCode).sort()).toEqual([200, 400]);
    const refused = answers.find((one) => one.statusCode === 400)?.json().detail;
    expect(refused).toBe('Cohorts cannot reference other cohorts in a loop.');
  });
});

test('a cohort that a flag or another cohort uses is not deleted', async () => {
  const used = await create({ name: 'used', filters: of(email) });
  const outer = await create({ name: 'outer', filters: of(inCohort(used.id)) });
  expect((await patch(used.id, { deleted: true })).json().detail).toBe(
    `Cannot delete this cohort because other cohorts use it: ${outer.id}.`,
  );
  expect((await flagOn(outer.id, anna, 'asking')).statusCode).toBe(201);
  expect((await patch(outer.id, { deleted: true })).json().detail).toBe(
    'This cohort is used in 1 active feature flag(s): asking. Please remove the cohort from these feature flags before deleting it.',
  );
});

test('a static cohort has the persons that are added, and its flags follow', async () => {
  const { id } = await create({ name: 'vips', is_static: true });
  for (const distinct_id of ['ann', 'bob']) {
    const event = { event: 'x', distinct_id, api_key: anna.projectToken };
    expect((await api.request(null, 'POST', '/i/v0/e/', event)).statusCode).toBe(200);
  }
  expect((await flagOn(id, anna, 'vip')).statusCode).toBe(201);
  const isVip = async (distinct_id: string) => {
    const body = { api_key: anna.projectToken, distinct_id, flag_keys: ['vip'] };
    return (await api.request(null, 'POST', '/flags?v=2', body)).json().flags.vip.enabled;
  };
  const path = url(anna, `${id}/add_persons_to_static_cohort/`);
  const added = await api.request(anna, 'POST', path, { distinct_ids: ['ann', 'nobody'] });
  expect(added.json()).toEqual({ success: true, unknown: 1, examples: ['nobody'] });
  expect([await isVip('ann'), await isVip('bob')]).toEqual([true, false]);
  const members = (await api.request(anna, 'GET', url(anna, `${id}/persons/`))).json();
  expect(members.count).toBe(1);
  expect((await api.request(anna, 'GET', url(anna, `${id}/`))).json().count).toBe(1);
  // A person of another project is nobody here.
  const foreign = await create({ name: 'theirs', is_static: true }, bert);
  const theirs = url(bert, `${foreign.id}/add_persons_to_static_cohort/`);
  const spying = { person_ids: [members.results[0].id], distinct_ids: ['ann'] };
  for (const [tenant, where, body] of [
    [bert, theirs, spying],
    [anna, path, { person_ids: ['0190163d-8694-739b-aea5-966c26f8ad90'] }],
  ] as const) {
    const answer = await api.request(tenant, 'PATCH', where, body);
    expect([answer.statusCode, answer.json().detail]).toEqual([400, 'No valid users to add to cohort']);
  }
  for (const body of [{}, { person_ids: [] }, { person_ids: 'x' }, { person_ids: ['x'] }]) {
    expect((await api.request(anna, 'PATCH', path, body)).statusCode).toBe(400);
  }
  const again = await api.request(anna, 'PATCH', path, { person_ids: [members.results[0].id] });
  expect(again.json()).toEqual({ success: true, unknown: 0, examples: [] });
  const remove = () =>
    api.request(anna, 'PATCH', url(anna, `${id}/remove_person_from_static_cohort/`), {
      person_id: members.results[0].id,
    });
  expect((await remove()).json()).toEqual({ success: true });
  expect((await remove()).json()).toMatchObject({
    ...{ code: 'not_found', detail: 'Person is not part of the cohort' },
  });
  const removeUnknown = await api.request(
    anna,
    'PATCH',
    url(anna, `${id}/remove_person_from_static_cohort/`),
    { person_id: '0190163d-8694-739b-aea5-966c26f8ad90' },
  );
  expect(removeUnknown.json().detail).toBe("Person with this UUID does not exist in the cohort's team");
  const log = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/activity_log/?scope=Cohort`);
  const ours = log.json().results.filter((one: { item_id: string }) => one.item_id === String(id));
  expect(ours.map((one: { detail: object }) => one.detail)).toMatchObject([
    { person_removed: members.results[0].id },
    { persons_named: 1, persons_unknown: 0 },
    { persons_named: 2, persons_unknown: 1 },
    {},
  ]);
  expect(await isVip('ann')).toBe(false);
  const dynamic = await create({ name: 'dynamic', filters: of(email) });
  const refused = await api.request(anna, 'POST', url(anna, `${dynamic.id}/add_persons_to_static_cohort/`), {
    distinct_ids: ['ann'],
  });
  expect([refused.statusCode, refused.json().detail]).toEqual([400, 'Can only add users to static cohorts']);
  const taken = await api.request(
    anna,
    'PATCH',
    url(anna, `${dynamic.id}/remove_person_from_static_cohort/`),
    { person_id: members.results[0].id },
  );
  expect(taken.json().detail).toBe('Can only remove users from static cohorts');
});
