import { describe, expect, test } from '@jest/globals';
import { CAPTURE_STEPS } from '../../capture/maintenance.ts';
import { ADMIN, MEMBER } from '../../tenancy/levels.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();

describe('projects', () => {
  test('are created by the name alone, and the caller works in the new one', async () => {
    const anna = await api.createTenant('Anna');
    const created = await api.request(anna, 'POST', '/api/projects/', { name: 'Shop' });
    expect(created.statusCode).toBe(201);
    const body = created.json();
    expect(body).toEqual({
      id: expect.any(Number),
      uuid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      organization: anna.organizationId,
      project_id: body.id,
      api_token: expect.stringMatching(/^phc_[0-9A-Za-z]{40,44}$/),
      name: 'Shop',
      completed_snippet_onboarding: false,
      has_completed_onboarding_for: {},
      ingested_event: false,
      is_demo: false,
      timezone: 'UTC',
      access_control: false,
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
      effective_membership_level: 15,
      has_group_types: false,
      group_types: [],
      app_urls: [],
      anonymize_ips: false,
      test_account_filters: [],
      flags_persistence_default: null,
      secret_api_token: null,
      secret_api_token_backup: null,
      heatmaps_opt_in: null,
      autocapture_exceptions_opt_in: null,
      autocapture_web_vitals_opt_in: null,
      session_recording_opt_in: null,
      surveys_opt_in: null,
      cookieless_server_hash_mode: null,
      recording_domains: null,
    });
    for (const id of [body.id, '@current']) {
      for (const name of ['projects', 'environments']) {
        expect((await api.request(anna, 'GET', `/api/${name}/${id}/`)).json()).toEqual(body);
      }
    }
  });

  test('keep the settings that tools set, although they change nothing', async () => {
    const anna = await api.createTenant('Anna');
    const url = `/api/environments/${anna.projectId}/`;
    const kept = {
      ...{ heatmaps_opt_in: true, autocapture_exceptions_opt_in: false, autocapture_web_vitals_opt_in: true },
      ...{ session_recording_opt_in: true, surveys_opt_in: false, cookieless_server_hash_mode: 2 },
      recording_domains: ['https://shop.example'],
    };
    const set = await api.request(anna, 'PATCH', url, { ...kept, app_urls: ['https://shop.example'] });
    expect([set.statusCode, set.json()]).toEqual([200, expect.objectContaining(kept)]);
    // Those that a change does not name stay, and null takes one back.
    await api.request(anna, 'PATCH', url, { name: 'Renamed' });
    await api.request(anna, 'PATCH', url, { heatmaps_opt_in: null, surveys_opt_in: true });
    const now = { ...kept, heatmaps_opt_in: null, surveys_opt_in: true, name: 'Renamed' };
    expect((await api.request(anna, 'GET', url)).json()).toMatchObject(now);
    const made = await api.request(anna, 'POST', '/api/projects/', { name: 'New', ...kept });
    expect([made.statusCode, made.json()]).toEqual([201, expect.objectContaining(kept)]);
    const log = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/activity_log/`);
    expect(log.json().results[0].detail.changes).toEqual([
      { field: 'heatmaps_opt_in', before: true, after: null },
      { field: 'surveys_opt_in', before: false, after: true },
    ]);
    for (const [field, value] of [
      ['heatmaps_opt_in', 'yes'],
      ['cookieless_server_hash_mode', 3],
      ['recording_domains', 'https://shop.example'],
    ] as const) {
      const refused = await api.request(anna, 'PATCH', url, { [field]: value });
      expect([refused.statusCode, refused.json().attr]).toEqual([400, field]);
    }
  });

  test('tell that they have had an event', async () => {
    const [anna, bob] = [await api.createTenant('Anna'), await api.createTenant('Bob')];
    await api.ingest.submit({ projectId: anna.projectId, events: [capturedEvent()] });
    const step = CAPTURE_STEPS.find((one) => one.name === 'noteFirstEvents');
    const deps = {
      pool: api.pool,
      eventRetentionDays: undefined,
      eventDrops: { isWanted: async () => false, isDropped: async () => {} },
    };
    const run = () => step?.run(deps, { signal: new AbortController().signal, beat: () => {} });
    expect(await run()).toBe(1);
    expect(await run()).toBe(0);
    for (const [tenant, expected] of [
      [anna, true],
      [bob, false],
    ] as const) {
      const { results } = (await api.request(tenant, 'GET', '/api/projects/')).json();
      expect(results.map((one: { ingested_event: boolean }) => one.ingested_event)).toEqual([expected]);
    }
  });

  test('are shown, changed and deleted below their organization too', async () => {
    const [anna, bob] = [await api.createTenant('Anna'), await api.createTenant('Bob')];
    const shop = (await api.request(anna, 'POST', '/api/projects/', { name: 'Shop' })).json();
    const below = (organization: string) => `/api/organizations/${organization}/projects/${shop.id}/`;
    const url = below(anna.organizationId);
    expect((await api.request(anna, 'GET', url)).json()).toEqual(shop);
    expect((await api.request(anna, 'GET', below('@current'))).json()).toEqual(shop);
    expect((await api.request(anna, 'PATCH', url, { name: 'Store' })).json()).toMatchObject({
      name: 'Store',
    });
    expect((await api.request(anna, 'GET', `/api/projects/${shop.id}/`)).json().name).toBe('Store');
    // A strange project, and one below another organization, are like one that does not exist.
    const missing = [404, refusals.notFound('Project not found.')];
    for (const [who, where] of [
      [bob, url],
      [bob, below(bob.organizationId)],
      [anna, below(bob.organizationId)],
    ] as const) {
      for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
        const answer = await api.request(
          who,
          method,
          where,
          method === 'PATCH' ? { name: 'Mine' } : undefined,
        );
        expect([answer.statusCode, answer.json()]).toEqual(missing);
      }
    }
    expect((await api.request(anna, 'DELETE', url)).statusCode).toBe(204);
    expect((await api.request(anna, 'GET', url)).statusCode).toBe(404);
    expect((await api.request(anna, 'GET', `/api/projects/${shop.id}/`)).statusCode).toBe(404);
  });

  test('are listed by id, in the current organization or a named one, in their short form', async () => {
    const anna = await api.createTenant('Anna');
    const shop = (await api.request(anna, 'POST', '/api/projects/', { name: 'Shop' })).json();
    const nested = `/api/organizations/${anna.organizationId}/projects/`;
    for (const url of [
      '/api/projects/',
      '/api/environments/',
      nested,
      '/api/organizations/@current/projects/',
    ]) {
      const list = (await api.request(anna, 'GET', url)).json();
      expect(list.count).toBe(2);
      const found = (await api.request(anna, 'GET', `${url}?search=SHO`)).json();
      expect([found.count, found.results.map((one: { id: number }) => one.id)]).toEqual([1, [shop.id]]);
      expect((await api.request(anna, 'GET', `${url}?search=%25`)).json().count).toBe(0);
      expect(list.results.map((one: { id: number }) => one.id)).toEqual([anna.projectId, shop.id]);
      expect(Object.keys(list.results[0]).sort()).toEqual([
        'access_control',
        'api_token',
        'completed_snippet_onboarding',
        'has_completed_onboarding_for',
        'id',
        'ingested_event',
        'is_demo',
        'name',
        'organization',
        'project_id',
        'timezone',
        'uuid',
      ]);
    }
  });

  test.each([
    ['name', 'Other'],
    ['timezone', 'Europe/Berlin'],
    ['is_demo', true],
    ['completed_snippet_onboarding', true],
    ['has_completed_onboarding_for', { exports: true, constructor: { a: [1, null] } }],
    ['access_control', true],
    ['app_urls', ['https://example.com', '']],
    ['anonymize_ips', true],
    ['test_account_filters', [{ key: 'email', value: '@example.com' }]],
    ['flags_persistence_default', true],
    ['flags_persistence_default', null],
  ])('%s is set on creation and by a patch: %j', async (field, value) => {
    const anna = await api.createTenant('Anna');
    const created = await api.request(anna, 'POST', '/api/projects/', { [field]: value });
    expect([created.statusCode, created.json()[field]]).toEqual([201, value]);
    const url = `/api/projects/${anna.projectId}/`;
    const before = (await api.request(anna, 'GET', url)).json();
    const { updated_at, ...after } = (await api.request(anna, 'PATCH', url, { [field]: value })).json();
    expect({ ...after, updated_at: before.updated_at }).toEqual({ ...before, [field]: value });
    expect(updated_at > before.updated_at).toBe(true);
  });

  test.each([
    [{ name: 'x'.repeat(201) }, 'name', 'max_length', 'Ensure this field has no more than 200 characters.'],
    [{ name: '' }, 'name', 'blank', 'This field may not be blank.'],
    [{ timezone: 'Mars/Olympus' }, 'timezone', 'invalid_choice', '"Mars/Olympus" is not a valid choice.'],
    [{ timezone: '+01:00' }, 'timezone', 'invalid_choice', '"+01:00" is not a valid choice.'],
    [{ app_urls: 'x' }, 'app_urls', 'not_a_list', 'Expected a list of items but got type "str".'],
    [{ app_urls: ['x', 1] }, 'app_urls__1', 'invalid_input', 'Not a valid string.'],
    [
      { has_completed_onboarding_for: [] },
      'has_completed_onboarding_for',
      'not_a_dict',
      'Expected a dictionary of items but got type "list".',
    ],
    [{ anonymize_ips: 1 }, 'anonymize_ips', 'invalid_input', 'Must be a valid boolean.'],
  ])('refuse %j', async (body, attr, code, detail) => {
    const anna = await api.createTenant('Anna');
    const expected = [400, refusals.field(attr, code, detail)];
    const created = await api.request(anna, 'POST', '/api/projects/', body);
    expect([created.statusCode, created.json()]).toEqual(expected);
    const patched = await api.request(anna, 'PATCH', `/api/projects/${anna.projectId}/`, body);
    expect([patched.statusCode, patched.json()]).toEqual(expected);
  });

  test('levels: members read and change, admins create, rotate and delete', async () => {
    const owner = await api.createTenant('Owner');
    const member = await api.createMember(owner, 'Member', MEMBER);
    const admin = await api.createMember(owner, 'Admin', ADMIN);
    const url = `/api/projects/${owner.projectId}/`;
    const nested = `/api/organizations/${owner.organizationId}/projects/`;
    expect((await api.request(member, 'GET', url)).json().effective_membership_level).toBe(1);
    expect((await api.request(member, 'PATCH', url, { name: 'New' })).statusCode).toBe(200);
    await api.request(member, 'PATCH', '/api/users/@me/', { set_current_team: owner.projectId });
    for (const [method, path] of [
      ['POST', nested],
      ['POST', '/api/projects/'],
      ['PATCH', `${url}reset_token/`],
      ['PATCH', `${url}rotate_secret_token/`],
      ['PATCH', `${url}delete_secret_token_backup/`],
      ['DELETE', url],
    ] as const) {
      const refused = await api.request(member, method, path, { name: 'x' });
      expect([path, refused.statusCode, refused.json()]).toEqual([path, 403, refusals.level]);
    }
    const made = await api.request(admin, 'POST', nested, { name: 'By the admin' });
    expect(made.statusCode).toBe(201);
    expect((await api.request(admin, 'DELETE', `/api/projects/${made.json().id}/`)).statusCode).toBe(204);
  });

  test('tokens are replaced; the secret one keeps its predecessor', async () => {
    const anna = await api.createTenant('Anna');
    const url = `/api/projects/${anna.projectId}/`;
    const rotate = async (path: string) => (await api.request(anna, 'PATCH', `${url}${path}/`)).json();
    const reset = await rotate('reset_token');
    expect(reset.api_token).toMatch(/^phc_/);
    expect(reset.api_token).not.toBe(anna.projectToken);
    const one = await rotate('rotate_secret_token');
    expect(one.secret_api_token).toMatch(/^phs_/);
    expect(one.secret_api_token_backup).toBeNull();
    const two = await rotate('rotate_secret_token');
    expect(two.secret_api_token_backup).toBe(one.secret_api_token);
    expect((await rotate('delete_secret_token_backup')).secret_api_token_backup).toBeNull();
    const both = await Promise.all([rotate('rotate_secret_token'), rotate('rotate_secret_token')]);
    const last = (await api.request(anna, 'GET', url)).json();
    expect(last.secret_api_token_backup).not.toBe(two.secret_api_token);
    expect(both.map((answer) => answer.secret_api_token)).toContain(last.secret_api_token);
  });

  test('deleting one leaves its data to the background and shows it nowhere', async () => {
    const anna = await api.createTenant('Anna');
    const shop = (await api.request(anna, 'POST', '/api/projects/', { name: 'Shop' })).json();
    const url = `/api/projects/${shop.id}/`;
    const answers = await Promise.all([api.request(anna, 'DELETE', url), api.request(anna, 'DELETE', url)]);
    expect(answers.map((one) => one.statusCode).sort()).toEqual([204, 404]);
    const gone = await api.request(anna, 'GET', url);
    expect([gone.statusCode, gone.json()]).toEqual([404, refusals.notFound('Project not found.')]);
    expect((await api.request(anna, 'GET', '/api/projects/@current/')).json().id).toBe(anna.projectId);
    expect((await api.request(anna, 'GET', '/api/organizations/@current/')).json().projects).toHaveLength(1);
    const { rows } = await api.pool.query(
      'select project_id, organization_id from project_deletions where organization_id = $1',
      [anna.organizationId],
    );
    expect(rows).toEqual([{ project_id: shop.id, organization_id: anna.organizationId }]);
  });

  test('shows the types of groups', async () => {
    const anna = await api.createTenant('Anna');
    await api.pool.query(
      `insert into group_types (project_id, group_type_index, group_type, name_plural)
       values ($1, 1, 'plan', null), ($1, 0, 'company', 'companies')`,
      [anna.projectId],
    );
    expect((await api.request(anna, 'GET', '/api/projects/@current/')).json()).toMatchObject({
      has_group_types: true,
      group_types: [
        { group_type: 'company', group_type_index: 0, name_singular: null, name_plural: 'companies' },
        { group_type: 'plan', group_type_index: 1, name_singular: null, name_plural: null },
      ],
    });
  });

  test('a key that is bound to a project works there only', async () => {
    const anna = await api.createTenant('Anna');
    const shop = (await api.request(anna, 'POST', '/api/projects/', { name: 'Shop' })).json();
    const { value } = await api.createKey(anna, { scopedTeams: [shop.id] });
    const status = async (url: string) => {
      const answer = await api.request(value, 'GET', url);
      return [answer.statusCode, answer.json().detail];
    };
    expect((await status(`/api/projects/${shop.id}/`))[0]).toBe(200);
    expect((await status('/api/projects/@current/'))[0]).toBe(200);
    expect(await status(`/api/projects/${anna.projectId}/`)).toEqual([
      403,
      `API key does not have access to the requested project: ID ${anna.projectId}.`,
    ]);
    const unsupported = 'API keys with scoped projects are only supported on project-based endpoints.';
    for (const url of [
      '/api/projects/',
      '/api/organizations/',
      `/api/organizations/${anna.organizationId}/`,
      `/api/organizations/${anna.organizationId}/members/`,
    ]) {
      expect(await status(url)).toEqual([403, unsupported]);
    }
    expect((await status('/api/users/@me/'))[0]).toBe(200);
    expect((await status('/api/personal_api_keys/@current/'))[0]).toBe(200);
  });
});
