import { describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { EVERYBODY, storeCohort, where } from './support.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

const url = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/feature_flags/${rest}`;
const post = (body: object | string, tenant = anna) =>
  api.request(tenant, 'POST', url(tenant), body, { 'content-type': 'application/json' });
const patch = (id: number, body: object, tenant = anna) =>
  api.request(tenant, 'PATCH', url(tenant, `${id}/`), body);
async function create(body: object, tenant = anna) {
  const answer = await post(body, tenant);
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json();
}
const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };
const on = (id: number | string, value: unknown = true) =>
  where({ type: 'flag', key: String(id), operator: 'flag_evaluates_to', value });

describe('a feature flag', () => {
  test('is created, read, changed, deleted and brought back', async () => {
    const created = await create({
      key: 'first',
      name: 'The first',
      filters: where(email),
      tags: ['A', 'a'],
    });
    expect(created).toMatchObject({
      ...{ key: 'first', name: 'The first', active: true, deleted: false, version: 1, status: 'ACTIVE' },
      ...{ tags: ['a'], ensure_experience_continuity: false, evaluation_runtime: 'all' },
      created_by: { email: anna.email },
      filters: {
        groups: [{ properties: [email], rollout_percentage: 100, aggregation_group_type_index: null }],
        aggregation_group_type_index: null,
      },
    });
    const { id } = created;
    expect((await api.request(anna, 'GET', url(anna, `${id}/`))).json()).toEqual(created);
    const changed = (await patch(id, { active: false, name: 'Off' })).json();
    expect(changed).toMatchObject({ active: false, name: 'Off', version: 2, status: 'INACTIVE' });
    const removal = await api.request(anna, 'DELETE', url(anna, `${id}/`));
    expect([removal.statusCode, removal.body]).toEqual([405, '']);
    expect((await patch(id, { deleted: true })).json()).toMatchObject({ deleted: true, status: 'DELETED' });
    expect((await api.request(anna, 'GET', url(anna, `${id}/`))).statusCode).toBe(404);
    expect((await patch(id, { name: 'x' })).statusCode).toBe(404);
    await create({ key: 'first', filters: EVERYBODY });
    expect((await patch(id, { deleted: false })).json()).toMatchObject({ key: 'first-2', deleted: false });
    const log = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/activity_log/`);
    const ours = log.json().results.filter((one: { item_id: string }) => one.item_id === String(id));
    expect(ours.map((one: { activity: string }) => one.activity).reverse()).toEqual([
      ...['created', 'updated', 'deleted', 'updated'],
    ]);
    const { rows } = await api.pool.query(
      'select version, document from feature_flag_revisions where flag_id = $1 order by version',
      [id],
    );
    expect(rows.map((row) => [row.version, row.document.active, row.document.deleted])).toEqual([
      ...[
        [1, true, false],
        [2, false, false],
        [3, false, true],
        [4, false, false],
      ],
    ]);
  });

  test('may have no filters, which is a flag for nobody', async () => {
    expect((await create({ key: 'without' })).filters).toEqual({ groups: [] });
  });

  test('keeps the parts of its filters that a change does not name, and the spelling of numbers', async () => {
    const body = `{"key":"kept","filters":{"groups":[{"properties":[{"key":"n","type":"person","value":1.0},
      {"key":"n","type":"person","value":9007199254740993}],"rollout_percentage":12.50}],"payloads":{"true":"[1.0]"}}}`;
    const answer = await post(body);
    expect(answer.body).toContain('"value":1.0}');
    expect(answer.body).toContain('9007199254740993');
    const { id } = answer.json();
    expect((await patch(id, { filters: {} })).json().version).toBe(2);
    const changed = await patch(id, { filters: { payloads: { true: { a: 1 } } } });
    expect(changed.body).toContain('"value":1.0}');
    expect(changed.json().filters.payloads).toEqual({ true: '{"a":1}' });
    expect((await patch(id, { filters: { groups: [] } })).json().filters).toMatchObject({
      ...{ groups: [], payloads: { true: '{"a":1}' } },
    });
  });

  test('stores the operators that SDKs know, and each payload as JSON', async () => {
    const asked = (operator: string) => where({ key: 'n', type: 'person', operator, value: 1 });
    const stored = async (operator: string) =>
      (await create({ key: `alias-${operator}`, filters: { ...asked(operator), payloads: { true: null } } }))
        .filters;
    expect((await stored('min')).groups[0].properties[0].operator).toBe('gte');
    expect(await stored('max')).toMatchObject({
      ...{ groups: [{ properties: [{ operator: 'lte' }] }], payloads: { true: 'null' } },
    });
  });

  test('names the cohorts and groups of its filters, and takes the names back', async () => {
    const cohort = await storeCohort(api.pool, anna.projectId, { name: 'VIPs', isStatic: true });
    await api.pool.query(
      "insert into group_types (project_id, group_type, group_type_index) values ($1, 'company', 0)",
      [anna.projectId],
    );
    await api.request(null, 'POST', '/i/v0/e/', {
      ...{ api_key: anna.projectToken, event: '$groupidentify', distinct_id: 'x' },
      properties: { $group_type: 'company', $group_key: 'c1', $group_set: { name: 'Acme' } },
    });
    const groupKey = { key: '$group_key', type: 'group', group_type_index: 0, value: ['c1', 'c2'] };
    const filters = {
      groups: [
        { properties: [{ key: 'id', type: 'cohort', value: cohort }], rollout_percentage: 50 },
        { properties: [groupKey], aggregation_group_type_index: 0 },
      ],
    };
    const made = await create({ key: 'with-names', filters });
    const named = {
      groups: [
        { properties: [{ cohort_name: 'VIPs' }] },
        { properties: [{ group_key_names: { c1: 'Acme' } }] },
      ],
    };
    expect(made.filters).toMatchObject(named);
    const seen = (await api.request(anna, 'GET', url(anna, `${made.id}/`))).json();
    expect(seen.filters).toMatchObject(named);
    await patch(made.id, { name: 'by somebody else' });
    // Nobody else has changed the filters, so a change of them is no conflict.
    const changed = structuredClone(seen.filters);
    changed.groups[0].rollout_percentage = 60;
    const answer = await patch(made.id, { filters: changed, version: 1, original_flag: seen });
    expect([answer.statusCode, answer.json()]).toMatchObject([200, { filters: named }]);
    const { rows } = await api.pool.query(
      'select filters::text as filters from feature_flags where id = $1',
      [made.id],
    );
    expect(rows[0].filters).not.toMatch(/VIPs|Acme/);
    expect((await patch(made.id, { name: 'c', version: 1, original_flag: null })).statusCode).toBe(200);
  });

  test('has a key that no other flag of the project has, also when two are created at once', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => post({ key: 'only-once', filters: EVERYBODY })));
    expect(answers.map((one) => one.statusCode).sort()).toEqual([201, 400, 400, 400]);
    expect(answers.find((one) => one.statusCode === 400)?.json()).toEqual({
      ...{ type: 'validation_error', code: 'unique', attr: 'key' },
      detail: 'There is already a feature flag with this key.',
    });
    expect((await post({ key: 'only-once', filters: EVERYBODY }, bert)).statusCode).toBe(201);
  });

  test('is changed by nobody who has not seen the change of another', async () => {
    const flag = await create({ key: 'contested', filters: EVERYBODY, name: 'a' });
    expect((await patch(flag.id, { name: 'b' })).statusCode).toBe(200);
    const stale = { version: 1, original_flag: flag };
    const refused = await patch(flag.id, { ...stale, name: 'c' });
    expect([refused.statusCode, refused.json().detail]).toEqual([
      409,
      `The feature flag was updated by ${anna.email} since you started editing it. Please refresh and try again.`,
    ]);
    // Another field, and a field with the value that the user saw, do no harm.
    const passed = await patch(flag.id, { ...stale, name: 'a', active: false });
    expect(passed.json()).toMatchObject({ name: 'b', active: false });
    expect((await patch(flag.id, { name: 'd', version: 1 })).json().name).toBe('d');
  });

  test('is seen by nobody else', async () => {
    const { id } = await create({ key: 'private', filters: EVERYBODY });
    for (const [method, path] of [
      ['GET', `${id}/`],
      ['PATCH', `${id}/`],
      ['GET', `${id}/status/`],
      ['GET', `${id}/overrides/`],
      ['POST', `${id}/overrides/`],
    ] as const) {
      const body = method === 'GET' ? undefined : {};
      expect((await api.request(bert, method, url(bert, path), body)).statusCode).toBe(404);
      expect((await api.request(bert, method, url(anna, path), body)).statusCode).toBe(404);
    }
  });

  test('is listed by what people look for', async () => {
    const carl = await api.createTenant('Carl');
    await create({ key: 'checkout', name: 'The new till', filters: EVERYBODY, tags: ['shop'] }, carl);
    await create({ key: 'banner', filters: EVERYBODY, active: false }, carl);
    await create({ key: 'gone', filters: EVERYBODY, active: false, archived: true }, carl);
    const variants = { variants: [{ key: 'a', rollout_percentage: 100 }] };
    await create({ key: 'test', filters: { ...EVERYBODY, multivariate: variants } }, carl);
    const list = async (query: string) => {
      const answer = await api.request(carl, 'GET', url(carl, query));
      expect([answer.statusCode, query]).toEqual([200, query]);
      return answer.json().results.map((one: { key: string }) => one.key);
    };
    expect(await list('')).toEqual(['test', 'banner', 'checkout']);
    expect(await list('?search=TILL')).toEqual(['checkout']);
    expect(await list('?active=false')).toEqual(['banner']);
    expect(await list('?archived=true')).toEqual(['gone']);
    expect(await list('?type=multivariant')).toEqual(['test']);
    expect(await list(`?tags=${encodeURIComponent('["shop"]')}`)).toEqual(['checkout']);
    expect(await list('?limit=1&offset=1')).toEqual(['banner']);
    expect((await api.request(carl, 'GET', url(carl, '?tags=shop'))).statusCode).toBe(400);
  });
});

