import { describe, expect, test } from '@jest/globals';
import { resolveIntegration } from '../../integrations/reads/resolve.ts';
import { parseKeyring } from '../../secrets/envelope.ts';
import { queriesOf } from '../support/query-log.ts';
import { refusals } from '../support/refusals.ts';
import { CANARY, exampleOf, integrationsForFile } from './support.ts';

const { api, tenants, at, ask, create, resolve, seen } = integrationsForFile();

describe('hosts', () => {
  const bearer = exampleOf('bearer');
  const message = (key: string) =>
    `This changes the hosts to which Sluice sends the secrets, so send the secrets along: ${key}.`;

  test.each([
    [[], 'config__hosts', 'This list may not be empty.', 'empty'],
    ['api.example.com', 'config__hosts', 'Expected a list of items.', 'invalid_input'],
    [
      Array(21).fill('a.example'),
      'config__hosts',
      'Ensure this field has no more than 20 elements.',
      'max_length',
    ],
    [['a.example', 5], 'config__hosts__1', 'Not a valid string.', 'invalid_input'],
    [['a.example', `https://${CANARY}@x`], 'config__hosts__1', /^Not a host\. /, 'invalid_input'],
    [['*.com'], 'config__hosts__0', /^Not a host\. /, 'invalid_input'],
    [['127.1'], 'config__hosts__0', /^Not a host\. /, 'invalid_input'],
  ])('%j are refused', async (hosts, attr, detail, code) => {
    const answer = await ask('POST', '', { kind: 'bearer', config: { ...bearer.config, hosts } });
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      {
        ...refusals.field(attr, code, ''),
        detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
      },
    ]);
  });

  test('are changed only together with the secrets that may go to them', async () => {
    const id = await create('bearer');
    const patch = (config: object) => ask('PATCH', `${id}/`, { config });
    for (const hosts of [
      ['evil.example'],
      ['api.example.com'],
      ['api.example.com', '*.example.org', 'x.example'],
    ]) {
      const refused = await patch({ hosts });
      expect([refused.statusCode, refused.json()]).toEqual([
        400,
        refusals.field('config__access_token', 'required', message('access_token')),
      ]);
    }
    expect((await resolve(id))?.substitution.hosts).toEqual(['api.example.com', '*.example.org']);
    // The same hosts in another order are no change.
    expect((await patch({ hosts: ['*.EXAMPLE.org', 'api.example.com'] })).statusCode).toBe(200);
    expect((await patch({ hosts: ['evil.example'], access_token: null })).statusCode).toBe(400);
    const moved = await patch({ hosts: ['new.example'], access_token: `other-${CANARY}` });
    expect([moved.statusCode, moved.json().config]).toEqual([200, { hosts: ['new.example'] }]);
    expect((await resolve(id))?.substitution.placeholders[0]?.value).toBe(`other-${CANARY}`);
  });

  test('follow the region of a service, so a change of it needs the secret too', async () => {
    const id = await create('customerio-track');
    const refused = await ask('PATCH', `${id}/`, { config: { region: 'us' } });
    expect(refused.json()).toEqual(refusals.field('config__api_key', 'required', message('api_key')));
    const region = await ask('PATCH', `${id}/`, { config: { region: 'mars' } });
    expect(region.json()).toEqual(
      refusals.field('config__region', 'invalid_choice', 'Not a valid choice. Use us or eu.'),
    );
    const moved = await ask('PATCH', `${id}/`, { config: { region: 'us', api_key: CANARY } });
    expect([moved.statusCode, moved.json().config.region]).toEqual([200, 'us']);
  });
});

