// A flag in other projects of the organization, with what it names there.
import { beforeAll, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { EVERYBODY, where } from './support.ts';

const api = apiForFile();
let anna: Tenant;
let bert: Tenant;
let target: number;
let other: number;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  bert = await api.createTenant('Bert');
  [target, other] = (await Promise.all([project(), project()])) as [number, number];
  const type = (projectId: number, name: string, index: number) =>
    api.pool.query('insert into group_types (project_id, group_type, group_type_index) values ($1, $2, $3)', [
      projectId,
      name,
      index,
    ]);
  await type(anna.projectId, 'company', 0);
  await type(target, 'team', 0);
  await type(target, 'company', 1);
});

const project = async () =>
  (
    await api.request(anna, 'POST', `/api/organizations/${anna.organizationId}/projects/`, { name: 'P' })
  ).json().id;
const organization = (tenant = anna) => `/api/organizations/${tenant.organizationId}/feature_flags/`;
const flags = (projectId: number) => `/api/projects/${projectId}/feature_flags/`;
async function make(path: string, body: object) {
  const answer = await api.request(anna, 'POST', path, body);
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json();
}
const create = (body: object, projectId = anna.projectId) =>
  make(flags(projectId), { filters: EVERYBODY, ...body });
const cohort = (name: string, values: unknown[], projectId = anna.projectId) =>
  make(`/api/projects/${projectId}/cohorts/`, { name, filters: { properties: { type: 'AND', values } } });
const copy = (
  key: string,
  targets: unknown[] = [target],
  more: object = {},
  tenant: Tenant | string = anna,
) =>
  api.request(tenant, 'POST', `${organization()}copy_flags`, {
    ...{ feature_flag_key: key, from_project: anna.projectId, target_project_ids: targets },
    ...more,
  });
const failure = async (key: string) => (await copy(key)).json().failed[0]?.errors;

test('is created, and becomes the same again', async () => {
  const source = await create({ key: 'copied', name: 'A flag', tags: ['a'] });
  const first = (await copy('copied')).json();
  expect(first).toEqual({
    success: [expect.objectContaining({ key: 'copied', name: 'A flag', version: 1 })],
    failed: [],
  });
  expect(first.success[0].id).not.toBe(source.id);
  await api.request(anna, 'PATCH', `${flags(target)}${first.success[0].id}/`, { name: 'theirs', tags: [] });
  const second = (await copy('copied', [target, other], { disable_copied_flag: true })).json();
  expect(second.success).toEqual([
    expect.objectContaining({
      id: first.success[0].id,
      name: 'A flag',
      active: false,
      version: 3,
      tags: ['a'],
    }),
    expect.objectContaining({ name: 'A flag', active: false, version: 1 }),
  ]);
  const siblings = (await api.request(anna, 'GET', `${organization()}copied/`)).json();
  expect(siblings.map((one: { team_id: number }) => one.team_id).sort()).toEqual(
    [anna.projectId, target, other].sort(),
  );
});

test('stays within the organization and the bounds of the key', async () => {
  await create({ key: 'walled' });
  const refused = (await copy('walled', [bert.projectId, 2_000_000_000])).json();
  expect(refused).toEqual({
    success: [],
    failed: [bert.projectId, 2_000_000_000].map((id) => ({
      project_id: id,
      error_message: 'Target project does not exist.',
      errors: 'Target project does not exist.',
    })),
  });
  const bound = (await api.createKey(anna, { scopedTeams: [anna.projectId] })).value;
  expect((await copy('walled', [target], {}, bound)).json().failed).toEqual([
    expect.objectContaining({ project_id: target, errors: 'Target project does not exist.' }),
  ]);
  expect((await copy('nobody')).json()).toMatchObject({ attr: 'feature_flag_key' });
  expect((await copy('walled', [])).statusCode).toBe(400);
  expect((await copy('walled', [target], {}, bert)).statusCode).toBe(404);
  const foreign = await api.request(bert, 'POST', `${organization(bert)}copy_flags`, {
    ...{ feature_flag_key: 'walled', from_project: anna.projectId, target_project_ids: [bert.projectId] },
  });
  expect(foreign.json()).toMatchObject({
    attr: 'feature_flag_key',
    detail: 'Feature flag to copy does not exist.',
  });
  expect((await copy('walled', [anna.projectId])).json().failed[0].errors).toBe(
    'The flag is in this project already.',
  );
});

