import { beforeAll, describe, expect, test } from '@jest/globals';
import { ADMIN, MEMBER } from '../../tenancy/levels.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$/;
const MISSING = '01900000-0000-7000-8000-000000000000';

describe('creating', () => {
  test('gives a default project, and the caller owns it and works in it', async () => {
    const anna = await api.createTenant('Anna');
    const created = await api.request(anna, 'POST', '/api/organizations/', { name: 'Café Größe & Co' });
    expect(created.statusCode).toBe(201);
    const body = created.json();
    const project = body.projects[0].id;
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      name: 'Café Größe & Co',
      slug: 'cafe-groe-co',
      logo_media_id: null,
      created_at: expect.stringMatching(MOMENT),
      updated_at: expect.stringMatching(MOMENT),
      membership_level: 15,
      plugins_access_level: 9,
      teams: [
        {
          id: project,
          uuid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
          organization: body.id,
          project_id: project,
          api_token: expect.stringMatching(/^phc_[0-9A-Za-z]{40,44}$/),
          name: 'Default project',
          completed_snippet_onboarding: false,
          has_completed_onboarding_for: {},
          ingested_event: false,
          is_demo: false,
          timezone: 'UTC',
          access_control: false,
        },
      ],
      projects: [{ id: project, organization_id: body.id, name: 'Default project' }],
      available_product_features: [],
      is_member_join_email_enabled: true,
      metadata: { instance_tag: 'none' },
      customer_id: null,
      enforce_2fa: null,
      members_can_invite: true,
      members_can_use_personal_api_keys: true,
      member_count: 1,
      is_ai_data_processing_approved: null,
      default_experiment_stats_method: 'bayesian',
    });
    const current = await api.request(anna, 'GET', '/api/organizations/@current');
    expect(current.json()).toEqual(body);
    const me = await api.request(anna, 'GET', '/api/users/@me/');
    expect(me.json().team.id).toBe(project);
    expect(me.json().organization.id).toBe(body.id);
  });

  test('takes every writable field and ignores the others', async () => {
    const anna = await api.createTenant('Anna');
    const settings = {
      logo_media_id: '0190c9a0-0000-7000-8000-000000000001',
      is_member_join_email_enabled: false,
      enforce_2fa: true,
      members_can_invite: false,
      members_can_use_personal_api_keys: false,
      is_ai_data_processing_approved: true,
      default_experiment_stats_method: 'frequentist',
    };
    const created = await api.request(anna, 'POST', '/api/organizations/', {
      name: '  Trimmed ',
      ...settings,
      id: MISSING,
      slug: 'mine',
      membership_level: 1,
      member_count: 77,
      customer_id: 'cus_1',
      plugins_access_level: 0,
      constructor: 'x',
    });
    expect(created.statusCode).toBe(201);
    expect(created.json()).toMatchObject({
      ...settings,
      name: 'Trimmed',
      slug: 'trimmed',
      membership_level: 15,
      member_count: 1,
      customer_id: null,
      plugins_access_level: 9,
    });
    expect(created.json().id).not.toBe(MISSING);
  });

  test.each([
    [{}, 'name', 'required', 'This field is required.'],
    [{ name: null }, 'name', 'null', 'This field may not be null.'],
    [{ name: '' }, 'name', 'blank', 'This field may not be blank.'],
    [{ name: '  ' }, 'name', 'blank', 'This field may not be blank.'],
    [{ name: 'x'.repeat(65) }, 'name', 'max_length', 'Ensure this field has no more than 64 characters.'],
    [{ name: 7 }, 'name', 'invalid_input', 'Not a valid string.'],
    [{ name: ['x'] }, 'name', 'invalid_input', 'Not a valid string.'],
    [{ name: 'x', enforce_2fa: 'yes' }, 'enforce_2fa', 'invalid_input', 'Must be a valid boolean.'],
    [
      { name: 'x', is_member_join_email_enabled: null },
      'is_member_join_email_enabled',
      'null',
      'This field may not be null.',
    ],
    [{ name: 'x', logo_media_id: 'logo' }, 'logo_media_id', 'invalid_input', 'Must be a valid UUID.'],
    [
      { name: 'x', default_experiment_stats_method: 'guess' },
      'default_experiment_stats_method',
      'invalid_choice',
      '"guess" is not a valid choice.',
    ],
    [[], null, 'invalid_input', 'Invalid data. Expected a dictionary, but got list.'],
    ['"text"', null, 'invalid_input', 'Invalid data. Expected a dictionary, but got str.'],
    ['null', null, 'invalid_input', 'Invalid data. Expected a dictionary, but got NoneType.'],
  ])('refuses %j', async (payload, attr, code, detail) => {
    const anna = await api.createTenant('Anna');
    const answer = await api.request(anna, 'POST', '/api/organizations/', payload, {
      'content-type': 'application/json',
    });
    expect([answer.statusCode, answer.json()]).toEqual([400, refusals.field(attr, code, detail)]);
  });

  test('counts characters, not their halves', async () => {
    const anna = await api.createTenant('Anna');
    const answer = await api.request(anna, 'POST', '/api/organizations/', { name: '🦔'.repeat(64) });
    expect(answer.statusCode).toBe(201);
    expect(answer.json()).toMatchObject({ name: '🦔'.repeat(64), slug: 'organization' });
    const tooLong = await api.request(anna, 'POST', '/api/organizations/', { name: '🦔'.repeat(65) });
    expect(tooLong.json().code).toBe('max_length');
  });

  test('two at once with one name get different slugs', async () => {
    const [anna, ben] = [await api.createTenant('Anna'), await api.createTenant('Ben')];
    const name = 'A name that is clearly longer than forty-eight letters';
    const made = await Promise.all(
      [anna, ben, anna, ben].map((one) => api.request(one, 'POST', '/api/organizations/', { name })),
    );
    expect(made.map((one) => one.statusCode)).toEqual([201, 201, 201, 201]);
    const slugs: string[] = made.map((one) => one.json().slug);
    const plain = 'a-name-that-is-clearly-longer-than-forty-eight-l';
    expect(slugs.filter((slug) => slug === plain)).toHaveLength(1);
    for (const slug of slugs.filter((one) => one !== plain)) {
      expect(slug.slice(0, 44)).toBe(`${plain.slice(0, 43)}-`);
      expect(slug.slice(44)).toMatch(/^[a-z0-9]{4}$/);
    }
    expect(new Set(slugs).size).toBe(4);
  });

  test('renaming keeps the slug', async () => {
    const anna = await api.createTenant('Anna');
    const { id, slug } = (await api.request(anna, 'POST', '/api/organizations/', { name: 'Before' })).json();
    const renamed = await api.request(anna, 'PATCH', `/api/organizations/${id}/`, { name: 'After' });
    expect(renamed.json()).toMatchObject({ name: 'After', slug });
  });

  test('a key that is bound to organizations creates none', async () => {
    const anna = await api.createTenant('Anna');
    const { value } = await api.createKey(anna, { scopedOrganizations: [anna.organizationId] });
    const answer = await api.request(value, 'POST', '/api/organizations/', { name: 'x' });
    expect([answer.statusCode, answer.json()]).toEqual([
      403,
      refusals.denied('API keys that are bound to organizations cannot create organizations.'),
    ]);
  });
});

