import { beforeAll, describe, expect, test } from '@jest/globals';
import { ADMIN, MEMBER } from '../../tenancy/levels.ts';
import { TENANCY_STEPS } from '../../tenancy/maintenance.ts';
import { apiForFile, type KeyInput, type Tenant } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
const NOBODYS = { organization: '01900000-0000-7000-8000-000000000000', project: 999_999_999 };

/** Anna is a member of three organizations. In the third one, keys of members are not admitted. */
let anna: Tenant;
let second: Tenant;
let closed: Tenant;
/** Another project of the second organization. */
let spare: number;

beforeAll(async () => {
  anna = await api.createTenant('First');
  second = await api.createTenant('Second');
  closed = await api.createTenant('Closed');
  const made = await api.request(second, 'POST', '/api/projects/', { name: 'Spare' });
  spare = made.json().id;
  await api.request(closed, 'PATCH', '/api/organizations/@current/', {
    members_can_use_personal_api_keys: false,
  });
  for (const one of [second, closed]) {
    await api.pool.query(
      `insert into organization_memberships (id, organization_id, user_id, level) values (gen_random_uuid(), $1, $2, 1)`,
      [one.organizationId, anna.userId],
    );
  }
});

interface Case {
  bounds: () => KeyInput;
  organizations: () => string[];
  projects: () => number[];
}
const CASES: [string, Case][] = [
  [
    'no bounds',
    {
      bounds: () => ({}),
      organizations: () => [anna.organizationId, second.organizationId],
      projects: () => [anna.projectId, second.projectId, spare],
    },
  ],
  [
    'one organization',
    {
      bounds: () => ({ scopedOrganizations: [second.organizationId] }),
      organizations: () => [second.organizationId],
      projects: () => [second.projectId, spare],
    },
  ],
  [
    'an organization that does not admit keys',
    {
      bounds: () => ({ scopedOrganizations: [closed.organizationId] }),
      organizations: () => [],
      projects: () => [],
    },
  ],
  [
    'one project',
    {
      bounds: () => ({ scopedTeams: [spare] }),
      organizations: () => [second.organizationId],
      projects: () => [spare],
    },
  ],
  [
    'a project and another organization',
    {
      bounds: () => ({ scopedTeams: [spare], scopedOrganizations: [anna.organizationId] }),
      organizations: () => [],
      projects: () => [],
    },
  ],
];