describe('a request', () => {
  test('with a body that is not JSON is refused without repeating it', async () => {
    for (const body of [
      `{"kind":"slack","config":{"access_token":xoxb-${CANARY}}}`,
      `{"kind":"slack","config":{"access_token":"xoxb-${CANARY}",}}`,
      `"${CANARY}`,
      `${CANARY}`,
    ]) {
      const answer = await api.request(tenants.anna, 'POST', at(tenants.anna), body, {
        'content-type': 'application/json',
      });
      seen.push(answer.body);
      expect([answer.statusCode, answer.json().code]).toEqual([400, 'parse_error']);
      expect(answer.body).not.toMatch(/Cana|1234/);
    }
  });

  test.each([
    [{}, 'kind', 'required'],
    [{ kind: 'slack' }, 'config', 'required'],
    [{ kind: CANARY, config: {} }, 'kind', 'invalid_choice'],
    [{ kind: 5, config: {} }, 'kind', 'invalid_input'],
    [{ kind: 'slack', config: CANARY }, 'config', 'not_a_dict'],
    [{ kind: 'slack', config: [CANARY] }, 'config', 'not_a_dict'],
    [{ kind: 'slack', config: null }, 'config', 'null'],
    [{ kind: 'slack', config: { access_token: null } }, 'config__access_token', 'null'],
  ])('%j is refused', async (body, attr, code) => {
    const answer = await ask('POST', '', body);
    expect([answer.statusCode, answer.json().attr, answer.json().code]).toEqual([400, attr, code]);
  });

  test('cannot change the kind', async () => {
    const id = await create('slack');
    const refused = await ask('PATCH', `${id}/`, { kind: 'hubspot', config: { access_token: 'x' } });
    expect(refused.json()).toEqual(
      refusals.field(
        'kind',
        'invalid_input',
        'The kind of an integration cannot be changed. Create another one.',
      ),
    );
  });

  test('with an unknown parameter is refused, so that a list is never longer than meant', async () => {
    expect((await ask('GET', '?kinds=slack')).json()).toMatchObject({ attr: 'kinds' });
    const { results } = (await ask('GET', '?kind=slack')).json();
    expect(new Set(results.map((one: { kind: string }) => one.kind))).toEqual(new Set(['slack']));
  });

  test('without encryption keys is answered with 503', async () => {
    const app = await api.rebuild({ keyring: undefined });
    const answer = await app.inject({
      method: 'POST',
      url: at(tenants.anna),
      headers: { authorization: `Bearer ${tenants.anna.key}` },
      payload: { kind: 'slack', config: exampleOf('slack').config },
    });
    await app.close();
    expect([answer.statusCode, answer.json().detail]).toEqual([
      503,
      expect.stringContaining('SLUICE_ENCRYPTION_KEYS is not set'),
    ]);
  });

  test('is refused when the project has too many', async () => {
    const crowd = await api.createTenant('Crowd');
    await api.pool.query(
      `insert into integrations (project_id, kind, config, secrets) select $1, 'slack', '{}', 'x' from generate_series(1, 1000)`,
      [crowd.projectId],
    );
    const refused = await ask('POST', '', { kind: 'slack', config: exampleOf('slack').config }, crowd);
    expect([refused.statusCode, refused.json().detail]).toEqual([
      400,
      'This project already has 1000 integrations, the most that it may have. Delete one before you create another.',
    ]);
    await api.pool.query('delete from integrations where project_id = $1', [crowd.projectId]);
  });
});