describe('what a flag may not be', () => {
  const groups = (group: object) => ({ groups: [group] });
  const variants = (...list: object[]) => ({ ...EVERYBODY, multivariate: { variants: list } });
  const cases: [name: string, filters: unknown, detail: RegExp, code?: string][] = [
    ['a list', [], /Expected a dictionary of items/, 'not_a_dict'],
    ['no condition sets', { groups: [] }, /must have at least one condition set \(group\)/],
    ['groups that are no list', { groups: {} }, /groups must be a list/],
    [
      'a rollout above 100',
      groups({ rollout_percentage: 101 }),
      /^groups\[0\]\.rollout_percentage must be between 0 and 100, got 101/,
    ],
    ['a rollout that is a text', groups({ rollout_percentage: '5' }), /rollout_percentage must be a number/],
    [
      'an unknown variant',
      groups({ variant: 'x' }),
      /variant override does not exist.*groups\[0\]\.variant: the flag has no variant "x"/,
    ],
    ['no type', where({ key: 'a', value: 'b' }), /^groups\[0\]\.properties\[0\]\.type must be one of/],
    ['no key', where({ type: 'person', value: 'b' }), /properties\[0\]\.key is required/],
    ['no value', where({ type: 'person', key: 'a' }), /properties\[0\]\.value is required/],
    [
      'an unknown operator',
      where({ ...email, operator: 'like' }),
      /^Invalid operator: like\b.*groups\[0\]\.properties\[0\]\.operator/,
      'invalid_operator',
    ],
    [
      'between',
      where({ ...email, operator: 'between', value: [1, 2] }),
      /^Unsupported operator for feature flags: between/,
      'unsupported_operator',
    ],
    [
      'a pattern that cannot be read',
      where({ ...email, operator: 'regex', value: '(' }),
      /./,
      'invalid_value',
    ],
    ['a lookahead', where({ ...email, operator: 'regex', value: '(?=a)' }), /./, 'invalid_value'],
    ['a huge pattern', where({ ...email, operator: 'regex', value: '(a{500}){500}' }), /./],
    [
      'a date that cannot be read',
      where({ ...email, operator: 'is_date_before', value: 'soon' }),
      /^Invalid date value: soon/,
      'invalid_date',
    ],
    [
      'a version that cannot be read',
      where({ ...email, operator: 'semver_gt', value: 'x' }),
      /must be a version such as 1.2.3/,
      'invalid_value',
    ],
    [
      'a list for gt',
      where({ ...email, operator: 'gt', value: [1] }),
      /must be a number or a string, not \[1\]/,
      'invalid_value',
    ],
    [
      'in for a person',
      where({ ...email, operator: 'in', value: [1] }),
      /in and not_in are for cohorts/,
      'invalid_operator',
    ],
    [
      'between without a range',
      where({ ...email, operator: 'between', value: 'x' }),
      /^Unsupported operator for feature flags: between/,
      'unsupported_operator',
    ],
    ['a number for regex', where({ ...email, operator: 'regex', value: 1 }), /a string/, 'invalid_value'],
    [
      'a list of versions',
      where({ ...email, operator: 'semver_eq', value: ['1.2.3'] }),
      /must be a version such as 1.2.3/,
      'invalid_value',
    ],
    ['a group index that is none', where({ ...email, group_type_index: 'x' }), /group_type_index must be/],
    [
      'early_exit as a text',
      { ...EVERYBODY, early_exit: 'true' },
      /early_exit must be a boolean or null, got str/,
    ],
    ['feature_enrollment as a number', { ...EVERYBODY, feature_enrollment: 1 }, /feature_enrollment must be/],
    ['a cohort by name', where({ type: 'cohort', key: 'id', value: 'vips' }), /must be given by its id/],
    [
      'an unknown cohort',
      where({ type: 'cohort', key: 'id', value: 99 }),
      /Cohort with id 99 does not exist/,
      'cohort_does_not_exist',
    ],
    ['an unknown flag', on(987_654), /non-existent flag with ID 987654/],
    [
      'groups in a condition about persons',
      where({ type: 'group', group_type_index: 0, key: 'a', value: 'b' }),
      /takes no properties of groups/,
    ],
    [
      'persons in a condition about groups',
      { ...where(email), aggregation_group_type_index: 1 },
      /takes only properties of such groups/,
    ],
    ['a sixth type of groups', { ...EVERYBODY, aggregation_group_type_index: 5 }, /from 0 to 4/],
    ['no variants', variants(), /must not be empty/],
    ['variants that are not everybody', variants({ key: 'a', rollout_percentage: 50 }), /sum to 100/],
    [
      'two variants of a key',
      variants({ key: 'a', rollout_percentage: 50 }, { key: 'a', rollout_percentage: 50 }),
      /two variants have the key "a"/,
    ],
    ['a payload of no variant', { ...EVERYBODY, payloads: { a: '1' } }, /Payload keys must be 'true'/],
    [
      'a payload that is not JSON',
      { ...EVERYBODY, payloads: { true: '{' } },
      /^Payload value is not valid JSON.*payloads\.true is "\{"/,
    ],
    ['a version of its own', { ...EVERYBODY, version: 2 }, /reserved/],
    [
      'too much',
      where({ ...email, value: 'x'.repeat(600_000) }),
      /^Feature flag filters exceed maximum size of 500000 bytes/,
    ],
  ];
  test.each(cases)('%s', async (_name, filters, detail, code = 'invalid_input') => {
    const answer = await post({ key: 'refused', filters });
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      expect.objectContaining({
        type: 'validation_error',
        attr: 'filters',
      }),
    ]);
    const { reason = '', ...body } = answer.json();
    expect(`${body.detail} ${reason}`).toMatch(detail);
    expect(body.code).toBe(code);
  });

  const at = 'groups[0].properties[0]';
  test.each<[filters: unknown, detail: string, reason?: string]>([
    [
      where({ ...email, operator: 'icontains', value: ['a', 1] }),
      "Invalid value for operator icontains: ['a', 1]",
      `${at}.value must be a string, not ["a",1].`,
    ],
    [where({ ...email, operator: 'gt', value: true }), 'Invalid value for operator gt: True'],
    [
      where({ ...email, operator: 'in', value: [1] }),
      "The 'in' operator is only valid for cohort properties, not 'person' properties.",
    ],
    [
      where({ ...email, operator: 'icontains_multi', value: 'a' }),
      'icontains_multi operator requires a list of values',
    ],
    [where({ ...email, operator: 'is_date_after', value: '6hed' }), 'Invalid date value: 6hed'],
    [
      where({ ...email, operator: 'semver_lt', value: 'x.y' }),
      'Invalid semver value for operator semver_lt: x.y',
    ],
    [where({ ...email, operator: 'regex', value: '[a' }), `${at}.value: invalid regex pattern`],
    [
      where({ type: 'flag', key: 'by-name', operator: 'flag_evaluates_to', value: true }),
      "Flag dependencies must reference flag IDs (integers), not flag keys. Invalid reference: 'by-name'",
    ],
    [
      where({ type: 'flag', key: '1', value: true }),
      "Flag properties must use the 'flag_evaluates_to' operator",
    ],
    [
      where({ type: 'group', group_type_index: 0, key: 'a', value: 'b' }),
      'Filters are not valid (person-aggregated conditions can only use person, cohort, and flag properties)',
    ],
    [
      { ...where(email), aggregation_group_type_index: 1 },
      'Filters are not valid (group-aggregated conditions can only use group properties)',
    ],
    [
      {
        ...where({ type: 'group', group_type_index: 0, key: 'a', value: 'b' }),
        aggregation_group_type_index: 1,
      },
      "Filters are not valid (group properties must match the condition set's group type)",
    ],
    [
      variants({ key: 'a', rollout_percentage: 50 }),
      'Invalid variant definitions: Variant rollout percentages must sum to 100.',
      'The percentages of multivariate.variants sum to 50.',
    ],
    [
      variants({ key: 'a', rollout_percentage: null }),
      'multivariate.variants[0].rollout_percentage must be a number, got null',
    ],
    [groups({ variant: 1 }), 'groups[0].variant must be a string or null, got int'],
    [
      { ...EVERYBODY, aggregation_group_type_index: 1.5 },
      'aggregation_group_type_index must be an integer or null, got float',
    ],
    [{ ...EVERYBODY, payloads: ['a'] }, 'Payloads must be passed as a dictionary'],
  ])('is said in the words that clients know: %j', async (...row) => {
    // Not every row has a reason.
    const [filters, detail, reason] = row;
    const answer = (await post({ key: 'refused', filters })).json();
    expect(answer).toMatchObject({ type: 'validation_error', attr: 'filters', detail });
    if (reason !== undefined) expect(answer.reason).toBe(reason);
  });

  test('dashboards, of which there are none', async () => {
    const strange = await post({ key: 'refused', analytics_dashboards: [{ toString: 1 }] });
    expect(strange.json()).toMatchObject({ attr: 'analytics_dashboards' });
    const answer = await post({ key: 'refused', analytics_dashboards: [7] });
    expect(answer.json()).toMatchObject({
      attr: 'analytics_dashboards',
      detail: 'Invalid pk "7" - object does not exist.',
    });
    expect((await create({ key: 'no-dashboard', analytics_dashboards: [] })).analytics_dashboards).toEqual(
      [],
    );
  });

  test.each([
    ['', 'blank'],
    ['a b', 'invalid_key'],
    ['a.b', 'invalid_key'],
    ['x'.repeat(401), 'max_length'],
  ])('the key %s', async (key, code) => {
    const answer = await post({ key, filters: EVERYBODY });
    expect([answer.statusCode, answer.json()]).toMatchObject([400, { code, attr: 'key' }]);
  });

  test('settings that contradict each other', async () => {
    const base = { key: 'refused', filters: EVERYBODY };
    const both = { ...base, bucketing_identifier: 'device_id', ensure_experience_continuity: true };
    const refused = (await post(both)).json();
    expect(refused.attr).toBe('bucketing_identifier');
    expect(refused.detail).toMatch(
      /^Cannot enable 'persist across authentication steps' when using device ID/,
    );
    expect((await post({ ...base, archived: true })).json().detail).toBe(
      'Cannot archive an enabled feature flag. Disable it first, or send active: false in the same request.',
    );
    expect((await post({ ...base, has_encrypted_payloads: true })).statusCode).toBe(400);
    const { id } = await create({ ...base, key: 'archived', active: false, archived: true });
    expect((await patch(id, { active: true })).json().detail).toBe(
      'Cannot enable an archived feature flag. Unarchive it first.',
    );
  });

  test('nothing that was refused is stored', async () => {
    const answer = await api.request(anna, 'GET', url(anna, '?search=refused'));
    expect(answer.json().count).toBe(0);
  });
});