describe.each(CASES)('a key with %s', (_name, { bounds, organizations, projects }) => {
  let key: string;
  const get = (url: string) => api.request(key, 'GET', url);
  const allOrganizations = () => [anna, second, closed].map((one) => one.organizationId);
  const allProjects = () => [anna.projectId, second.projectId, spare, closed.projectId];
  const isBound = () => Object.keys(bounds()).length > 0;

  beforeAll(async () => {
    ({ value: key } = await api.createKey(anna, { scopes: ['*'], ...bounds() }));
  });

  test('shows in its user what it reaches, and nothing else', async () => {
    const answer = await get('/api/users/@me/');
    expect(answer.statusCode).toBe(200);
    const me = answer.json();
    expect(me.organizations.map((one: { id: string }) => one.id)).toEqual(organizations());
    if (me.organization) expect(organizations()).toContain(me.organization.id);
    expect(me.organization === null).toBe(organizations().length === 0);
    if (me.team) expect(projects()).toContain(me.team.id);
    expect(me.team === null).toBe(projects().length === 0);
    const shown = new Set<number>((me.organization?.teams ?? []).map((one: { id: number }) => one.id));
    for (const id of shown) expect(projects()).toContain(id);
    for (const one of [anna, second, closed]) {
      if (!organizations().includes(one.organizationId)) expect(answer.body).not.toContain(one.projectToken);
    }
  });

  test('lists the organizations that it reaches', async () => {
    const answer = await get('/api/organizations/');
    if ((bounds().scopedTeams ?? []).length > 0) expect(answer.statusCode).toBe(403);
    else {
      const list = answer.json();
      expect([list.count, list.results.map((one: { id: string }) => one.id)]).toEqual([
        organizations().length,
        organizations(),
      ]);
    }
  });

  test('reaches its projects, and is refused alike for others and for those that do not exist', async () => {
    for (const id of allProjects()) {
      const { statusCode } = await get(`/api/projects/${id}/`);
      const isOpen = projects().includes(id);
      // 403 too: the organization that does not admit keys.
      expect([id, statusCode]).toEqual([id, isOpen ? 200 : 403]);
    }
    if (!isBound()) return;
    for (const id of [
      NOBODYS.project,
      ...[anna.projectId, second.projectId].filter((one) => !projects().includes(one)),
    ]) {
      for (const path of ['', 'batch_exports/', 'events/', 'activity_log/']) {
        const answer = await get(`/api/projects/${id}/${path}`);
        expect([path, answer.statusCode, answer.json()]).toEqual([
          path,
          403,
          refusals.denied(`API key does not have access to the requested project: ID ${id}.`),
        ]);
      }
    }
  });

  test('reaches its projects below their own organization, and tells nothing about others', async () => {
    const homes = new Map([
      [anna.projectId, anna.organizationId],
      [second.projectId, second.organizationId],
      [spare, second.organizationId],
      [closed.projectId, closed.organizationId],
    ]);
    for (const organization of [...allOrganizations(), NOBODYS.organization]) {
      for (const project of [...homes.keys(), NOBODYS.project]) {
        const isHome = homes.get(project) === organization;
        const isOpen = isHome && projects().includes(project);
        const refused = isBound() || (isHome && organization === closed.organizationId) ? 403 : 404;
        const { statusCode } = await get(`/api/organizations/${organization}/projects/${project}/`);
        expect([organization, project, statusCode]).toEqual([organization, project, isOpen ? 200 : refused]);
      }
    }
  });

  test('is refused alike for other organizations and for those that do not exist', async () => {
    const bound = bounds().scopedOrganizations ?? [];
    if (bound.length === 0 || bounds().scopedTeams) return;
    for (const id of [NOBODYS.organization, ...allOrganizations().filter((one) => !bound.includes(one))]) {
      for (const path of ['', 'projects/', 'members/', 'batch_exports/']) {
        const answer = await get(`/api/organizations/${id}/${path}`);
        expect([path, answer.statusCode, answer.json()]).toEqual([
          path,
          403,
          refusals.denied(`API key does not have access to the requested organization: ID ${id}.`),
        ]);
      }
    }
  });

  test('chooses only what it reaches as current', async () => {
    const before = (await api.request(anna, 'GET', '/api/users/@me/')).json();
    const patch = (body: unknown) => api.request(key, 'PATCH', '/api/users/@me/', body);
    for (const id of allOrganizations().filter((one) => !organizations().includes(one))) {
      const refused = await patch({ set_current_organization: id });
      expect([refused.statusCode, refused.json()]).toEqual([
        400,
        refusals.field('set_current_organization', 'does_not_exist', 'Organization not found.'),
      ]);
    }
    for (const id of allProjects().filter((one) => !projects().includes(one))) {
      const refused = await patch({ set_current_team: id });
      expect([refused.statusCode, refused.json()]).toEqual([
        400,
        refusals.field('set_current_team', 'does_not_exist', 'Project not found.'),
      ]);
    }
    expect((await api.request(anna, 'GET', '/api/users/@me/')).json()).toEqual(before);
    for (const id of projects()) {
      const chosen = await patch({ set_current_team: id });
      expect([chosen.statusCode, chosen.json().team.id]).toEqual([200, id]);
      const current = await get('/api/projects/@current/');
      expect([current.statusCode, current.json().id]).toEqual([200, id]);
    }
    await api.request(anna, 'PATCH', '/api/users/@me/', { set_current_team: anna.projectId });
  });

  test('means by @current something that it reaches', async () => {
    const current = await get('/api/projects/@current/');
    if (projects().length === 0) expect([403, 404]).toContain(current.statusCode);
    else expect([current.statusCode, projects().includes(current.json().id)]).toEqual([200, true]);
  });
});