describe('listing and retrieving', () => {
  test('shows the own ones, oldest first, and no others', async () => {
    const anna = await api.createTenant('Anna');
    await api.createTenant('Somebody else');
    const second = (await api.request(anna, 'POST', '/api/organizations/', { name: 'Second' })).json();
    const list = (await api.request(anna, 'GET', '/api/organizations/')).json();
    expect(list).toMatchObject({ count: 2, next: null, previous: null });
    expect(list.results.map((one: { id: string }) => one.id)).toEqual([anna.organizationId, second.id]);
    expect(list.results[1]).toEqual(second);
  });

  test('a key that is bound to organizations sees those only', async () => {
    const anna = await api.createTenant('Anna');
    const second = (await api.request(anna, 'POST', '/api/organizations/', { name: 'Second' })).json();
    const { value } = await api.createKey(anna, { scopedOrganizations: [second.id] });
    const list = (await api.request(value, 'GET', '/api/organizations/')).json();
    expect(list).toMatchObject({ count: 1, results: [{ id: second.id }] });
    const other = await api.request(value, 'GET', `/api/organizations/${anna.organizationId}/`);
    expect([other.statusCode, other.json()]).toEqual([
      403,
      refusals.denied(
        `API key does not have access to the requested organization: ID ${anna.organizationId}.`,
      ),
    ]);
    expect((await api.request(value, 'GET', `/api/organizations/${second.id}/`)).statusCode).toBe(200);
  });

  test('counts active members', async () => {
    const anna = await api.createTenant('Anna');
    const ben = await api.createMember(anna, 'Ben', MEMBER);
    const url = `/api/organizations/${anna.organizationId}/`;
    expect((await api.request(ben, 'GET', url)).json()).toMatchObject({
      member_count: 2,
      membership_level: 1,
    });
    await api.pool.query('update users set is_active = false where id = $1', [ben.userId]);
    expect((await api.request(anna, 'GET', url)).json().member_count).toBe(1);
  });
});

