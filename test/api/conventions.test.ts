import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { insertExportOf } from '../support/batch-export-rows.ts';
import { refusals } from '../support/refusals.ts';
import { LONG } from '../support/rounds.ts';
import { fill, idsOf, managed, type Operation, operations } from '../support/routes.ts';

// Thousands of requests are refused here.
const api = apiForFile({ SLUICE_REFUSALS_PER_MINUTE: '0' });
let anna: Tenant;
let all: Operation[];
let keyed: Operation[];

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  await insertExportOf(api.pool, anna);
  all = operations(api.app);
  keyed = managed(api.app);
});

const name = ({ method, path }: Operation) => `${method} ${path}`;
/** Sends one request for each operation and tells what came back, by operation. */
async function each<T>(
  list: Operation[],
  ask: (one: Operation, url: string) => Promise<T>,
): Promise<Record<string, T>> {
  const answers: Record<string, T> = {};
  for (const one of list) answers[name(one)] = await ask(one, fill(one.path, idsOf(anna)));
  return answers;
}
const everywhere = <T>(list: Operation[], value: (one: Operation) => T) =>
  Object.fromEntries(list.map((one) => [name(one), value(one)]));
const brief = (answer: { statusCode: number; json(): unknown; headers: Record<string, unknown> }) => ({
  status: answer.statusCode,
  body: answer.json(),
  asksFor: answer.headers['www-authenticate'],
});
const BEARER = { asksFor: 'Bearer', status: 401 };
const JSON_TYPE = { 'content-type': 'application/json' };

describe('every route that needs a key', () => {
  test('is known to this test', () => {
    expect(keyed.length).toBeGreaterThanOrEqual(28);
    expect(all.length - keyed.length).toBeGreaterThanOrEqual(5);
  });

  test('refuses a request without one, whatever its body is like', async () => {
    for (const [payload, headers] of [
      [undefined, {}],
      ['{"broken', JSON_TYPE],
      ['{"a":"\\u0000"}', JSON_TYPE],
      ['x', { 'content-type': 'text/csv' }],
      ['x'.repeat(2 ** 20 + 1), JSON_TYPE],
      [undefined, { authorization: 'Basic YTpi' }],
      [undefined, { authorization: 'Bearer' }],
      [undefined, { authorization: 'bearer phx_x' }],
    ] as [string | undefined, Record<string, string>][]) {
      const list = keyed.filter((one) => payload === undefined || one.method !== 'GET');
      const answers = await each(list, async ({ method }, url) =>
        brief(await api.request(null, method, url, payload, headers)),
      );
      expect(answers).toEqual(everywhere(list, () => ({ ...BEARER, body: refusals.notAuthenticated })));
    }
  });

  test('refuses keys that are unknown, revoked, expired or of a deactivated user alike', async () => {
    const [revoked, expired] = [await api.createKey(anna), await api.createKey(anna)];
    await api.pool.query('delete from personal_api_keys where id = $1', [revoked.id]);
    await api.pool.query(`update personal_api_keys set expires_at = now() where id = $1`, [expired.id]);
    const inactive = await api.createTenant('Inactive');
    await api.pool.query('update users set is_active = false where id = $1', [inactive.userId]);
    for (const key of [
      'phx_unknown',
      anna.projectToken,
      `${anna.key}x`,
      revoked.value,
      expired.value,
      inactive.key,
    ]) {
      const answers = await each(keyed, async ({ method }, url) =>
        brief(await api.request(key, method, url)),
      );
      expect(answers).toEqual(everywhere(keyed, () => ({ ...BEARER, body: refusals.badKey() })));
    }
  });

  test('tells a key without the scope so before it looks anything up', async () => {
    const { value } = await api.createKey(anna, { scopes: ['experiment:read'] });
    const closed = keyed.filter((one) => one.scope !== 'any');
    const unknown = {
      ...idsOf(anna),
      organization_id: 'x',
      project_id: 'x',
      user_uuid: 'x',
      user_id: 'x',
      key_id: 'x',
    };
    const answers: Record<string, unknown> = {};
    for (const one of closed) {
      const answer = await api.request(value, one.method, fill(one.path, unknown), undefined);
      answers[name(one)] = [answer.statusCode, answer.json()];
    }
    expect(answers).toEqual(everywhere(closed, (one) => [403, refusals.scope(one.scope as string)]));
  });

  test('lets the write scope read, and the read scope not write', async () => {
    const asked = keyed.flatMap((one) => one.scopes.map((scope) => ({ one, scope })));
    for (const { one, scope } of asked.filter(({ scope }) => scope.includes(':'))) {
      const [object, action] = scope.split(':') as [string, string];
      const other = action === 'read' ? 'write' : 'read';
      const scopes = [...one.scopes.filter((another) => another !== scope), `${object}:${other}`];
      const { id, value } = await api.createKey(anna, { scopes });
      const answer = await api.request(
        value,
        one.method,
        fill(one.path, { ...idsOf(anna), organization_id: 'x', project_id: 'x' }),
      );
      if (other === 'write') expect(answer.json()).not.toMatchObject({ code: 'permission_denied' });
      else expect([name(one), answer.json()]).toEqual([name(one), refusals.scope(scope)]);
      await api.pool.query('delete from personal_api_keys where id = $1', [id]);
    }
  });

  test('finds no organization and no project by a strange id', async () => {
    const strange = [
      '0',
      '-1',
      '1.5',
      '99999999999999999999',
      '2147483648',
      'x',
      '%00',
      '%22',
      "1'--",
      '@me',
      '..%2f',
      'é',
    ];
    const placed = keyed.filter((one) => /\{(organization|project)_id\}/.test(one.path));
    for (const [at, id] of strange.entries()) {
      const ids = { ...idsOf(anna), organization_id: id, project_id: id };
      // Each route gets some of the ids, and each id is given to many routes of each kind.
      const some = LONG ? placed : placed.filter((_one, index) => (index + at) % 4 === 0);
      for (const one of some) {
        const answer = await api.request(anna, one.method, fill(one.path, ids), one.hasBody ? {} : undefined);
        const isObject = /\{organization_id\}\/($|authenticate_wizard|environments_rollback)/.test(one.path);
        const detail = one.path.includes('{project_id}')
          ? 'Project not found.'
          : isObject
            ? 'Not found.'
            : 'Organization not found.';
        expect([name(one), id, answer.statusCode, answer.json()]).toEqual([
          name(one),
          id,
          404,
          refusals.notFound(detail),
        ]);
      }
    }
  });
});

