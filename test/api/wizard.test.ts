import { describe, expect, test } from '@jest/globals';
import { hashToken } from '../../tenancy/tokens.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
const authenticateUrl = (tenant: Tenant) =>
  `/api/organizations/${tenant.organizationId}/authenticate_wizard/`;
const ask = (hash: string) =>
  api.request(null, 'GET', '/api/wizard/data', undefined, { 'x-posthog-wizard-hash': hash });

async function initialize(): Promise<string> {
  const answer = await api.request(null, 'POST', '/api/wizard/initialize');
  expect(answer.statusCode).toBe(200);
  return answer.json().hash;
}

describe('the device flow', () => {
  test('from the hash to the project key', async () => {
    const anna = await api.createTenant('Anna');
    const hash = await initialize();
    expect(hash).toMatch(/^[a-z0-9]{64}$/);
    const early = await ask(hash);
    expect([early.statusCode, early.json()]).toEqual([
      400,
      { error: 'Setup wizard not authenticated. Please login first' },
    ]);
    const { value: key } = await api.createKey(anna, { scopes: ['team:read'] });
    const authenticated = await api.request(key, 'POST', authenticateUrl(anna), {
      hash,
      projectId: anna.projectId,
    });
    const organization = (await api.request(anna, 'GET', '/api/organizations/@current/')).json();
    expect([authenticated.statusCode, authenticated.json()]).toEqual([
      200,
      { ...organization, success: true },
    ]);
    const me = (await api.request(anna, 'GET', '/api/users/@me/')).json();
    const data = await ask(hash);
    expect([data.statusCode, data.json()]).toEqual([
      200,
      { project_api_key: anna.projectToken, host: 'https://sluice.test', user_distinct_id: me.distinct_id },
    ]);
  });

  test('without a projectId, the current project of the organization is meant', async () => {
    const anna = await api.createTenant('Anna');
    const shop = (await api.request(anna, 'POST', '/api/projects/', { name: 'Shop' })).json();
    const hash = await initialize();
    expect((await api.request(anna, 'POST', authenticateUrl(anna), { hash })).statusCode).toBe(200);
    expect((await ask(hash)).json().project_api_key).toBe(shop.api_token);
    const elsewhere = (await api.request(anna, 'POST', '/api/organizations/', { name: 'Elsewhere' })).json();
    const second = await initialize();
    await api.request(anna, 'POST', authenticateUrl(anna), { hash: second });
    expect((await ask(second)).json().project_api_key).toBe(anna.projectToken);
    expect(elsewhere.projects).toHaveLength(1);
  });

  test('a session ends after ten minutes', async () => {
    const anna = await api.createTenant('Anna');
    const hash = await initialize();
    const { rows } = await api.pool.query(
      'select extract(epoch from expires_at - created_at)::int as seconds from wizard_sessions where hash = $1',
      [hashToken(hash)],
    );
    expect(rows).toEqual([{ seconds: 600 }]);
    await api.pool.query('update wizard_sessions set expires_at = now() where hash = $1', [hashToken(hash)]);
    expect((await ask(hash)).statusCode).toBe(404);
    const late = await api.request(anna, 'POST', authenticateUrl(anna), { hash });
    expect(late.json()).toEqual(
      refusals.field('hash', 'invalid_hash', 'This hash is invalid or has expired.'),
    );
  });

  test('what somebody authenticated, nobody else takes over', async () => {
    const [anna, ben] = [await api.createTenant('Anna'), await api.createTenant('Ben')];
    const hash = await initialize();
    await api.request(anna, 'POST', authenticateUrl(anna), { hash });
    const taken = await api.request(ben, 'POST', authenticateUrl(ben), { hash });
    expect([taken.statusCode, taken.json()]).toEqual([
      400,
      refusals.field('hash', 'invalid_hash', 'This hash is invalid or has expired.'),
    ]);
    expect((await ask(hash)).json().project_api_key).toBe(anna.projectToken);
    expect((await api.request(anna, 'POST', authenticateUrl(anna), { hash })).statusCode).toBe(200);
  });

  test.each([
    [{}, 'hash', 'required', 'This field is required.'],
    [{ hash: '' }, 'hash', 'blank', 'This field may not be blank.'],
    [{ hash: 'x'.repeat(64) }, 'hash', 'invalid_hash', 'This hash is invalid or has expired.'],
    [{ hash: 'x', projectId: 999_999_999 }, 'projectId', 'not_found', 'This project does not exist.'],
    [{ hash: 'x', projectId: 2 ** 40 }, 'projectId', 'not_found', 'This project does not exist.'],
    [{ hash: 'x', projectId: 'x' }, 'projectId', 'invalid_input', 'A valid number is required.'],
  ])('refuses %j', async (body, attr, code, detail) => {
    const anna = await api.createTenant('Anna');
    const answer = await api.request(anna, 'POST', authenticateUrl(anna), body);
    expect([answer.statusCode, answer.json()]).toEqual([400, refusals.field(attr, code, detail)]);
  });

  test('data without a hash is 401, with an unknown one 404', async () => {
    const bare = await api.request(null, 'GET', '/api/wizard/data/');
    expect([bare.statusCode, bare.json(), bare.headers['www-authenticate']]).toEqual([
      401,
      refusals.notAuthenticated,
      'Bearer',
    ]);
    const unknown = await ask('nothing');
    expect([unknown.statusCode, unknown.json()]).toEqual([404, { error: 'Invalid hash.' }]);
  });

  test('a project that is deleted meanwhile is not handed out', async () => {
    const anna = await api.createTenant('Anna');
    const hash = await initialize();
    await api.request(anna, 'POST', authenticateUrl(anna), { hash, projectId: anna.projectId });
    await api.request(anna, 'DELETE', `/api/projects/${anna.projectId}/`);
    expect((await ask(hash)).statusCode).toBe(404);
  });
});

describe('the calls of the current wizard', () => {
  test('users/@me and the project have what it reads', async () => {
    const anna = await api.createTenant('Anna');
    const me = (await api.request(anna, 'GET', '/api/users/@me/')).json();
    expect(me).toMatchObject({
      distinct_id: expect.any(String),
      team: { id: anna.projectId, organization: anna.organizationId },
      organization: { id: anna.organizationId },
      organizations: [{ id: anna.organizationId }],
    });
    const project = (await api.request(anna, 'GET', `/api/projects/${me.team.id}/`)).json();
    expect(project).toMatchObject({
      id: anna.projectId,
      uuid: expect.any(String),
      organization: anna.organizationId,
      api_token: anna.projectToken,
      name: 'Default project',
    });
  });
});