describe('flags that depend on each other', () => {
  test('close no circle, also when two are changed at once', async () => {
    const a = await create({ key: 'circle-a', filters: EVERYBODY });
    const b = await create({ key: 'circle-b', filters: EVERYBODY });
    const answers = await Promise.all([
      patch(a.id, { filters: on(b.id) }),
      patch(b.id, { filters: on(a.id) }),
    ]);
    expect(answers.map((one) => one.statusCode).sort()).toEqual([200, 400]);
    const refused = answers.find((one) => one.statusCode === 400)?.json().detail;
    expect(refused).toMatch(/^Circular dependency detected: circle-(.) → circle-(.) → circle-\1$/);
    expect((await patch(a.id, { filters: on(a.id) })).json().detail).toBe(
      "Feature flag 'circle-a' cannot depend on itself",
    );
  });

  test('are not deleted, disabled or archived while another one needs them', async () => {
    const base = await create({ key: 'base', filters: EVERYBODY });
    const child = await create({ key: 'child', filters: on(base.id) });
    const named = `because other flags depend on it: child (ID: ${child.id})`;
    expect((await patch(base.id, { deleted: true })).json().detail).toBe(
      `Cannot delete this feature flag ${named}`,
    );
    expect((await patch(base.id, { active: false })).json().detail).toBe(
      `Cannot disable this feature flag ${named}`,
    );
    const dependents = await api.request(anna, 'GET', url(anna, `${base.id}/dependent_flags/`));
    expect(dependents.json()).toEqual([{ id: child.id, key: 'child', name: 'child' }]);
    expect((await patch(child.id, { active: false })).statusCode).toBe(200);
    expect((await patch(base.id, { active: false })).statusCode).toBe(200);
    expect((await patch(child.id, { active: true })).json().detail).toBe(
      `Cannot enable this feature flag because it depends on disabled flags: base (ID: ${base.id})`,
    );
  });
});