describe('every route', () => {
  test('answers 405 with Allow to every other method', async () => {
    const paths = Map.groupBy(all, (one) => one.path);
    const silent: string[] = [];
    for (const [path, list] of paths) {
      const own = list.map((one) => one.method);
      const allow = [...own, ...(own.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort().join(', ');
      const url = fill(path, idsOf(anna));
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'].filter(
        (one) => !own.includes(one),
      )) {
        const answer = await api.request(anna, method, url, undefined);
        if (answer.body === '' && method === 'DELETE') {
          expect([path, answer.statusCode, answer.headers.allow]).toEqual([path, 405, allow]);
          silent.push(path);
          continue;
        }
        expect([path, method, answer.statusCode, answer.headers.allow, answer.json()]).toEqual([
          path,
          method,
          405,
          allow,
          {
            type: 'invalid_request',
            code: 'method_not_allowed',
            detail: `Method "${method}" not allowed.`,
            attr: null,
          },
        ]);
      }
    }
    // What clients know to be never deleted.
    expect(silent).toEqual([
      '/api/projects/{project_id}/actions/{id}/',
      '/api/projects/{project_id}/hog_functions/{id}/',
      '/api/projects/{project_id}/feature_flags/{id}/',
      '/api/projects/{project_id}/annotations/{id}/',
      '/api/projects/{project_id}/cohorts/{id}/',
    ]);
  });

  test('does with and without the slash at the end, and with HEAD', async () => {
    // The path `/` is nothing but a slash.
    for (const one of all.filter(
      ({ method, path, isStream }) => method === 'GET' && path !== '/' && !isStream,
    )) {
      const url = fill(one.path, idsOf(anna));
      const [slash, bare, head] = [
        await api.request(anna, 'GET', `${url.replace(/\/$/, '')}/`),
        await api.request(anna, 'GET', url.replace(/\/$/, '')),
        await api.request(anna, 'HEAD', url),
      ];
      expect([name(one), bare.statusCode]).toEqual([name(one), slash.statusCode]);
      expect(bare.body.replace('wizard/data?', 'wizard/data/?')).toBe(slash.body);
      expect([head.statusCode, head.body]).toEqual([slash.statusCode, '']);
    }
  });

  test('answers preflights from anywhere; only those of the public lane allow credentials', async () => {
    for (const one of all) {
      const isPublic =
        !/^\/(?:$|api\/|_|flags\/definitions)/.test(one.path) ||
        ['/api/surveys', '/api/early_access_features'].includes(one.path);
      const answer = await api.request(null, 'OPTIONS', fill(one.path, idsOf(anna)), undefined, {
        origin: 'https://app.example.com',
        'access-control-request-method': one.method,
        'access-control-request-headers': 'authorization, content-type, traceparent',
      });
      expect([answer.statusCode, answer.body]).toEqual([isPublic ? 200 : 204, '']);
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': 'https://app.example.com',
        'access-control-allow-headers': 'authorization, content-type, traceparent',
        'access-control-max-age': '86400',
      });
      expect(answer.headers['access-control-allow-methods']).toContain(one.method);
      expect(answer.headers['access-control-allow-credentials']).toBe(isPublic ? 'true' : undefined);
    }
    const bare = await api.request(null, 'OPTIONS', '/api/organizations/');
    expect([bare.statusCode, bare.body]).toEqual([204, '']);
  });

  test('answers other origins, and tells the headers that they may read', async () => {
    const answer = await api.request(anna, 'GET', '/api/organizations/', undefined, {
      origin: 'https://x.test',
    });
    expect(answer.headers['access-control-allow-origin']).toBe('https://x.test');
    expect(answer.headers['access-control-expose-headers']).toBe(
      'x-request-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset',
    );
    expect(answer.headers.vary).toMatch(/origin/i);
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
  });

  test.each(['/api/', '/api/nothing/', '/nothing', '/api/organizations/x/y/z/', '/api/%zz'])(
    'there is none at %s',
    async (url) => {
      const answer = await api.request(anna, 'GET', url);
      expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound('Endpoint not found.')]);
      expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    },
  );

  test('carries a request id: the given one if it is harmless, else a new one', async () => {
    const given = async (id: string) =>
      (await api.request(anna, 'GET', '/api/organizations/', undefined, { 'x-request-id': id })).headers[
        'x-request-id'
      ];
    expect(await given('trace.me_1-2')).toBe('trace.me_1-2');
    for (const bad of ['a b', 'x'.repeat(129), '<script>', 'a;b', '']) {
      expect(await given(bad)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
    }
    const refused = await api.request(null, 'GET', '/api/organizations/', undefined, {
      'x-request-id': 'kept',
    });
    expect(refused.headers['x-request-id']).toBe('kept');
  });

  test('is reached by the older name of projects too', async () => {
    for (const rest of [
      '',
      `${anna.projectId}/`,
      '@current',
      `${anna.projectId}/activity_log/?limit=1`,
      '?limit=1',
    ]) {
      const [one, other] = [
        await api.request(anna, 'GET', `/api/projects/${rest}`),
        await api.request(anna, 'GET', `/api/environments/${rest}`),
      ];
      expect([other.statusCode, other.body.replaceAll('/api/environments', '/api/projects')]).toEqual([
        200,
        one.body,
      ]);
    }
    expect((await api.request(anna, 'GET', '/api/environmentsx/')).statusCode).toBe(404);
    expect((await api.request(anna, 'PUT', '/api/environments/1/')).statusCode).toBe(405);
  });
});