describe('levels', () => {
  let owner: Tenant;
  let admin: Tenant;
  let member: Tenant;
  beforeAll(async () => {
    owner = await api.createTenant('Owner');
    admin = await api.createMember(owner, 'Admin', ADMIN);
    member = await api.createMember(owner, 'Member', MEMBER);
  });
  const who = { owner: () => owner, admin: () => admin, member: () => member };

  test.each([
    ['member', 'GET', '', 200],
    ['member', 'PATCH', '', 403],
    ['member', 'DELETE', '', 403],
    ['member', 'POST', 'environments_rollback/', 403],
    ['member', 'POST', 'authenticate_wizard/', 400],
    ['admin', 'PATCH', '', 200],
    ['admin', 'DELETE', '', 403],
    ['admin', 'POST', 'environments_rollback/', 400],
    ['owner', 'PATCH', '', 200],
    ['owner', 'POST', 'environments_rollback/', 400],
  ] as const)('%s: %s %s is %i', async (level, method, rest, status) => {
    const url = `/api/organizations/${owner.organizationId}/${rest}`;
    const answer = await api.request(who[level](), method, url, method === 'GET' ? undefined : {});
    expect(answer.statusCode).toBe(status);
    if (status === 403) expect(answer.json()).toEqual(refusals.level);
  });

  test('nobody looks at an organization without a membership', async () => {
    const stranger = await api.createTenant('Stranger');
    for (const id of [owner.organizationId, MISSING, 'no-uuid', `${owner.organizationId}x`]) {
      const answer = await api.request(stranger, 'GET', `/api/organizations/${id}/`);
      expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound()]);
    }
  });
});

describe('changing', () => {
  test.each([
    ['name', 'Other name'],
    ['logo_media_id', '0190c9a0-0000-7000-8000-000000000001'],
    ['is_member_join_email_enabled', false],
    ['enforce_2fa', true],
    ['members_can_invite', false],
    ['members_can_invite', null],
    ['members_can_use_personal_api_keys', false],
    ['is_ai_data_processing_approved', false],
    ['default_experiment_stats_method', 'frequentist'],
    ['default_experiment_stats_method', null],
  ])('%s becomes %j and nothing else changes', async (field, value) => {
    const anna = await api.createTenant('Anna');
    const url = `/api/organizations/${anna.organizationId}/`;
    const before = (await api.request(anna, 'GET', url)).json();
    const answer = await api.request(anna, 'PATCH', url, { [field]: value });
    expect(answer.statusCode).toBe(200);
    const { updated_at, ...after } = answer.json();
    expect({ ...after, updated_at: before.updated_at }).toEqual({ ...before, [field]: value });
    expect(updated_at > before.updated_at).toBe(true);
    expect((await api.request(anna, 'GET', url)).json()).toEqual(answer.json());
  });

  test.each(['id', 'slug', 'created_at', 'membership_level', 'customer_id', 'member_count', 'metadata'])(
    '%s cannot be written',
    async (field) => {
      const anna = await api.createTenant('Anna');
      const url = `/api/organizations/${anna.organizationId}/`;
      const before = (await api.request(anna, 'GET', url)).json();
      const answer = await api.request(anna, 'PATCH', url, { [field]: 'other' });
      expect(answer.statusCode).toBe(200);
      expect(answer.json()[field]).toEqual(before[field]);
    },
  );

  test('takes a form too', async () => {
    const anna = await api.createTenant('Anna');
    const answer = await api.request(
      anna,
      'PATCH',
      `/api/organizations/${anna.organizationId}/`,
      'name=From+a+form&enforce_2fa=true',
      { 'content-type': 'application/x-www-form-urlencoded' },
    );
    expect([answer.statusCode, answer.json().name, answer.json().enforce_2fa]).toEqual([
      200,
      'From a form',
      true,
    ]);
  });
});

describe('the policy on personal API keys', () => {
  const closed = (name: string) =>
    refusals.denied(
      `Organization '${name}' does not allow using personal API keys. Contact an admin to enable personal API keys for this organization.`,
    );

  test('shuts members out of everything of the organization, and nobody else', async () => {
    const owner = await api.createTenant('Closed');
    const admin = await api.createMember(owner, 'Admin', ADMIN);
    const member = await api.createMember(owner, 'Member', MEMBER);
    await api.request(member, 'PATCH', '/api/users/@me/', { set_current_team: owner.projectId });
    await api.request(owner, 'PATCH', '/api/organizations/@current/', {
      members_can_use_personal_api_keys: false,
    });
    const places = [
      `/api/organizations/${owner.organizationId}/`,
      `/api/organizations/${owner.organizationId}/members/`,
      `/api/organizations/${owner.organizationId}/projects/`,
      `/api/projects/${owner.projectId}/`,
      `/api/environments/${owner.projectId}/`,
      `/api/projects/${owner.projectId}/activity_log/`,
      '/api/projects/@current/',
      '/api/projects/',
    ];
    for (const place of places) {
      const refused = await api.request(member, 'GET', place);
      expect([place, refused.statusCode, refused.json()]).toEqual([place, 403, closed('Closed')]);
      const current = place.includes('@current') || place === '/api/projects/';
      if (!current) expect((await api.request(admin, 'GET', place)).statusCode).toBe(200);
      expect((await api.request(owner, 'GET', place)).statusCode).toBe(200);
    }
    expect((await api.request(member, 'GET', '/api/users/@me/')).statusCode).toBe(200);
    expect((await api.request(member, 'GET', '/api/personal_api_keys/@current/')).statusCode).toBe(200);
    expect((await api.request(member, 'GET', `/api/projects/${member.projectId}/`)).statusCode).toBe(200);
  });
});