test('a value that is set by hand counts before all conditions, until it is taken away', async () => {
  const tenant = await api.createTenant('Dora');
  const variants = { variants: [{ key: 'a', rollout_percentage: 100 }] };
  const filters = { groups: [{ properties: [email] }], multivariate: variants };
  const { id } = await create({ key: 'by-hand', filters }, tenant);
  const set = (body: object) => api.request(tenant, 'POST', url(tenant, `${id}/overrides/`), body);
  expect((await set({ distinct_id: 'ann', value: 'a' })).statusCode).toBe(200);
  const reasons = async () => {
    const path = url(tenant, 'evaluation_reasons/?distinct_id=ann');
    return (await api.request(tenant, 'GET', path)).json()['by-hand'];
  };
  expect(await reasons()).toEqual({ value: 'a', evaluation: { reason: 'override', condition_index: null } });
  expect((await set({ distinct_id: 'ann', value: 'b' })).json().detail).toBe(
    'The flag has no variant "b": its variants are a.',
  );
  const listed = await api.request(tenant, 'GET', url(tenant, `${id}/overrides/`));
  expect(listed.json().results).toEqual([{ distinct_id: 'ann', value: 'a', created_at: expect.any(String) }]);
  const remove = () =>
    api.request(tenant, 'POST', url(tenant, `${id}/overrides/remove/`), { distinct_id: 'ann' });
  expect((await remove()).statusCode).toBe(204);
  expect((await remove()).statusCode).toBe(404);
});

