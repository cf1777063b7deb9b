import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { secretKeys } from '../../integrations/kinds/config.ts';
import { KIND_NAMES, KINDS } from '../../integrations/kinds/registry.ts';
import { resolveIntegration } from '../../integrations/reads/resolve.ts';
import { secretValues, substitute } from '../../integrations/rules/substitution.ts';
import { parseKeyring } from '../../secrets/envelope.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { queriesOf } from '../support/query-log.ts';
import { refusals } from '../support/refusals.ts';
import { documentOf } from '../support/routes.ts';

const api = apiForFile();
let anna: Tenant;
let ben: Tenant;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  ben = await api.createTenant('Ben');
});

/** The text of every secret contains this. */
const CANARY = 'Canary1234';
const KEY_FILE = {
  type: 'service_account',
  project_id: 'lake',
  private_key_id: 'x',
  private_key: `-----BEGIN PRIVATE KEY-----\n${CANARY}\n-----END PRIVATE KEY-----\n`,
  client_email: 'robot@lake.iam.gserviceaccount.com',
  token_uri: 'https://oauth2.googleapis.com/token',
};

interface Example {
  kind: string;
  config: Record<string, unknown>;
  /** What answers show of it. */
  shown: Record<string, unknown>;
  display_name: string;
  /** An allowed URL, and one that is not. */
  url?: string;
}

const EXAMPLES: Example[] = [
  {
    ...{ kind: 'slack', config: { access_token: `xoxb-${CANARY}` }, shown: {}, display_name: 'Slack' },
    url: 'https://slack.com/api/chat.postMessage',
  },
  {
    kind: 'discord',
    config: { webhook_url: `https://discord.com/api/webhooks/1/${CANARY}`, name: 'Team' },
    shown: { name: 'Team' },
    display_name: 'Team',
  },
  {
    kind: 'microsoft-teams',
    config: { webhook_url: `https://acme.webhook.office.com/webhookb2/${CANARY}` },
    shown: {},
    display_name: 'Microsoft Teams',
  },
  {
    ...{ kind: 'hubspot', config: { access_token: `pat-${CANARY}` }, shown: {}, display_name: 'HubSpot' },
    url: 'https://api.hubapi.com/crm/v3/objects/contacts',
  },
  {
    kind: 'customerio-track',
    config: { site_id: 'site', api_key: CANARY, region: 'eu' },
    shown: { site_id: 'site', region: 'eu' },
    display_name: 'site',
    url: 'https://track-eu.customer.io/api/v2/entity',
  },
  {
    kind: 'customerio-app',
    config: { api_key: CANARY },
    shown: { region: 'us' },
    display_name: 'Customer.io (App API)',
    url: 'https://api.customer.io/v1/send/email',
  },
  {
    kind: 'bearer',
    config: { hosts: ['API.example.com', '*.example.org', 'api.example.com'], access_token: CANARY },
    shown: { hosts: ['api.example.com', '*.example.org'] },
    display_name: 'api.example.com',
    url: 'https://eu.example.org/x',
  },
  {
    kind: 'basic',
    config: { hosts: ['10.0.0.5'], username: 'anna', password: `pass ${CANARY}` },
    shown: { hosts: ['10.0.0.5'], username: 'anna' },
    display_name: 'anna at 10.0.0.5',
    url: 'http://10.0.0.5:8080/x',
  },
  {
    kind: 'aws',
    config: {
      ...{ region: 'eu-central-1', access_key_id: `AKIA${CANARY}`, secret_access_key: CANARY },
      session_token: `session-${CANARY}`,
    },
    shown: { region: 'eu-central-1' },
    display_name: 'AWS eu-central-1',
  },
  {
    kind: 'google-service-account',
    config: { key: KEY_FILE },
    shown: { client_email: KEY_FILE.client_email, project_id: 'lake' },
    display_name: KEY_FILE.client_email,
  },
];
const exampleOf = (kind: string) => EXAMPLES.find((one) => one.kind === kind) as Example;