describe('deleting', () => {
  test('takes projects, memberships and configuration, and leaves work for the background', async () => {
    const owner = await api.createTenant('Doomed');
    const url = `/api/organizations/${owner.organizationId}/`;
    const second = (await api.request(owner, 'POST', `${url}projects/`, { name: 'Second' })).json();
    await api.pool.query(
      `insert into wizard_sessions (hash, expires_at, user_id, project_id) values ('h', now() + interval '1 hour', $1, $2)`,
      [owner.userId, second.id],
    );
    await api.pool.query(
      `insert into group_types (project_id, group_type_index, group_type) values ($1, 0, 'company')`,
      [second.id],
    );
    const deleted = await api.request(owner, 'DELETE', url);
    expect([deleted.statusCode, deleted.body]).toEqual([204, '']);
    const count = async (sql: string, value: unknown) =>
      (await api.pool.query(`select count(*)::int as count from ${sql}`, [value])).rows[0].count;
    expect(await count('organizations where id = $1', owner.organizationId)).toBe(0);
    expect(await count('organization_memberships where organization_id = $1', owner.organizationId)).toBe(0);
    expect(await count('projects where organization_id = $1', owner.organizationId)).toBe(0);
    expect(await count('wizard_sessions where project_id = $1', second.id)).toBe(0);
    expect(await count('group_types where project_id = $1', second.id)).toBe(1);
    const { rows } = await api.pool.query(
      `select project_id, schedules_stopped_at, data_deleted_at from project_deletions
       where organization_id = $1 order by project_id`,
      [owner.organizationId],
    );
    expect(rows).toEqual(
      [owner.projectId, second.id].map((project_id) => ({
        project_id,
        schedules_stopped_at: null,
        data_deleted_at: null,
      })),
    );
    for (const gone of [url, `/api/projects/${second.id}/`, '/api/organizations/@current/']) {
      expect((await api.request(owner, 'GET', gone)).statusCode).toBe(404);
    }
    expect((await api.request(owner, 'GET', '/api/users/@me/')).json()).toMatchObject({
      team: null,
      organization: null,
      organizations: [],
    });
  });

  test('sends the user on to the next organization', async () => {
    const owner = await api.createTenant('First');
    const second = (await api.request(owner, 'POST', '/api/organizations/', { name: 'Second' })).json();
    await api.request(owner, 'DELETE', `/api/organizations/${second.id}/`);
    const current = await api.request(owner, 'GET', '/api/organizations/@current/');
    expect([current.statusCode, current.json().id]).toEqual([200, owner.organizationId]);
    expect((await api.request(owner, 'GET', '/api/projects/@current/')).json().id).toBe(owner.projectId);
  });

  test('twice at once: one deletes, the other finds nothing', async () => {
    const owner = await api.createTenant('Doomed twice');
    const url = `/api/organizations/${owner.organizationId}/`;
    const answers = await Promise.all([api.request(owner, 'DELETE', url), api.request(owner, 'DELETE', url)]);
    expect(answers.map((one) => one.statusCode).sort()).toEqual([204, 404]);
    const { rows } = await api.pool.query(
      `select activity from activity_log where item_id = $1 and activity = 'deleted'`,
      [owner.organizationId],
    );
    expect(rows).toHaveLength(1);
  });

  test('while projects are created, none is lost without a trace', async () => {
    const owner = await api.createTenant('Busy');
    const url = `/api/organizations/${owner.organizationId}/`;
    const create = () => api.request(owner, 'POST', `${url}projects/`, { name: 'One more' });
    const [deleted, ...created] = await Promise.all([
      api.request(owner, 'DELETE', url),
      ...Array.from({ length: 8 }, create),
    ]);
    expect(deleted.statusCode).toBe(204);
    for (const one of created) expect([201, 404]).toContain(one.statusCode);
    const { rows } = await api.pool.query(
      `select item_id::int as id from activity_log
       where organization_id = $1 and scope = 'Project' and activity = 'created'
       except select project_id from project_deletions`,
      [owner.organizationId],
    );
    expect(rows).toEqual([]);
  });
});