test('whoever asks is told what flags are, and why; flags that are off too', async () => {
  const tenant = await api.createTenant('Emil');
  await create({ key: 'everybody', filters: EVERYBODY }, tenant);
  await create({ key: 'nobody', filters: where(email) }, tenant);
  await create({ key: 'disabled', filters: EVERYBODY, active: false }, tenant);
  const reasons = await api.request(
    tenant,
    'GET',
    url(tenant, 'evaluation_reasons/?distinct_id=x&groups={}'),
  );
  expect(reasons.json()).toEqual({
    everybody: { value: true, evaluation: { reason: 'condition_match', condition_index: 0 } },
    nobody: { value: false, evaluation: { reason: 'no_condition_match', condition_index: 0 } },
    disabled: { value: false, evaluation: { reason: 'disabled', condition_index: null } },
  });
  const mine = await api.request(tenant, 'GET', url(tenant, 'my_flags/'));
  const values = mine
    .json()
    .map((one: { feature_flag: { key: string }; value: unknown }) => [one.feature_flag.key, one.value]);
  expect(values).toEqual([
    ['everybody', true],
    ['nobody', false],
  ]);
  expect((await api.request(tenant, 'GET', url(tenant, 'my_flags/?groups=x'))).statusCode).toBe(400);
});

test('the value of a flag is explained, filter by filter', async () => {
  const tenant = await api.createTenant('Fred');
  const filters = {
    groups: [
      {
        properties: [email, { key: 'age', type: 'person', operator: 'gt', value: '18' }],
        rollout_percentage: 100,
      },
      { properties: [], rollout_percentage: 50 },
    ],
  };
  const { id } = await create({ key: 'new-checkout', filters }, tenant);
  const ask = async (body: object) =>
    (await api.request(tenant, 'POST', url(tenant, `${id}/explain/`), body)).json();
  const tests = [expect.objectContaining(email), expect.objectContaining({ key: 'age' })];
  expect(await ask({ distinct_id: 'user-1', person_properties: { email: 'ann@acme.com', age: 7 } })).toEqual({
    ...{ key: 'new-checkout', value: false, failed: false, payload: null },
    reason: { code: 'out_of_rollout_bound', condition_index: 1, description: 'Out of rollout bound' },
    conditions: [
      {
        ...{ index: 0, passed: false, rollout_percentage: 100, counted_id: 'user-1' },
        filters: [
          { filter: tests[0], passed: true, found: 'ann@acme.com' },
          { filter: tests[1], passed: false, found: 7 },
        ],
        counted_at: expect.closeTo(91.68, 2),
      },
      {
        ...{ index: 1, passed: true, filters: [], rollout_percentage: 50, counted_id: 'user-1' },
        counted_at: expect.closeTo(91.68, 2),
      },
    ],
  });
  const on = await ask({ distinct_id: 'user-1', person_properties: { email: 'ann@acme.com', age: 42 } });
  expect([on.value, on.reason.condition_index, on.conditions[1].passed]).toEqual([true, 0, null]);
});