test('takes cohorts along, innermost first, and finds those of the same name', async () => {
  const property = (value: string) => ({ key: 'p', type: 'person', operator: 'exact', value });
  const asks = (id: number) => ({ key: 'id', type: 'cohort', value: id });
  const there = await cohort('Known', [property('theirs')], target);
  const known = await cohort('Known', [property('ours')]);
  const inner = await cohort('Inner', [property('x')]);
  const middle = await cohort('Middle', [asks(inner.id), asks(known.id)]);
  const outer = await cohort('Outer', [asks(middle.id), { ...asks(inner.id), negation: true }]);
  await create({ key: 'cohorts', filters: where(asks(outer.id), { ...asks(known.id), operator: 'not_in' }) });
  const { success, failed } = (await copy('cohorts')).json();
  expect(failed).toEqual([]);
  const list = (await api.request(anna, 'GET', `/api/projects/${target}/cohorts/`)).json().results;
  const byName = new Map<string, { id: number; filters: { properties: { values: object[] } } }>(
    list.map((one: { name: string }) => [one.name, one]),
  );
  expect([...byName.keys()].sort()).toEqual(['Inner', 'Known', 'Middle', 'Outer']);
  const idOf = (name: string) => byName.get(name)?.id as number;
  expect(idOf('Known')).toBe(there.id);
  expect(byName.get('Middle')?.filters.properties.values).toEqual([asks(idOf('Inner')), asks(there.id)]);
  expect(byName.get('Outer')?.filters.properties.values).toEqual([
    asks(idOf('Middle')),
    { ...asks(idOf('Inner')), negation: true },
  ]);
  expect(success[0].filters.groups[0].properties).toEqual([
    asks(idOf('Outer')),
    { ...asks(there.id), operator: 'not_in' },
  ]);
});

test('is refused with a sentence where something it names is missing', async () => {
  const fixed = await make(`/api/projects/${anna.projectId}/cohorts/`, { name: 'Listed', is_static: true });
  await create({ key: 'static', filters: where({ key: 'id', type: 'cohort', value: fixed.id }) });
  expect(await failure('static')).toMatch(/^The cohort "Listed" lists persons of the other project/);
  const asked = await create({ key: 'asked' });
  const depends = where({ type: 'flag', key: String(asked.id), operator: 'flag_evaluates_to', value: true });
  await create({ key: 'depends', filters: depends });
  expect(await failure('depends')).toMatch(/^The flag depends on the flag "asked"/);
  const copied = (await copy('asked')).json().success[0];
  const done = (await copy('depends')).json().success[0];
  expect(done.filters.groups[0].properties[0].key).toBe(String(copied.id));
  await api.pool.query(
    "insert into group_types (project_id, group_type, group_type_index) values ($1, 'x', 3)",
    [anna.projectId],
  );
  const about = (index: number) => ({
    groups: [{ properties: [{ key: 'n', type: 'group', group_type_index: index, value: 'v' }] }],
    aggregation_group_type_index: index,
  });
  await create({ key: 'strange', filters: about(3) });
  expect(await failure('strange')).toMatch(/^The flag is about groups of the type "x"/);
  await create({ key: 'company', filters: about(0) });
  const { filters } = (await copy('company')).json().success[0];
  expect(filters).toMatchObject({
    aggregation_group_type_index: 1,
    groups: [{ aggregation_group_type_index: 1, properties: [{ group_type_index: 1 }] }],
  });
});

test('keeps its encrypted payload', async () => {
  const secret = { is_remote_configuration: true, has_encrypted_payloads: true };
  await create({ key: 'sealed', ...secret, filters: { groups: [], payloads: { true: '{"a":"hunter2"}' } } });
  const answer = await copy('sealed');
  expect(answer.json().success).toHaveLength(1);
  expect(answer.body).not.toContain('hunter2');
  const told = await api.request(anna, 'GET', `${flags(target)}sealed/remote_config/`);
  expect(told.json()).toBe('{"a":"hunter2"}');
});

test('takes along what is planned, with what it names there', async () => {
  const vips = await cohort('planned vips', [
    { key: 'plan', type: 'person', operator: 'exact', value: 'paid' },
  ]);
  const source = await create({ key: 'planned' });
  const plan = (operation: string, value: unknown, scheduled_at = '2126-01-02T03:04:05Z') =>
    make(`/api/projects/${anna.projectId}/scheduled_changes/`, {
      ...{ record_id: String(source.id), model_name: 'FeatureFlag', payload: { operation, value } },
      scheduled_at,
    });
  const of = (value: unknown) => ({ groups: [{ properties: [{ key: 'id', type: 'cohort', value }] }] });
  await plan('add_release_condition', of(vips.id));
  await plan('update_status', false, '2126-01-03T00:00:00Z');
  const theirs = async () =>
    (await api.request(anna, 'GET', `/api/projects/${target}/scheduled_changes/`)).json().results;
  expect((await copy('planned')).json().success).toHaveLength(1);
  expect(await theirs()).toEqual([]);
  // Copying again plans nothing twice.
  for (let times = 0; times < 2; times += 1) {
    const copied = (await copy('planned', [target], { copy_schedule: true })).json();
    expect(copied.success[0].schedule_copy_warning).toBeUndefined();
    const { rows } = await api.pool.query('select id from cohorts where project_id = $1 and name = $2', [
      ...[target, 'planned vips'],
    ]);
    expect(await theirs()).toMatchObject([
      {
        record_id: String(copied.success[0].id),
        scheduled_at: '2126-01-02T03:04:05Z',
        payload: { operation: 'add_release_condition', value: of(rows[0].id) },
        created_by: { email: anna.email },
      },
      { payload: { operation: 'update_status', value: false } },
    ]);
  }
  const listed = await make(`/api/projects/${anna.projectId}/cohorts/`, {
    name: 'only here',
    is_static: true,
  });
  await plan('add_release_condition', of(listed.id));
  const warned = (await copy('planned', [target], { copy_schedule: true })).json();
  expect(warned.success[0].schedule_copy_warning).toMatch(/^Flag copied but schedules failed: .*only here/);
  expect(await theirs()).toHaveLength(2);
});