describe('the secret token of a project', () => {
  test('is stored sealed, and shown to admins whose key could replace it', async () => {
    const owner = await api.createTenant('Owner');
    const member = await api.createMember(owner, 'Member', MEMBER);
    const admin = await api.createMember(owner, 'Admin', ADMIN);
    const url = `/api/projects/${owner.projectId}/`;
    const one = (await api.request(owner, 'PATCH', `${url}rotate_secret_token/`)).json();
    const two = (await api.request(owner, 'PATCH', `${url}rotate_secret_token/`)).json();
    expect([one.secret_api_token, two.secret_api_token]).toEqual(
      Array(2).fill(expect.stringMatching(/^phs_/)),
    );
    expect(two.secret_api_token_backup).toBe(one.secret_api_token);

    const { rows } = await api.pool.query(
      'select secret_api_token as token, secret_api_token_backup as backup from projects where id = $1',
      [owner.projectId],
    );
    expect(rows).toEqual([
      { token: expect.stringMatching(/^slc1\.k1\./), backup: expect.stringMatching(/^slc1\.k1\./) },
    ]);

    const tokens = [two.secret_api_token, one.secret_api_token];
    const reader = await api.createKey(owner, { scopes: ['project:read'] });
    const writer = await api.createKey(owner, { scopes: ['project:write'] });
    const team = await api.createKey(owner, { scopes: ['team:write'] });
    for (const [who, expected] of [
      [owner, tokens],
      [admin, tokens],
      [writer.value, tokens],
      [team.value, tokens],
      [member, [null, null]],
      [reader.value, [null, null]],
    ] as const) {
      const shown = (await api.request(who, 'GET', url)).json();
      expect([shown.secret_api_token, shown.secret_api_token_backup]).toEqual(expected);
    }
    // The answer to a member's change does not tell either.
    const changed = await api.request(member, 'PATCH', url, { name: 'New' });
    expect([changed.statusCode, changed.body.includes('phs_')]).toEqual([200, false]);
  });

  test('as an older version stored it, it is read, and sealed by maintenance', async () => {
    const owner = await api.createTenant('Older');
    await api.pool.query('update projects set secret_api_token = $2 where id = $1', [
      owner.projectId,
      'phs_plain',
    ]);
    const url = `/api/projects/${owner.projectId}/`;
    expect((await api.request(owner, 'GET', url)).json().secret_api_token).toBe('phs_plain');
    const step = TENANCY_STEPS.find((one) => one.name === 'sealSecrets');
    const work = { signal: new AbortController().signal, beat: () => undefined };
    const upkeep = {
      pool: api.pool,
      keyring: api.keyring,
      products: [],
      activityLog: { entries: 1, bytes: 1, days: 1 },
      schedules: { stopProject: async () => 0 },
    };
    expect(await step?.run(upkeep, work)).toBe(1);
    expect(await step?.run(upkeep, work)).toBe(0);
    const { rows } = await api.pool.query('select secret_api_token as token from projects where id = $1', [
      owner.projectId,
    ]);
    expect(rows[0].token).toMatch(/^slc1\.k1\./);
    expect((await api.request(owner, 'GET', url)).json().secret_api_token).toBe('phs_plain');
  });

  test('is not made without keys, and hidden without its key', async () => {
    const owner = await api.createTenant('Keyless');
    const url = `/api/projects/${owner.projectId}/`;
    await api.request(owner, 'PATCH', `${url}rotate_secret_token/`);
    const app = await api.rebuild({ keyring: undefined });
    const headers = { authorization: `Bearer ${owner.key}` };
    const refused = await app.inject({ method: 'PATCH', url: `${url}rotate_secret_token/`, headers });
    expect([refused.statusCode, refused.json().detail]).toEqual([
      503,
      'There are no encryption keys (SLUICE_ENCRYPTION_KEYS), so the secret token cannot be stored.',
    ]);
    const shown = await app.inject({ method: 'GET', url, headers });
    expect([shown.statusCode, shown.json().secret_api_token]).toEqual([200, null]);
    await app.close();
  });
});

test('a session of the wizard is stored as a hash', async () => {
  const { hash } = (await api.request(null, 'POST', '/api/wizard/initialize/')).json();
  const { rows } = await api.pool.query('select hash from wizard_sessions');
  expect(rows.map((row) => row.hash)).toEqual([expect.stringMatching(/^sha256\$[0-9a-f]{64}$/)]);
  const ask = (shown: string) =>
    api.request(null, 'GET', '/api/wizard/data/', undefined, { 'x-posthog-wizard-hash': shown });
  expect((await ask(hash)).statusCode).toBe(400);
  expect((await ask(rows[0].hash)).statusCode).toBe(404);
});

describe('Strict-Transport-Security', () => {
  test.each([
    ['a public URL without TLS', { SLUICE_PUBLIC_URL: 'http://sluice.test' }, undefined, false],
    ['a public URL with TLS', { SLUICE_PUBLIC_URL: 'https://sluice.test' }, undefined, true],
    ['a header of a stranger', { SLUICE_PUBLIC_URL: 'http://sluice.test' }, 'https', false],
    [
      'a trusted proxy that was asked with TLS',
      { SLUICE_PUBLIC_URL: 'http://sluice.test', SLUICE_TRUST_PROXY: '127.0.0.1' },
      'https',
      true,
    ],
    [
      'a trusted proxy that was asked without TLS',
      { SLUICE_PUBLIC_URL: 'https://sluice.test', SLUICE_TRUST_PROXY: '127.0.0.1' },
      'http',
      false,
    ],
  ])('with %s', async (_name, settings, forwarded, expected) => {
    const app = await api.rebuild({ config: { ...api.config, ...settings } });
    const headers = forwarded ? { 'x-forwarded-proto': forwarded } : {};
    for (const url of ['/_livez', '/api/users/@me/', '/api/nowhere/']) {
      const answer = await app.inject({ method: 'GET', url, headers });
      const found = answer.headers['strict-transport-security'];
      expect([url, found]).toEqual([url, expected ? 'max-age=31536000; includeSubDomains' : undefined]);
    }
    await app.close();
  });
});

test('a cohort that is not there is refused with a sentence in filters of exports', async () => {
  const body = (key: string) => ({
    name: 'x',
    interval: 'hour',
    destination: { type: 'NoOp', config: {} },
    filters: [{ type: 'hogql', key }],
  });
  const url = `/api/projects/${anna.projectId}/batch_exports/`;
  for (const key of ['person_id in cohort 5', 'not (person_id not in cohort 5)']) {
    for (const path of [url, `${url}preview/`]) {
      const answer = await api.request(anna, 'POST', path, body(key));
      expect([answer.statusCode, answer.json()]).toMatchObject([400, { attr: 'filters' }]);
      expect(answer.json().detail).toBe('There is no cohort 5 in this project, or it was deleted.');
    }
  }
});