describe('secrets', () => {
  test('are sealed for their row', async () => {
    const [one, other] = [await create('slack'), await create('slack')];
    const { rows } = await api.pool.query('select id, config, secrets from integrations where id = any($1)', [
      [one, other],
    ]);
    for (const row of rows) {
      expect(row.secrets).toMatch(/^slc1\.k1\./);
      expect(JSON.stringify(row)).not.toContain(CANARY);
    }
    await api.pool.query(
      'update integrations set secrets = (select secrets from integrations where id = $1) where id = $2',
      [one, other],
    );
    await expect(resolve(other)).rejects.toThrow('it belongs to another row');
  });

  test('are read in the project to which their integration moves', async () => {
    const olga = await api.createTenant('Olga');
    const target = (await api.request(olga, 'POST', '/api/projects/', { name: 'target' })).json().id;
    const id = await create('slack', exampleOf('slack').config, olga);
    const url = `/api/organizations/${olga.organizationId}/environments_rollback/`;
    expect((await api.request(olga, 'POST', url, { [olga.projectId]: target })).statusCode).toBe(200);
    expect(await resolve(id, olga)).toBeUndefined();
    const moved = await resolve(id, { ...olga, projectId: target });
    expect(moved?.substitution.placeholders[0]?.value).toContain(CANARY);
  });

  test('whose key is lost can be replaced', async () => {
    const id = await create('slack');
    const lost = parseKeyring(`k2:${Buffer.alloc(32, 9).toString('base64')}`);
    const app = await api.rebuild({ keyring: lost });
    const patch = (config: object) =>
      app.inject({
        method: 'PATCH',
        url: at(tenants.anna, `${id}/`),
        headers: { authorization: `Bearer ${tenants.anna.key}` },
        payload: { config },
      });
    expect((await patch({ name: 'x' })).statusCode).toBe(503);
    expect((await patch({ access_token: 'xoxb-new' })).statusCode).toBe(200);
    await app.close();
    const found = await resolveIntegration(api.pool, lost, tenants.anna.projectId, id, 'seed');
    expect(found?.substitution.placeholders[0]?.value).toBe('xoxb-new');
    await api.pool.query('delete from integrations where id = $1', [id]);
  });

  test('are in the activity log as `masked`', async () => {
    const olga = await api.createTenant('Olga');
    const id = await create('basic', exampleOf('basic').config, olga);
    const config = { username: 'olga', password: `new ${CANARY}` };
    await ask('PATCH', `${id}/`, { config }, olga);
    await ask('DELETE', `${id}/`, undefined, olga);
    const log = await api.request(olga, 'GET', `/api/projects/${olga.projectId}/activity_log/`);
    const entries = (log.json().results as Record<string, unknown>[]).filter(
      (one) => one.scope === 'Integration',
    );
    const shown = exampleOf('basic').shown;
    const after = { ...shown, username: 'olga' };
    expect(entries.map(({ activity, item_id, detail }) => [activity, item_id, detail]).reverse()).toEqual([
      ['created', String(id), { kind: 'basic', config: shown }],
      [
        'updated',
        String(id),
        {
          kind: 'basic',
          changes: [
            { field: 'config', before: shown, after },
            { field: 'display_name', before: 'anna at 10.0.0.5', after: 'olga at 10.0.0.5' },
            { field: 'config__password', before: 'masked', after: 'masked' },
          ],
        },
      ],
      ['deleted', String(id), { kind: 'basic', config: after }],
    ]);
  });

  test('are in no answer, and in no row but sealed', async () => {
    expect(seen.length).toBeGreaterThan(30);
    expect(seen.filter((one) => one.includes(CANARY))).toEqual([]);
    for (const table of ['integrations', 'activity_log']) {
      const { rows } = await api.pool.query(`select * from ${table}`);
      expect([table, rows.length > 0, JSON.stringify(rows).includes(CANARY)]).toEqual([table, true, false]);
    }
  });
});

describe('integrations of another project', () => {
  test('are like integrations that do not exist: the answer, and the queries', async () => {
    const id = await create('slack', exampleOf('slack').config, tenants.ben);
    const observe = async (method: string, of: number) => {
      const body = method === 'PATCH' ? { kind: 5, config: { access_token: 'x' } } : undefined;
      const { result, queries } = await queriesOf(() => ask(method, `${of}/`, body));
      return {
        status: result.statusCode,
        body: result.json(),
        queries: queries.map((one) => one.replace(String(of), '')),
      };
    };
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const theirs = await observe(method, id);
      expect(theirs).toEqual(await observe(method, 2_147_483_000));
      expect([theirs.status, theirs.body]).toEqual([404, refusals.notFound()]);
    }
    expect(await resolve(id)).toBeUndefined();
    expect((await resolve(id, tenants.ben))?.id).toBe(id);
    const { results } = (await ask('GET', '?limit=1000')).json();
    expect(results.map((one: { id: number }) => one.id)).not.toContain(id);
    const answer = await api.request(tenants.anna, 'GET', at(tenants.ben));
    expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound('Project not found.')]);
  });

  test('and of this one need the scope', async () => {
    const reader = await api.createKey(tenants.anna, { scopes: ['integration:read'] });
    const none = await api.createKey(tenants.anna, { scopes: ['query:read'] });
    const id = await create('slack');
    const answers = [
      await api.request(reader.value, 'GET', at(tenants.anna, `${id}/`)),
      await api.request(reader.value, 'POST', at(tenants.anna), { kind: 'slack', config: {} }),
      await api.request(reader.value, 'PATCH', at(tenants.anna, `${id}/`), {}),
      await api.request(reader.value, 'DELETE', at(tenants.anna, `${id}/`)),
      await api.request(none.value, 'GET', at(tenants.anna)),
    ];
    expect(answers.map((one) => one.statusCode)).toEqual([200, 403, 403, 403, 403]);
    expect(answers[1]?.json()).toEqual(refusals.scope('integration:write'));
    expect(answers[4]?.json()).toEqual(refusals.scope('integration:read'));
  });

  test('and ids that no integration can have are not found', async () => {
    for (const id of ['0', '-1', '1.5', 'x', '2147483648', '%00']) {
      expect([id, (await ask('GET', `${id}/`)).statusCode]).toEqual([id, 404]);
    }
    for (const id of [0, -1, 1.5, 2 ** 31, Number.NaN]) expect(await resolve(id)).toBeUndefined();
  });
});