describe('a key', () => {
  test('is found in the header, then in the body, then in the query; only the first counts', async () => {
    const ask = (key: string | null, query: string, body?: object) =>
      api.request(key, 'PATCH', `/api/users/@me/${query}`, body);
    const good = anna.key;
    expect((await ask(null, '', { personal_api_key: good })).statusCode).toBe(200);
    expect((await ask(null, `?personal_api_key=${good}`, {})).statusCode).toBe(200);
    expect((await ask(null, `?personal_api_key=${good}`)).statusCode).toBe(200);
    expect((await ask('phx_bad', `?personal_api_key=${good}`, { personal_api_key: good })).json()).toEqual(
      refusals.badKey(),
    );
    expect((await ask(null, `?personal_api_key=${good}`, { personal_api_key: 'phx_bad' })).json()).toEqual(
      refusals.badKey('request body'),
    );
    expect((await ask(null, '?personal_api_key=phx_bad', {})).json()).toEqual(
      refusals.badKey('request query string'),
    );
    expect((await ask(null, '?personal_api_key=%00')).json()).toEqual(
      refusals.badKey('request query string'),
    );
    expect((await ask(null, `?personal_api_key=${good}&personal_api_key=${good}`)).json()).toEqual(
      refusals.notAuthenticated,
    );
    const form = await api.request(
      null,
      'PATCH',
      '/api/users/@me/',
      `personal_api_key=${good}&first_name=Form`,
      {
        'content-type': 'application/x-www-form-urlencoded',
      },
    );
    expect([form.statusCode, form.json().first_name]).toEqual([200, 'Form']);
  });
});