const at = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/integrations/${rest}`;
const seen: string[] = [];
const ask = async (method: string, rest: string, body?: unknown, tenant = anna) => {
  const answer = await api.request(tenant, method, at(tenant, rest), body);
  seen.push(`${JSON.stringify(answer.headers)} ${answer.body}`);
  return answer;
};
const create = async (kind: string, config = exampleOf(kind).config, tenant = anna): Promise<number> => {
  const answer = await ask('POST', '', { kind, config }, tenant);
  expect([kind, answer.statusCode, answer.statusCode === 201 || answer.body]).toEqual([kind, 201, true]);
  return answer.json().id;
};
const resolve = (id: number, tenant = anna, seed = 'seed') =>
  resolveIntegration(api.pool, api.keyring, tenant.projectId, id, seed);

test('every kind has an example here', () => {
  expect(EXAMPLES.map((one) => one.kind)).toEqual(KIND_NAMES);
});

describe.each(EXAMPLES)('an integration of the kind $kind', ({ kind, config, shown, display_name, url }) => {
  test('is created, listed, shown and deleted, always without its secrets', async () => {
    const made = await ask('POST', '', { kind, config });
    expect([made.statusCode, made.json()]).toEqual([
      201,
      {
        id: expect.any(Number),
        kind,
        config: shown,
        created_at: expect.stringMatching(/Z$/),
        created_by: expect.objectContaining({ id: anna.userId, email: anna.email }),
        errors: '',
        display_name,
      },
    ]);
    const { id } = made.json();
    expect((await ask('GET', `${id}/`)).json()).toEqual(made.json());
    expect((await ask('GET', `?kind=${kind}&limit=1`)).json()).toMatchObject({ results: [made.json()] });
    const gone = await ask('DELETE', `${id}/`);
    expect([gone.statusCode, gone.body]).toEqual([204, '']);
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const answer = await ask(method, `${id}/`, method === 'PATCH' ? {} : undefined);
      expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound()]);
    }
    expect(await resolve(id)).toBeUndefined();
  });

  test('requires its keys, and knows no others', async () => {
    for (const [key, field] of Object.entries(KINDS.find((one) => one.kind === kind)?.fields.shape ?? {})) {
      const { [key]: _, ...rest } = config;
      if (field.safeParse(undefined).success) continue;
      const answer = await ask('POST', '', { kind, config: rest });
      expect([answer.statusCode, answer.json()]).toEqual([
        400,
        refusals.field(`config__${key}`, 'required', 'This field is required.'),
      ]);
    }
    const answer = await ask('POST', '', { kind, config: { ...config, [CANARY]: 1 } });
    expect(answer.json()).toMatchObject({
      attr: 'config',
      detail: expect.stringMatching(/^The configuration has a key that /),
    });
  });

  test('refuses secrets of a wrong form without repeating them', async () => {
    const { fields } = KINDS.find((one) => one.kind === kind) ?? KINDS[0] ?? { fields: undefined };
    for (const key of secretKeys(fields as NonNullable<typeof fields>)) {
      for (const wrong of [
        '',
        5,
        true,
        [CANARY],
        `${CANARY}\r\nx: y`,
        CANARY.repeat(5000),
        { [CANARY]: 1 },
      ]) {
        const answer = await ask('POST', '', { kind, config: { ...config, [key]: wrong } });
        const { attr } = answer.json();
        expect([key, wrong, answer.statusCode, attr]).toEqual([key, wrong, 400, `config__${key}`]);
      }
    }
  });

  test('keeps its secrets in a change of its name, and logs no secret', async () => {
    const id = await create(kind);
    const before = await resolve(id);
    const renamed = await ask('PATCH', `${id}/`, { config: { name: 'Renamed' } });
    expect([renamed.statusCode, renamed.json().display_name]).toEqual([200, 'Renamed']);
    expect(await resolve(id)).toEqual({ ...before, inputs: { ...before?.inputs, name: 'Renamed' } });
    const again = await ask('PATCH', `${id}/`, { kind, config });
    expect(again.statusCode).toBe(200);
  });

  test('gives a run placeholders in place of its secrets', async () => {
    const id = await create(kind);
    const resolved = await resolve(id);
    if (!resolved) throw new Error('it is not there');
    const { inputs, substitution } = resolved;
    expect(JSON.stringify(inputs)).not.toContain(CANARY);
    expect(inputs).toMatchObject(shown);
    expect(secretValues([substitution]).length).toBeGreaterThan(0);
    expect(JSON.stringify(await resolve(id, anna, 'other'))).not.toContain(
      substitution.placeholders[0]?.marker ?? 'none',
    );
    const { placeholders, signing } = substitution;
    expect(placeholders.length > 0).toBe(signing === null);
    if (url === undefined) return;
    const request = { url, headers: { authorization: String(inputs.authorization) }, body: null };
    const { authorization } = substitute(request, [substitution]).headers;
    const secret = String(config.access_token ?? config.api_key ?? config.password);
    const basic = Buffer.from(`${config.site_id ?? config.username}:${secret}`).toString('base64');
    expect(authorization).toBe(config.site_id || config.username ? `Basic ${basic}` : `Bearer ${secret}`);
    expect(() => substitute({ ...request, url: 'https://evil.example/' }, [substitution])).toThrow(
      'must not be sent to evil.example',
    );
  });
});

describe('the address of a webhook', () => {
  test.each([
    ['discord', 'http://discord.com/api/webhooks/1/a'],
    ['discord', 'https://discord.com.evil.com/api/webhooks/1/a'],
    ['discord', 'https://evildiscord.com/api/webhooks/1/a'],
    ['discord', 'https://u:p@discord.com/api/webhooks/1/a'],
    ['discord', 'https://discord.com:8443/api/webhooks/1/a'],
    ['microsoft-teams', 'https://webhook.office.com.evil.com/a'],
    ['microsoft-teams', 'https://evil.com/a.webhook.office.com'],
    ['microsoft-teams', 'javascript:alert(1)'],
  ])('of %s must be one of its own: not %s', async (kind, webhook_url) => {
    const answer = await ask('POST', '', { kind, config: { webhook_url } });
    expect([answer.statusCode, answer.json().attr]).toEqual([400, 'config__webhook_url']);
    expect(answer.json().detail).toMatch(/^It must be an https URL of /);
  });

  test('is where a run sends it, and nowhere else', async () => {
    const resolved = await resolve(await create('discord'));
    if (!resolved) throw new Error('it is not there');
    const { inputs, substitution } = resolved;
    const request = { headers: {}, body: '{}' };
    expect(substitute({ ...request, url: `${inputs.webhook_url}` }, [substitution]).url).toBe(
      exampleOf('discord').config.webhook_url,
    );
    const elsewhere = `https://ptb.discord.com/?x=${inputs.webhook_url}`;
    expect(() => substitute({ ...request, url: elsewhere }, [substitution])).toThrow('must not be sent to');
  });
});

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
      const answer = await api.request(anna, 'POST', at(anna), body, { 'content-type': 'application/json' });
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
      url: at(anna),
      headers: { authorization: `Bearer ${anna.key}` },
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
        url: at(anna, `${id}/`),
        headers: { authorization: `Bearer ${anna.key}` },
        payload: { config },
      });
    expect((await patch({ name: 'x' })).statusCode).toBe(503);
    expect((await patch({ access_token: 'xoxb-new' })).statusCode).toBe(200);
    await app.close();
    const found = await resolveIntegration(api.pool, lost, anna.projectId, id, 'seed');
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

  test('are in no answer of this file, and in no row but sealed', async () => {
    expect(seen.length).toBeGreaterThan(100);
    expect(seen.filter((one) => one.includes(CANARY))).toEqual([]);
    for (const table of ['integrations', 'activity_log']) {
      const { rows } = await api.pool.query(`select * from ${table}`);
      expect([table, rows.length > 0, JSON.stringify(rows).includes(CANARY)]).toEqual([table, true, false]);
    }
  });
});

