import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { apiForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
const KEYS = '/api/personal_api_keys/';
const body = (more: object = {}) => ({ label: 'One', scopes: ['organization:read'], ...more });

describe('personal API keys', () => {
  test('show their value on creation only, and are hashed at rest', async () => {
    const anna = await api.createTenant('Anna');
    const created = await api.request(anna, 'POST', KEYS, body());
    expect([created.statusCode, created.headers['cache-control']]).toEqual([201, 'no-store']);
    const { value, ...key } = created.json();
    expect(value).toMatch(/^phx_[0-9A-Za-z]{40,44}$/);
    expect(key).toEqual({
      id: expect.stringMatching(/^[0-9A-Za-z]{18,22}$/),
      label: 'One',
      mask_value: `phx_...${value.slice(-4)}`,
      created_at: expect.stringMatching(/Z$/),
      last_used_at: null,
      last_rolled_at: null,
      expires_at: null,
      user_id: anna.userId,
      scopes: ['organization:read'],
      scoped_teams: [],
      scoped_organizations: [],
    });
    const { rows } = await api.pool.query('select * from personal_api_keys where id = $1', [key.id]);
    expect(rows[0].secure_value).toBe(`sha256$${createHash('sha256').update(value).digest('hex')}`);
    expect(JSON.stringify(rows[0])).not.toContain(value);
    const listed = await api.request(anna, 'GET', KEYS);
    expect(listed.json()).toEqual([
      { ...key, value: null },
      expect.objectContaining({ id: anna.keyId, value: null }),
    ]);
    const retrieved = await api.request(anna, 'GET', `${KEYS}${key.id}/`);
    expect(retrieved.json()).toEqual({ ...key, value: null });
    const patched = await api.request(anna, 'PATCH', `${KEYS}${key.id}/`, { label: 'Two' });
    expect(patched.json()).toEqual({ ...key, label: 'Two', value: null });
    expect((await api.request(value, 'GET', '/api/organizations/')).statusCode).toBe(200);
  });

  test('tell about themselves at @current, whatever they may do', async () => {
    const anna = await api.createTenant('Anna');
    const keys = [
      await api.createKey(anna, { scopes: ['query:read'] }),
      await api.createKey(anna, { scopes: ['*'], scopedTeams: [anna.projectId] }),
      await api.createKey(anna, { scopes: ['*'], scopedOrganizations: [anna.organizationId] }),
    ];
    for (const { id, value } of keys) {
      for (const name of ['@current', id]) {
        const answer = await api.request(value, 'GET', `${KEYS}${name}/`);
        expect([answer.statusCode, answer.json().id, answer.json().value]).toEqual([200, id, null]);
      }
      const other = await api.request(value, 'GET', `${KEYS}${anna.keyId}/`);
      expect(other.statusCode).toBe(403);
    }
  });

  test.each([
    ['a key without *', { scopes: ['organization:write', 'user:write'] }, refusals.scope('*')],
    [
      'a key bound to a project',
      { scopes: ['*'], bound: 'team' },
      refusals.denied('API keys with scoped projects are only supported on project-based endpoints.'),
    ],
    [
      'a key bound to an organization',
      { scopes: ['*'], bound: 'organization' },
      refusals.denied('API keys that are bound to projects or organizations cannot manage keys.'),
    ],
  ])(
    'cannot be managed by %s',
    async (_name, { scopes, bound }: { scopes: string[]; bound?: string }, refusal) => {
      const anna = await api.createTenant('Anna');
      const { value } = await api.createKey(anna, {
        scopes,
        ...(bound === 'team' ? { scopedTeams: [anna.projectId] } : {}),
        ...(bound === 'organization' ? { scopedOrganizations: [anna.organizationId] } : {}),
      });
      for (const [method, url] of [
        ['GET', KEYS],
        ['POST', KEYS],
        ['PATCH', `${KEYS}@current/`],
        ['PATCH', `${KEYS}unknown/`],
        ['POST', `${KEYS}@current/roll/`],
        ['DELETE', `${KEYS}@current/`],
      ] as const) {
        const answer = await api.request(value, method, url, method === 'GET' ? undefined : {});
        expect([method, url, answer.statusCode, answer.json()]).toEqual([method, url, 403, refusal]);
      }
    },
  );

  test('are rolled: the old value stops at once, the new one is shown once', async () => {
    const anna = await api.createTenant('Anna');
    const old = await api.createKey(anna, { scopes: ['user:read'] });
    const rolled = await api.request(anna, 'POST', `${KEYS}${old.id}/roll/`);
    expect([rolled.statusCode, rolled.headers['cache-control']]).toEqual([200, 'no-store']);
    const key = rolled.json();
    expect(key).toMatchObject({
      id: old.id,
      scopes: ['user:read'],
      last_rolled_at: expect.stringMatching(/Z$/),
    });
    expect(key.mask_value).toBe(`phx_...${key.value.slice(-4)}`);
    expect((await api.request(old.value, 'GET', '/api/users/@me/')).json()).toEqual(refusals.badKey());
    expect((await api.request(key.value, 'GET', '/api/users/@me/')).statusCode).toBe(200);
    const own = await api.request(anna, 'POST', `${KEYS}@current/roll/`);
    expect((await api.request(anna, 'GET', KEYS)).statusCode).toBe(401);
    expect((await api.request(own.json().value, 'GET', KEYS)).statusCode).toBe(200);
  });

  test('are revoked', async () => {
    const anna = await api.createTenant('Anna');
    const key = await api.createKey(anna);
    expect((await api.request(anna, 'DELETE', `${KEYS}${key.id}/`)).statusCode).toBe(204);
    const used = await api.request(key.value, 'GET', '/api/users/@me/');
    expect([used.statusCode, used.json()]).toEqual([401, refusals.badKey()]);
    const again = await api.request(anna, 'DELETE', `${KEYS}${key.id}/`);
    expect([again.statusCode, again.json()]).toEqual([404, refusals.notFound()]);
  });

  test('expire', async () => {
    const anna = await api.createTenant('Anna');
    const made = await api.request(
      anna,
      'POST',
      KEYS,
      body({ scopes: ['*'], expires_at: '2999-01-01T00:00:00+02:00' }),
    );
    const { id, value, expires_at } = made.json();
    expect(expires_at).toBe('2998-12-31T22:00:00Z');
    expect((await api.request(value, 'GET', KEYS)).statusCode).toBe(200);
    await api.request(anna, 'PATCH', `${KEYS}${id}/`, { expires_at: '2020-01-01T00:00:00Z' });
    expect((await api.request(value, 'GET', KEYS)).json()).toEqual(refusals.badKey());
    await api.request(anna, 'PATCH', `${KEYS}${id}/`, { expires_at: null });
    expect((await api.request(value, 'GET', KEYS)).statusCode).toBe(200);
  });

  test('stop with their user, and go on with them', async () => {
    const anna = await api.createTenant('Anna');
    await api.pool.query('update users set is_active = false where id = $1', [anna.userId]);
    const answer = await api.request(anna, 'GET', '/api/users/@me/');
    expect([answer.statusCode, answer.json()]).toEqual([401, refusals.badKey()]);
    await api.pool.query('update users set is_active = true where id = $1', [anna.userId]);
    expect((await api.request(anna, 'GET', '/api/users/@me/')).statusCode).toBe(200);
  });

  test('are ten at most, however many are asked for at once', async () => {
    const anna = await api.createTenant('Anna');
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => api.request(anna, 'POST', KEYS, body())),
    );
    expect(answers.map((one) => one.statusCode).sort()).toEqual([
      ...Array(9).fill(201),
      ...Array(3).fill(400),
    ]);
    expect(answers.find((one) => one.statusCode === 400)?.json()).toEqual(
      refusals.field(
        null,
        'invalid_input',
        'You can only have 10 personal API keys. Remove an existing key before creating a new one.',
      ),
    );
    const [newest] = (await api.request(anna, 'GET', KEYS)).json();
    await api.request(anna, 'DELETE', `${KEYS}${newest.id}/`);
    expect((await api.request(anna, 'POST', KEYS, body())).statusCode).toBe(201);
  });

  test.each([
    [{ scopes: ['*'] }, 'label', 'required', 'This field is required.'],
    [{ label: 'x' }, 'scopes', 'required', 'This field is required.'],
    [{ label: 'x', scopes: [] }, 'scopes', 'empty', 'This list may not be empty.'],
    [{ label: 'x', scopes: ['nothing:read'] }, 'scopes', 'invalid_input', 'Invalid scope: nothing:read'],
    [
      { label: 'x', scopes: ['user:read', 'user:admin'] },
      'scopes',
      'invalid_input',
      'Invalid scope: user:admin',
    ],
    [
      { label: 'x', scopes: 'user:read' },
      'scopes',
      'not_a_list',
      'Expected a list of items but got type "str".',
    ],
    [
      body({ label: 'x'.repeat(41) }),
      'label',
      'max_length',
      'Ensure this field has no more than 40 characters.',
    ],
    [
      body({ scoped_teams: [999_999_999] }),
      'scoped_teams',
      'invalid_input',
      'You must be a member of all teams that you are scoping the key to.',
    ],
    [
      body({ scoped_organizations: ['01900000-0000-7000-8000-000000000000'] }),
      'scoped_organizations',
      'invalid_input',
      'You must be a member of all organizations that you are scoping the key to.',
    ],
    [body({ scoped_teams: ['x'] }), 'scoped_teams__0', 'invalid_input', 'A valid number is required.'],
    [
      body({ scoped_organizations: ['x'] }),
      'scoped_organizations__0',
      'invalid_input',
      'Must be a valid UUID.',
    ],
  ])('refuse %j', async (payload, attr, code, detail) => {
    const anna = await api.createTenant('Anna');
    const answer = await api.request(anna, 'POST', KEYS, payload);
    expect([answer.statusCode, answer.json()]).toEqual([400, refusals.field(attr, code, detail)]);
  });

  test.each(['2020-01-01T00:00:00+23:00', '0000-01-01T00:00:00Z', '2020-02-30T00:00:00Z', 'tomorrow', '', 5])(
    'a strange expiry is no fault of the server: %j',
    async (expires_at) => {
      const anna = await api.createTenant('Anna');
      const answer = await api.request(anna, 'POST', KEYS, body({ expires_at }));
      expect([201, 400]).toContain(answer.statusCode);
    },
  );

  test.each(['%00', '%E0%A4%A', 'x%2Fy', "'%20or%201=1--", 'x'.repeat(3000), '..', '@me'])(
    'an id that cannot be one is not found: %s',
    async (id) => {
      const anna = await api.createTenant('Anna');
      for (const [method, rest] of [
        ['GET', ''],
        ['PATCH', ''],
        ['DELETE', ''],
        ['POST', 'roll/'],
      ] as const) {
        const answer = await api.request(
          anna,
          method,
          `${KEYS}${id}/${rest}`,
          method === 'GET' ? undefined : {},
        );
        expect([method, answer.statusCode, answer.json().code]).toEqual([method, 404, 'not_found']);
      }
    },
  );

  test('write down their use, once an hour', async () => {
    const anna = await api.createTenant('Anna');
    const lastUse = async () =>
      (await api.pool.query('select last_used_at from personal_api_keys where id = $1', [anna.keyId])).rows[0]
        .last_used_at;
    await api.request(anna, 'GET', KEYS);
    const first = await eventually(async () => (await lastUse()) ?? undefined);
    await api.request(anna, 'GET', KEYS);
    expect(await lastUse()).toBe(first);
    await api.pool.query(
      `update personal_api_keys set last_used_at = now() - interval '61 minutes' where id = $1`,
      [anna.keyId],
    );
    await api.request(anna, 'GET', KEYS);
    await eventually(async () => (await lastUse()) > first);
  });

  test('never exceed the memberships of their user', async () => {
    const owner = await api.createTenant('Owner');
    const member = await api.createMember(owner, 'Member', 1);
    const bound = await api.createKey(member, { scopedTeams: [owner.projectId] });
    const url = `/api/projects/${owner.projectId}/`;
    expect((await api.request(bound.value, 'GET', url)).statusCode).toBe(200);
    await api.pool.query('delete from organization_memberships where user_id = $1 and organization_id = $2', [
      member.userId,
      owner.organizationId,
    ]);
    const answer = await api.request(bound.value, 'GET', url);
    expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound('Project not found.')]);
  });
});