describe('lists', () => {
  const ids = (body: { results: { id: number }[] }) => body.results.map((one) => one.id);
  let ben: Tenant;
  let projects: number[];
  beforeAll(async () => {
    ben = await api.createTenant('Ben');
    projects = [ben.projectId];
    for (const label of ['b', 'c', 'd', 'e']) {
      projects.push((await api.request(ben, 'POST', '/api/projects/', { name: label })).json().id);
    }
  });
  const list = async (query: string, base = '/api/projects/') =>
    (await api.request(ben, 'GET', `${base}${query}`)).json();
  const LINK = 'https://sluice.test/api/projects/';

  test.each([
    ['', 0, 5, null, null],
    ['?limit=2', 0, 2, `${LINK}?limit=2&offset=2`, null],
    ['?limit=2&offset=1', 1, 2, `${LINK}?limit=2&offset=3`, `${LINK}?limit=2`],
    ['?limit=2&offset=2', 2, 2, `${LINK}?limit=2&offset=4`, `${LINK}?limit=2`],
    ['?limit=2&offset=3', 3, 2, null, `${LINK}?limit=2&offset=1`],
    ['?offset=9', 9, 0, null, `${LINK}?limit=100`],
    ['?offset=99999999999999999999', 0, 5, null, null],
    ['?limit=0', 0, 5, null, null],
    ['?limit=-1', 0, 5, null, null],
    ['?limit=x', 0, 5, null, null],
    ['?limit=1.5', 0, 5, null, null],
    ['?limit=1&limit=2', 0, 5, null, null],
    ['?limit=%00', 0, 5, null, null],
    ['?offset=-5&limit=3', 0, 3, `${LINK}?limit=3&offset=3`, null],
    ['?offset=x', 0, 5, null, null],
    ['?limit=999999999', 0, 5, null, null],
    [
      '?token=%C3%A9+%26&limit=4&client_query_id=a?b&client_query_id=2',
      0,
      4,
      `${LINK}?client_query_id=a%3Fb&client_query_id=2&limit=4&offset=4&token=%C3%A9+%26`,
      null,
    ],
  ])('%s', async (query, from, length, next, previous) => {
    const body = await list(query);
    expect(body).toMatchObject({ count: 5, next, previous });
    expect(ids(body)).toEqual(projects.slice(from, from + length));
  });

  test('pages are at most 1000 long', async () => {
    const { next, previous } = await list('?limit=5000&offset=5');
    expect([next, previous]).toEqual([null, `${LINK}?limit=1000`]);
  });

  test('links never carry the key, keep the older name, and ignore what the client says about the host', async () => {
    const query = `?limit=1&personal_api_key=${ben.key}`;
    const answer = await api.request(null, 'GET', `/api/environments/${query}`, undefined, {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'gopher',
    });
    expect(answer.json().next).toBe('https://sluice.test/api/environments/?limit=1&offset=1');
    const absolute = await api.request(ben, 'GET', 'http://evil.example/api/projects/?limit=1');
    expect([absolute.statusCode, absolute.json().next]).toEqual([200, `${LINK}?limit=1&offset=1`]);
  });

  test('following the links shows every element once', async () => {
    const seen: number[] = [];
    let url: string | null = '/api/projects/?limit=2';
    while (url) {
      const page: { next: string | null; results: { id: number }[] } = (
        await api.request(ben, 'GET', url.replace('https://sluice.test', ''))
      ).json();
      seen.push(...ids(page));
      url = page.next;
    }
    expect(seen).toEqual(projects);
  });

  test('every list of the API has the four fields', async () => {
    for (const url of [
      '/api/organizations/',
      '/api/organizations/@current/projects/',
      '/api/organizations/@current/members/',
      '/api/organizations/@current/activity_log/',
      '/api/projects/@current/activity_log/',
    ]) {
      const answer = await api.request(ben, 'GET', `${url}?limit=1`);
      expect([url, Object.keys(answer.json()).sort()]).toEqual([
        url,
        ['count', 'next', 'previous', 'results'],
      ]);
      expect(answer.json().results).toHaveLength(1);
    }
  });
});
