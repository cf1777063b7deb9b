import { describe, expect, test } from '@jest/globals';
import { MEMBER } from '../../tenancy/levels.ts';
import { apiForFile } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();

describe('users/@me', () => {
  test('has every field', async () => {
    const anna = await api.createTenant('Anna');
    const organization = (await api.request(anna, 'GET', '/api/organizations/@current/')).json();
    const answer = await api.request(anna, 'GET', '/api/users/@me/');
    expect([answer.statusCode, answer.json()]).toEqual([
      200,
      {
        id: anna.userId,
        uuid: anna.userUuid,
        distinct_id: expect.stringMatching(/^[a-z0-9]{40}$/),
        first_name: 'Anna',
        last_name: '',
        email: anna.email,
        is_email_verified: null,
        hedgehog_config: null,
        role_at_organization: null,
        date_joined: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        is_staff: false,
        is_2fa_enabled: false,
        has_password: false,
        theme_mode: null,
        team: organization.teams[0],
        organization,
        organizations: [
          {
            id: anna.organizationId,
            name: 'Anna',
            slug: organization.slug,
            logo_media_id: null,
            membership_level: 15,
            members_can_use_personal_api_keys: true,
          },
        ],
      },
    ]);
    expect((await api.request(anna, 'GET', `/api/users/${anna.userUuid}`)).json()).toEqual(answer.json());
  });

  test.each([
    ['first_name', 'Ann'],
    ['last_name', ''],
    ['role_at_organization', 'engineering'],
    ['role_at_organization', null],
    ['theme_mode', 'dark'],
    ['hedgehog_config', { color: 'green', nested: [{ deep: null }] }],
    ['hedgehog_config', null],
  ])('%s becomes %j', async (field, value) => {
    const anna = await api.createTenant('Anna');
    const before = (await api.request(anna, 'GET', '/api/users/@me/')).json();
    const answer = await api.request(anna, 'PATCH', '/api/users/@me/', { [field]: value });
    expect([answer.statusCode, answer.json()]).toEqual([200, { ...before, [field]: value }]);
  });

  test.each(['email', 'is_staff', 'uuid', 'is_active', 'distinct_id', 'id', 'date_joined'])(
    '%s cannot be written',
    async (field) => {
      const anna = await api.createTenant('Anna');
      const before = (await api.request(anna, 'GET', '/api/users/@me/')).json();
      const answer = await api.request(anna, 'PATCH', '/api/users/@me/', { [field]: true });
      expect([answer.statusCode, answer.json()]).toEqual([200, before]);
    },
  );

  test.each([
    [
      { role_at_organization: 'boss' },
      'role_at_organization',
      'invalid_choice',
      '"boss" is not a valid choice.',
    ],
    [
      { first_name: 'x'.repeat(151) },
      'first_name',
      'max_length',
      'Ensure this field has no more than 150 characters.',
    ],
    [{ set_current_team: 999_999_999 }, 'set_current_team', 'does_not_exist', 'Project not found.'],
    [{ set_current_team: '1' }, 'set_current_team', 'invalid_input', 'A valid number is required.'],
    [
      { set_current_organization: '01900000-0000-7000-8000-000000000000' },
      'set_current_organization',
      'does_not_exist',
      'Organization not found.',
    ],
  ])('refuses %j', async (body, attr, code, detail) => {
    const anna = await api.createTenant('Anna');
    const answer = await api.request(anna, 'PATCH', '/api/users/@me/', body);
    expect([answer.statusCode, answer.json()]).toEqual([400, refusals.field(attr, code, detail)]);
  });

  test('moves between organizations and projects', async () => {
    const owner = await api.createTenant('Owner');
    const anna = await api.createMember(owner, 'Anna', MEMBER);
    const moved = await api.request(anna, 'PATCH', '/api/users/@me/', {
      set_current_organization: owner.organizationId,
    });
    expect(moved.json()).toMatchObject({
      organization: { id: owner.organizationId },
      team: { id: owner.projectId },
    });
    expect((await api.request(anna, 'GET', '/api/projects/@current/')).json().id).toBe(owner.projectId);
    const back = await api.request(anna, 'PATCH', '/api/users/@me/', { set_current_team: anna.projectId });
    expect(back.json()).toMatchObject({
      organization: { id: anna.organizationId },
      team: { id: anna.projectId },
    });
  });

  test('nobody is found but the caller', async () => {
    const [anna, ben] = [await api.createTenant('Anna'), await api.createTenant('Ben')];
    for (const id of [
      ben.userUuid,
      '01900000-0000-7000-8000-000000000000',
      String(ben.userId),
      '@current',
      '%00',
    ]) {
      for (const method of ['GET', 'PATCH']) {
        const answer = await api.request(
          anna,
          method,
          `/api/users/${id}/`,
          method === 'PATCH' ? { first_name: 7 } : undefined,
        );
        expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound()]);
      }
    }
  });

  test('answers to keys that are bound to projects or organizations', async () => {
    const anna = await api.createTenant('Anna');
    for (const bounds of [
      { scopedTeams: [anna.projectId] },
      { scopedOrganizations: [anna.organizationId] },
    ]) {
      const { value } = await api.createKey(anna, { scopes: ['user:read'], ...bounds });
      expect((await api.request(value, 'GET', '/api/users/@me/')).statusCode).toBe(200);
      const refused = await api.request(value, 'PATCH', '/api/users/@me/', {});
      expect([refused.statusCode, refused.json()]).toEqual([403, refusals.scope('user:write')]);
    }
  });
});