describe('integrations of another project', () => {
  test('are like integrations that do not exist: the answer, and the queries', async () => {
    const id = await create('slack', exampleOf('slack').config, ben);
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
    expect((await resolve(id, ben))?.id).toBe(id);
    const { results } = (await ask('GET', '?limit=1000')).json();
    expect(results.map((one: { id: number }) => one.id)).not.toContain(id);
    const answer = await api.request(anna, 'GET', at(ben));
    expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound('Project not found.')]);
  });

  test('and of this one need the scope', async () => {
    const reader = await api.createKey(anna, { scopes: ['integration:read'] });
    const none = await api.createKey(anna, { scopes: ['query:read'] });
    const id = await create('slack');
    const answers = [
      await api.request(reader.value, 'GET', at(anna, `${id}/`)),
      await api.request(reader.value, 'POST', at(anna), { kind: 'slack', config: {} }),
      await api.request(reader.value, 'PATCH', at(anna, `${id}/`), {}),
      await api.request(reader.value, 'DELETE', at(anna, `${id}/`)),
      await api.request(none.value, 'GET', at(anna)),
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

test('the document of the API tells the keys of each kind, and which are in no answer', () => {
  const body = documentOf(api.app).paths['/api/projects/{project_id}/integrations/']?.post?.requestBody as {
    content: Record<string, { schema: { oneOf: Variant[] } }>;
  };
  const variants = body.content['application/json']?.schema.oneOf ?? [];
  expect(variants.map((one) => one.properties.kind.enum)).toEqual(KIND_NAMES.map((one) => [one]));
  for (const [index, { fields }] of KINDS.entries()) {
    const keys = variants[index]?.properties.config.properties ?? {};
    expect(Object.keys(keys).filter((key) => keys[key]?.writeOnly)).toEqual(secretKeys(fields));
  }
});

interface Variant {
  properties: { kind: { enum: string[] }; config: { properties: Record<string, { writeOnly?: boolean }> } };
}

test('the examples of the documentation are taken, and the page names every kind', async () => {
  const page = readFileSync(path.resolve(import.meta.dirname, '../../docs/integrations.md'), 'utf8');
  const [created, changed] = [...page.matchAll(/ -d '(\{[^']+\})'/g)].map((match) =>
    JSON.parse(match[1] as string),
  );
  const made = await ask('POST', '', created);
  expect(made.statusCode).toBe(201);
  expect((await ask('PATCH', `${made.json().id}/`, changed)).statusCode).toBe(200);
  for (const { kind, fields } of KINDS) {
    for (const key of Object.keys(fields.shape))
      expect([kind, key, page.includes(`\`${key}\``)]).toEqual([kind, key, true]);
    expect(page).toContain(`\`${kind}\``);
  }
});