test.each([
  ['explain', { distinct_id: 'user-1' }],
  ['test', { filters: { groups: [] } }],
])('%s/ shows what is stored about persons only to keys that may read persons', async (action, body) => {
  const { id } = await create({ key: `seen-by-${action}` });
  const ask = async (...more: string[]) => {
    const { value } = await api.createKey(anna, { scopes: ['feature_flag:write', ...more] });
    return api.request(value, 'POST', url(anna, `${id}/${action}/`), body);
  };
  const refused = await ask('group:read');
  expect([refused.statusCode, refused.json().detail]).toEqual([
    403,
    "API key missing required scope 'person:read'",
  ]);
  expect((await ask('group:read', 'person:read')).statusCode).toBe(200);
});

test('a flag is again what it was in an earlier version', async () => {
  const { id } = await create({ key: 'changing', filters: { ...where(email), payloads: { true: '1' } } });
  const other = { groups: [{ properties: [], rollout_percentage: 5 }], early_exit: true };
  await patch(id, { filters: other, name: 'Changed' });
  const back = await api.request(anna, 'POST', url(anna, `${id}/roll_back/`), { version: 1 });
  expect(back.json()).toMatchObject({ version: 3, name: '', filters: { payloads: { true: '1' } } });
  expect(back.json().filters).not.toHaveProperty('early_exit');
  expect(back.json().filters.groups[0].properties).toEqual([email]);
  const history = (await api.request(anna, 'GET', url(anna, `${id}/history/`))).json();
  expect(history.count).toBe(3);
  expect(
    history.results.map((one: { version: number; flag: { name: string }; changed_by: { email: string } }) => [
      one.version,
      one.flag.name,
      one.changed_by.email,
    ]),
  ).toEqual([
    [3, '', anna.email],
    [2, 'Changed', anna.email],
    [1, '', anna.email],
  ]);
  const unknown = await api.request(anna, 'POST', url(anna, `${id}/roll_back/`), { version: 9 });
  expect([unknown.statusCode, unknown.json().detail]).toEqual([400, 'The flag has no version 9.']);
});

test('a cohort of another project does not exist', async () => {
  const cohort = await storeCohort(api.pool, bert.projectId, { name: 'theirs', isStatic: true });
  const answer = await post({ key: 'spy', filters: where({ type: 'cohort', key: 'id', value: cohort }) });
  expect(answer.json().code).toBe('cohort_does_not_exist');
});
