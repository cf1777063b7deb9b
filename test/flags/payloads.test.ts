// Payloads for remote configuration, encrypted ones, and the keys that open them.
import { beforeAll, describe, expect, test } from '@jest/globals';
import { TENANCY_STEPS } from '../../tenancy/maintenance.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
let bert: Tenant;
let secret: string;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  bert = await api.createTenant('Bert');
  secret = (await rotate()).secret_api_token;
});

const project = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/${rest}`;
const rotate = async (tenant = anna) =>
  (await api.request(tenant, 'PATCH', project(tenant, 'rotate_secret_token/'))).json();
const flags = (rest = '') => project(anna, `feature_flags/${rest}`);
const create = async (body: object) => {
  const answer = await api.request(anna, 'POST', flags(), body);
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json();
};
const patch = (id: number, body: object) => api.request(anna, 'PATCH', flags(`${id}/`), body);
const config = (key: Tenant | string, name: string | number, where = String(anna.projectId), query = '') =>
  api.request(key, 'GET', `/api/projects/${where}/feature_flags/${name}/remote_config${query}`);
const told = async (name: string | number) => JSON.parse((await config(anna, name)).json());
const MARK = '"********* (encrypted)"';
const remote = (key: string, payload: unknown, more: object = {}) => ({
  key,
  is_remote_configuration: true,
  filters: { groups: [], payloads: payload === undefined ? {} : { true: payload } },
  ...more,
});

describe('the payload of a flag for remote configuration', () => {
  test('is a JSON text that contains JSON, by key and by id', async () => {
    const { id } = await create(remote('plain', { colour: 'blue', n: 1 }));
    for (const name of ['plain', id]) {
      const answer = await config(anna, name);
      expect([answer.statusCode, answer.headers['content-type']]).toEqual([
        200,
        'application/json; charset=utf-8',
      ]);
      expect(answer.body).toBe(JSON.stringify('{"colour":"blue","n":1}'));
    }
    await create(remote('empty', undefined));
    expect((await config(anna, 'empty')).body).toBe('');
  });

  test('is not there for other flags, other projects and other keys', async () => {
    const { id } = await create({ key: 'usual', filters: { groups: [{ properties: [] }] } });
    expect((await config(anna, 'usual')).statusCode).toBe(404);
    expect((await config(anna, id)).statusCode).toBe(404);
    expect((await config(anna, 'nobody')).statusCode).toBe(404);
    await create(remote('walled', 1));
    expect((await config(bert, 'walled')).statusCode).toBe(404);
    expect((await config(bert, 'walled', '@current')).statusCode).toBe(404);
    const foreign = await config(bert, 'walled', '@current', `?token=${anna.projectToken}`);
    expect([foreign.statusCode, foreign.json().code]).toEqual([403, 'permission_denied']);
    const unknown = await config(anna, 'walled', '@current', '?token=phc_nobody');
    expect([unknown.statusCode, unknown.json().code]).toEqual([401, 'authentication_failed']);
    expect((await config(anna, 'walled', '@current', `?token=${anna.projectToken}`)).body).toBe('"1"');
    const narrow = await api.createTenant('Narrow', { scopes: ['person:read'] });
    const refused = await api.request(narrow, 'GET', project(narrow, 'feature_flags/x/remote_config/'));
    expect(refused.statusCode).toBe(403);
    const nobody = await api.request(null, 'GET', flags('walled/remote_config/'));
    expect(nobody.statusCode).toBe(401);
  });
});

describe('the secret token of a project', () => {
  test('opens payloads and definitions of its project, and nothing else', async () => {
    await create(remote('for-servers', 'text'.length));
    for (const where of [String(anna.projectId), '@current']) {
      expect((await config(secret, 'for-servers', where)).body).toBe('"4"');
    }
    expect((await config(secret, 'for-servers', '@current', `?token=${anna.projectToken}`)).statusCode).toBe(
      200,
    );
    for (const url of [
      '/flags/definitions',
      `/flags/definitions?token=${anna.projectToken}`,
      `/api/feature_flag/local_evaluation/?token=${anna.projectToken}&send_cohorts`,
      flags('local_evaluation/'),
    ]) {
      const answer = await api.request(secret, 'GET', url);
      expect([url, answer.statusCode, Array.isArray(answer.json().flags)]).toEqual([url, 200, true]);
    }
    const others = [
      config(secret, 'for-servers', String(bert.projectId)),
      config(secret, 'for-servers', '@current', `?token=${bert.projectToken}`),
      api.request(secret, 'GET', `/flags/definitions?token=${bert.projectToken}`),
    ];
    for (const answer of await Promise.all(others)) {
      expect([answer.statusCode, answer.json().detail]).toEqual([
        403,
        'The secret API token belongs to another project.',
      ]);
    }
    for (const url of [flags(), flags('my_flags/'), project(anna), '/api/users/@me/']) {
      expect([url, (await api.request(secret, 'GET', url)).statusCode]).toEqual([url, 401]);
    }
  });

  test('is refused when it is wrong, and ends with the second rotation', async () => {
    const wrong = await config('phs_nobody', 'for-servers');
    expect([wrong.statusCode, wrong.json().detail]).toEqual([401, 'Secret API token is invalid.']);
    const next = (await rotate()).secret_api_token;
    for (const key of [secret, next]) expect((await config(key, 'for-servers')).statusCode).toBe(200);
    await api.request(anna, 'PATCH', project(anna, 'delete_secret_token_backup/'));
    expect((await config(secret, 'for-servers')).statusCode).toBe(401);
    expect((await config(next, 'for-servers')).statusCode).toBe(200);
    secret = next;
  });

  test('of an earlier version is found when maintenance has hashed it', async () => {
    await api.pool.query(
      'update projects set secret_api_token_hash = null, secret_api_token_backup_hash = null where id = $1',
      [anna.projectId],
    );
    const step = TENANCY_STEPS.find((one) => one.name === 'hashSecretTokens');
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
    expect((await config(secret, 'for-servers')).statusCode).toBe(200);
  });
});

describe('encrypted payloads', () => {
  const isNowhere = async (text: string) => {
    const { rows } = await api.pool.query(
      `select (select count(*) from feature_flags f where f::text like $1)
         + (select count(*) from feature_flag_revisions r where r::text like $1)
         + (select count(*) from activity_log a where a::text like $1) as places`,
      [`%${text}%`],
    );
    expect(rows[0].places).toBe(0);
  };

  test('are told by remote_config only', async () => {
    const flag = await create(remote('sealed', { password: 'hunter2' }, { has_encrypted_payloads: true }));
    expect(flag).toMatchObject({ has_encrypted_payloads: true, filters: { payloads: { true: MARK } } });
    expect(Object.keys(flag)).not.toContain('sealed_payloads');
    await isNowhere('hunter2');
    expect(await told('sealed')).toEqual({ password: 'hunter2' });
    expect(JSON.parse((await config(secret, flag.id)).json())).toEqual({ password: 'hunter2' });
    const shown = [
      await api.request(anna, 'GET', flags()),
      await api.request(anna, 'GET', flags(`${flag.id}/`)),
      await api.request(anna, 'GET', flags(`${flag.id}/history/`)),
      await api.request(anna, 'GET', flags(`${flag.id}/activity/`)),
      await api.request(secret, 'GET', '/flags/definitions'),
      await api.request(null, 'POST', '/flags?v=2', { token: anna.projectToken, distinct_id: 'a' }),
    ];
    for (const answer of shown) {
      expect(answer.statusCode).toBe(200);
      expect(answer.body).not.toContain('hunter2');
    }
    expect(JSON.parse(shown[5]?.body as string).flags.sealed).toBeUndefined();
  });

  test('stay when their mark is sent back, and are replaced otherwise', async () => {
    const flag = await create(remote('kept', { a: 1 }, { has_encrypted_payloads: true }));
    const seen = (await api.request(anna, 'GET', flags(`${flag.id}/`))).json();
    expect((await patch(flag.id, { name: 'n', filters: seen.filters })).json().name).toBe('n');
    expect(await told('kept')).toEqual({ a: 1 });
    const plainMark = { payloads: { true: '********* (encrypted)' } };
    expect((await patch(flag.id, { filters: plainMark })).statusCode).toBe(200);
    expect(await told('kept')).toEqual({ a: 1 });
    await patch(flag.id, { filters: { payloads: { true: { a: 2 } } } });
    expect(await told('kept')).toEqual({ a: 2 });
    const log = (await api.request(anna, 'GET', flags(`${flag.id}/activity/`))).json();
    expect(log.results[0].detail).toMatchObject({ name: 'kept', payloads_replaced: true });
    // Whoever sends conditions without a payload that they cannot read leaves it.
    await patch(flag.id, { filters: { groups: [{ properties: [] }], payloads: {} } });
    expect(await told('kept')).toEqual({ a: 2 });
    await patch(flag.id, { has_encrypted_payloads: false });
    expect((await config(anna, 'kept')).body).toBe('');
    const { rows } = await api.pool.query('select sealed_payloads from feature_flags where id = $1', [
      flag.id,
    ]);
    expect(rows[0].sealed_payloads).toBeNull();
  });

  test('come by switching encryption on, and go by switching it off', async () => {
    const flag = await create(remote('switched', '"visible"'));
    const on = (await patch(flag.id, { has_encrypted_payloads: true })).json();
    expect(on.filters.payloads).toEqual({ true: MARK });
    expect(await told('switched')).toBe('visible');
    const off = (await patch(flag.id, { has_encrypted_payloads: false })).json();
    expect([off.filters.payloads, off.has_encrypted_payloads]).toEqual([{}, false]);
    expect((await config(anna, 'switched')).body).toBe('');
    const back = await api.request(anna, 'POST', flags(`${flag.id}/roll_back/`), { version: 2 });
    expect([back.statusCode, back.json().detail]).toEqual([
      400,
      'payloads.true is the mark of an encrypted payload, and no such payload is stored.',
    ]);
  });

  test('need a flag for remote configuration, and a payload behind each mark', async () => {
    const usual = await api.request(anna, 'POST', flags(), {
      ...{ key: 'wrong', has_encrypted_payloads: true, filters: { groups: [{ properties: [] }] } },
    });
    expect([usual.statusCode, usual.json().attr]).toEqual([400, 'has_encrypted_payloads']);
    const marked = await api.request(anna, 'POST', flags(), remote('wrong', MARK));
    expect(marked.json().detail).toBe(
      'payloads.true is the mark of an encrypted payload, and the flag does not encrypt its payloads.',
    );
  });

  test('cannot be stored without keys', async () => {
    const app = await api.rebuild({ keyring: undefined });
    const answer = await app.inject({
      method: 'POST',
      url: flags(),
      headers: { authorization: `Bearer ${anna.key}` },
      payload: remote('keyless', 1, { has_encrypted_payloads: true }),
    });
    await app.close();
    expect([answer.statusCode, answer.json().detail]).toEqual([
      503,
      expect.stringContaining('There are no encryption keys'),
    ]);
  });
});
