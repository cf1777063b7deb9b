import { beforeAll, describe, expect, test } from '@jest/globals';
import { MOST_MAPPINGS } from '../../functions/rules/limits.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
let berta: Tenant;
const base = (tenant: Tenant) => `/api/projects/${tenant.projectId}/hog_functions/`;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  berta = await api.createTenant('Berta');
});

const create = async (body: object, tenant = anna) => {
  const answer = await api.request(tenant, 'POST', base(tenant), body);
  return { status: answer.statusCode, body: answer.json() };
};
const patch = async (id: string, body: object, tenant = anna) => {
  const answer = await api.request(tenant, 'PATCH', `${base(tenant)}${id}/`, body);
  return { status: answer.statusCode, body: answer.json() };
};
const put = async (id: string, body: object) => {
  const answer = await api.request(anna, 'PUT', `${base(anna)}${id}/`, body);
  return { status: answer.statusCode, body: answer.json() };
};
const get = async (path: string, tenant = anna) => {
  const answer = await api.request(tenant, 'GET', `${base(tenant)}${path}`);
  return { status: answer.statusCode, body: answer.json() };
};
const made = async (body: object, tenant = anna) => {
  const { status, body: answer } = await create(body, tenant);
  expect({ status, answer }).toMatchObject({ status: 201 });
  return answer;
};

describe('a new function', () => {
  test('for events of Sluice itself begins with a template of a destination, too', async () => {
    const { status, body } = await create({
      ...{ type: 'internal_destination', template_id: 'template-webhook' },
      ...{ inputs: { url: { value: 'https://example.com' } } },
      filters: { events: [{ id: '$activity_log_entry_created', type: 'events' }] },
    });
    expect([status, body.type, body.template?.id]).toEqual([201, 'internal_destination', 'template-webhook']);
    const other = await create({ type: 'internal_destination', template_id: 'template-drop-events' });
    expect([other.status, other.body.attr]).toEqual([400, 'template_id']);
  });

  test.each([
    ['internal_destination', ['name', 'detail']],
    ['destination', ['detail.name']],
  ])('of type %s reads a property whose key has a dot', async (type, keys) => {
    const properties = [{ key: 'detail.name', value: 'x', operator: 'exact', type: 'event' }];
    const { body } = await create({ hog: 'return 1', type, filters: { properties } });
    const path = [...keys, 'properties'].flatMap((key) => [32, key]);
    expect(body.filters.bytecode).toEqual(['_H', 1, 32, 'x', ...path, 1, keys.length + 1, 11]);
  });

  test('needs only a program, and gets defaults for all else', async () => {
    const { status, body } = await create({ hog: 'fetch(inputs.url)' });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      ...{ type: 'destination', name: null, description: '', enabled: false, deleted: false },
      ...{ hog: 'fetch(inputs.url)', inputs_schema: [], inputs: {}, mappings: null, masking: null },
      ...{ filters: { bytecode: ['_H', 1, 29] }, template: null, template_id: null, execution_order: null },
      ...{ status: { state: 0, rating: 0, tokens: 0 }, transpiled: null, version: 1, warnings: [] },
      bytecode: ['_H', 1, 32, 'url', 32, 'inputs', 1, 2, 2, 'fetch', 1, 35],
      created_by: { email: expect.any(String), id: anna.userId },
    });
  });

  test.each<[what: string, body: object, attr: string, code: string, detail: string | RegExp]>([
    ['no program', {}, 'hog', 'required', 'Required.'],
    ['an empty program', { hog: '' }, 'hog', 'required', 'Required.'],
    [
      'an unknown type',
      { hog: 'return 1', type: 'x' },
      'type',
      'invalid_choice',
      '"x" is not a valid choice.',
    ],
    ['a program that is no text', { hog: 5 }, 'hog', 'invalid_input', 'Not a valid string.'],
    [
      'an unknown template',
      { template_id: 'nope' },
      'template_id',
      'invalid_input',
      "No template found for id 'nope'",
    ],
    ['a name that is too long', { hog: 'return 1', name: 'x'.repeat(401) }, 'name', 'max_length', /400/],
    [
      'an order that is too large',
      { hog: 'return 1', execution_order: 40_000 },
      'execution_order',
      'max_value',
      /32767/,
    ],
    [
      'mappings of a transformation',
      { hog: 'return event', type: 'transformation', mappings: [{ name: 'a' }] },
      'mappings',
      'invalid_input',
      'Mappings are only allowed for destinations.',
    ],
    [
      'a program of more than 100 KB',
      { hog: `// ${'x'.repeat(100 * 1024)}\nreturn 1` },
      'hog',
      'invalid_input',
      /^HOG code exceeds maximum size of 100KB\./,
    ],
    [
      'masking that is too short',
      { hog: 'return 1', masking: { ttl: 59, hash: 'x' } },
      'masking__ttl',
      'min_value',
      /60/,
    ],
    [
      'a schema of an unknown type',
      { hog: 'return 1', inputs_schema: [{ key: 'a', type: 'nope' }] },
      'inputs_schema__0__type',
      'invalid_choice',
      '"nope" is not a valid choice.',
    ],
    [
      'a schema with a key twice',
      {
        hog: 'return 1',
        inputs_schema: [
          { key: 'a', type: 'string' },
          { key: 'a', type: 'number' },
        ],
      },
      'inputs_schema__1__key',
      'invalid_input',
      /used twice/,
    ],
  ])('is refused with %s', async (_what, body, attr, code, detail) => {
    const { status, body: answer } = await create(body);
    expect(answer).toMatchObject({ type: 'validation_error', attr, code });
    expect(answer.detail).toMatch(detail instanceof RegExp ? detail : new RegExp(`^${escaped(detail)}$`));
    expect(status).toBe(400);
  });

  test('is refused if its program cannot be compiled, and the answer shows where', async () => {
    const { body } = await create({ hog: 'let a := 1\nlet x := ;' });
    expect(body).toMatchObject({ attr: 'hog', detail: 'Hog code has errors.' });
    expect(body.reason).toBe("Unexpected ';' (line 2, column 10)\nlet x := ;\n         ^");
  });

  test('is refused if it subtracts where a property with a hyphen is meant', async () => {
    const { body } = await create({ hog: 'return event.properties.foo-bar' });
    expect(body).toMatchObject({
      attr: 'hog',
      detail: expect.stringContaining("event.properties['foo-bar']"),
      reason: 'It is here (line 1, column 8)\nreturn event.properties.foo-bar\n       ^',
    });
    expect((await create({ hog: 'return event.properties.foo - bar' })).status).toBe(201);
  });

  test('is stored with a warning if it calls what does not exist', async () => {
    const answer = await made({ hog: 'fun own() { return 1 }\nown()\nprint(upper(fetch2(1)))' });
    expect(answer.warnings).toEqual([
      'The function fetch2() does not exist. A call of it ends the run with an error.',
    ]);
  });

  test('is filled from a template where its user says nothing', async () => {
    const answer = await made({
      template_id: 'template-webhook',
      inputs: { url: { value: 'https://example.com' } },
    });
    expect(answer).toMatchObject({
      ...{ name: 'HTTP Webhook', template_id: 'template-webhook', template: { id: 'template-webhook' } },
      inputs: { url: { value: 'https://example.com' } },
    });
    const own = await made({
      template_id: 'template-webhook',
      name: 'Mine',
      inputs: { url: { value: 'x' } },
    });
    expect(own.name).toBe('Mine');
    const { body } = await create({ template_id: 'template-webhook', type: 'transformation' });
    expect(body.attr).toBe('template_id');
  });
});

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
const string = (key: string, more = {}) => ({ key, type: 'string', ...more });

test('the enabled functions of a project have only so many mappings together', async () => {
  const carl = await api.createTenant('Carl');
  const mappings = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `m${n}` }));
  const full = await made({ hog: 'return 1', enabled: true, mappings: mappings(1) }, carl);
  await api.pool.query(
    `update functions set mappings = (select json_agg(one.first) from (select mappings->0 as first from functions where id = $1) one,
       generate_series(1, ${MOST_MAPPINGS - 1}))
     where id = $1`,
    [full.id],
  );
  const refused = await create({ hog: 'return 1', enabled: true, mappings: mappings(2) }, carl);
  expect(refused).toMatchObject({
    status: 400,
    body: {
      attr: 'mappings',
      detail: expect.stringMatching(/1000 mappings together, and with this one they have 1001\./),
    },
  });
  const off = await made({ hog: 'return 1', mappings: mappings(2) }, carl);
  expect((await patch(off.id, { enabled: true }, carl)).status).toBe(400);
  expect((await patch(off.id, { mappings: mappings(1), enabled: true }, carl)).status).toBe(200);
  expect((await patch(off.id, { mappings: mappings(2) }, carl)).status).toBe(400);
  await made({ hog: 'return 1', enabled: true }, carl);
  await patch(full.id, { enabled: false }, carl);
  expect((await patch(off.id, { mappings: mappings(2) }, carl)).status).toBe(200);
});

describe('inputs', () => {
  const tried = (schema: object[], inputs: object, more = {}) =>
    create({ hog: 'return 1', inputs_schema: schema, inputs, ...more });

  test.each([
    ['string', 5, 'Value must be a string.'],
    ['number', '5', 'Value must be a number.'],
    ['boolean', 5, 'Value must be a boolean or a template string.'],
    ['dictionary', 'x', 'Value must be a dictionary.'],
    ['integration', 'x', 'Value must be an Integration ID.'],
    ['email', { to: 'a', subject: 'b', text: 'c' }, "Missing value for 'from'."],
    ['email', { from: 'x', to: 'a', subject: 'b' }, "Either 'text' or 'html' is required."],
    ['non_failure_status_codes', [399], /400 to 599/],
    ['non_failure_status_codes', [400.5], /400 to 599/],
    ['non_failure_status_codes', [true], /400 to 599/],
  ])('of type %s refuse %j', async (type, value, detail) => {
    const { status, body } = await tried([{ key: 'a', type }], { a: { value } });
    expect(body).toMatchObject({ attr: 'inputs__a', detail: expect.stringMatching(detail) });
    expect(status).toBe(400);
  });

  test.each([[[]], [false], [''], [null], [0]])('keep %j unchecked, whatever their type', async (value) => {
    const { body } = await tried([{ key: 'a', type: 'dictionary' }], { a: { value } });
    expect(body.inputs).toEqual({ a: { value, order: 0 } });
  });

  test.each([[undefined], [{}], [null], [{ value: null }], [{ value: '' }]])(
    'that are required refuse %j',
    async (a) => {
      const { body } = await tried([string('a', { required: true })], { a });
      expect(body).toMatchObject({
        ...{ attr: 'inputs__a', code: 'invalid_input', detail: 'This field is required.' },
      });
      const { body: filled } = await tried([string('a', { required: true, default: 'd' })], { a });
      expect(filled.inputs.a.value).toBe('d');
    },
  );

  test('that the schema does not name are dropped', async () => {
    const { body } = await tried([string('a')], { a: { value: 'x' }, b: { value: 'y' } });
    expect(Object.keys(body.inputs)).toEqual(['a']);
  });

  test('become bytecode, text by text, in the order in which they read each other', async () => {
    const schema = [string('a'), string('url'), { key: 'b', type: 'json' }, { key: 'm', type: 'choice' }];
    const { body } = await tried(schema, {
      a: { value: '{inputs.b.x}' },
      url: { value: 'https://x.io/{event.uuid}' },
      b: { value: { x: ['q{inputs.url}', 5] } },
      m: { value: 'POST' },
    });
    expect(Object.keys(body.inputs)).toEqual(['url', 'm', 'b', 'a']);
    expect(body.inputs).toEqual({
      url: {
        value: 'https://x.io/{event.uuid}',
        bytecode: ['_H', 1, 32, 'https://x.io/', 32, 'uuid', 32, 'event', 1, 2, 2, 'concat', 2],
        order: 0,
      },
      m: { value: 'POST', order: 1 },
      b: {
        value: { x: ['q{inputs.url}', 5] },
        bytecode: { x: [['_H', 1, 32, 'q', 32, 'url', 32, 'inputs', 1, 2, 2, 'concat', 2], 5] },
        order: 2,
      },
      a: { value: '{inputs.b.x}', bytecode: ['_H', 1, 32, 'x', 32, 'b', 32, 'inputs', 1, 3], order: 3 },
    });
  });

  test('stay as they are without templating, and as Liquid', async () => {
    const { body } = await tried([string('a', { templating: false }), string('b')], {
      a: { value: '{event' },
      b: { value: '{{ event.uuid }}', templating: 'liquid' },
    });
    expect(body.inputs).toEqual({
      a: { value: '{event', order: 0 },
      b: { value: '{{ event.uuid }}', templating: 'liquid', order: 1 },
    });
  });

  test('are Liquid or Hog as their schema says, if they do not say it themselves', async () => {
    const liquid = (key: string) => string(key, { templating: 'liquid' });
    const number = { key: 'n', type: 'choice', templating: 'liquid' };
    const { body } = await tried([liquid('a'), liquid('b'), number, string('c', { templating: 'hog' })], {
      a: { value: '{{ event.uuid }}' },
      b: { value: 'x', templating: 'hog' },
      n: { value: '{{ 1 }}' },
      c: { value: 'y' },
    });
    expect(body.inputs).toEqual({
      a: { value: '{{ event.uuid }}', templating: 'liquid', order: 0 },
      b: { value: 'x', templating: 'hog', bytecode: ['_H', 1, 32, 'x'], order: 1 },
      n: { value: '{{ 1 }}', order: 2 },
      c: { value: 'y', bytecode: ['_H', 1, 32, 'y'], order: 3 },
    });
  });

  test('that are booleans are not Liquid, which makes texts', async () => {
    const boolean = { key: 'a', type: 'boolean' };
    const given = { a: { value: '{{ event.properties.x }}', templating: 'liquid' } };
    expect((await tried([boolean], given)).body).toMatchObject({
      attr: 'inputs__a',
      detail: expect.stringMatching(/^Liquid templating is not supported for boolean fields/),
    });
    expect((await tried([boolean], { a: { value: true, templating: 'liquid' } })).status).toBe(201);
  });

  test('with hyphens in names are refused with the whole name', async () => {
    const { body } = await tried([string('a')], { a: { value: '{event.properties.multi-word-name}' } });
    expect(body).toMatchObject({
      attr: 'inputs__a',
      detail: expect.stringContaining("Write event.properties['multi-word-name'] for"),
    });
  });

  test('that read each other in a circle are refused, and the circle is named', async () => {
    const { body } = await tried([string('a'), string('b')], {
      a: { value: '{inputs.b}' },
      b: { value: "{inputs['a']}" },
    });
    expect(body).toMatchObject({ attr: 'inputs', detail: 'Circular dependency detected in input_deps.' });
    expect(body.reason).toMatch(/a → b → a|b → a → b/);
  });

  test('that are broken templates are refused, and Liquid is recognized', async () => {
    const broken = await tried([string('a')], { a: { value: 'x {event.} y' } });
    expect(broken.body).toMatchObject({
      attr: 'inputs__a',
      detail: expect.stringMatching(/^Invalid template: /),
    });
    const liquid = await tried([string('a')], { a: { value: '{{ event.uuid }}' } });
    expect(liquid.body.detail).toMatch(
      /Liquid\. Write \{person\.properties\.email\} with one pair of braces/,
    );
    const hyphen = await tried([string('a')], { a: { value: '{event.properties.foo-bar}' } });
    expect(hyphen.body.detail).toContain("event.properties['foo-bar']");
  });

  test('of transformations see no person', async () => {
    const { body } = await tried([string('a')], { a: { value: '{person.id}' } }, { type: 'transformation' });
    expect(body).toMatchObject({
      attr: 'inputs__a',
      detail: expect.stringMatching(/^Invalid template: Variable not available in transformations: person\./),
    });
  });

  test('take no code from the client', async () => {
    const hand = { value: 'x', bytecode: ['_H', 1, 30], order: 7, transpiled: 'evil()' };
    const { body } = await tried([string('a')], { a: hand }, { filters: { bytecode: ['_H', 1, 30] } });
    expect(body.inputs.a).toEqual({ value: 'x', bytecode: ['_H', 1, 32, 'x'], order: 0 });
    expect(body.filters).toEqual({ bytecode: ['_H', 1, 29] });
  });

  test('of mappings are checked like the others, and the mapping is named', async () => {
    const mapping = { name: 'm', inputs_schema: [string('x', { required: true })], inputs: {} };
    const { body } = await tried([], {}, { mappings: [mapping] });
    expect(body).toMatchObject({ attr: 'mappings__0__inputs__x', code: 'invalid_input' });
  });
});

test('errors of a template that is secret say nothing of it', async () => {
  for (const value of ['{s3cr3t-value', '{s3cr3t.value-part}', '{{s3cr3t}}', '{s3cr3t(select 1)}']) {
    const input = { key: 'a', type: 'string', secret: true };
    const { status, body } = await create({
      ...{ hog: 'return 1', inputs_schema: [input], inputs: { a: { value } } },
    });
    expect([value, status, body.attr]).toEqual([value, 400, 'inputs__a']);
    expect(body.detail).toMatch(/^Invalid template: the value of this secret input cannot be read/);
    expect(JSON.stringify(body)).not.toContain('s3cr3t');
    const open = await create({
      hog: 'return 1',
      inputs_schema: [{ ...input, secret: false }],
      inputs: { a: { value } },
    });
    expect(JSON.stringify(open.body)).toContain('s3cr3t');
  }
});

describe('inputs that name an integration', () => {
  const account = { ...{ key: 'oauth', type: 'integration', integration: 'slack', requiredScopes: 'a b' } };
  const field = {
    ...{ key: 'channel', type: 'integration_field', integration_key: 'oauth' },
    ...{ integration_field: 'slack_channel', requires_field: 'oauth' },
  };
  const bare = ({ key, type }: { key: string; type: string }) => ({ key, type, required: true });

  test('keep which ones they take when a client leaves that out', async () => {
    const { id } = await made({
      ...{ hog: 'return 1', inputs_schema: [account], inputs: { oauth: { value: 1 } } },
      mappings: [{ name: 'm', inputs_schema: [field], inputs: { channel: { value: 'C1' } } }],
    });
    const { status, body } = await patch(id, {
      inputs_schema: [bare(account)],
      mappings: [{ name: 'm', inputs_schema: [bare(field)], inputs: { channel: { value: 'C2' } } }],
    });
    expect(status).toBe(200);
    expect(body.inputs_schema).toMatchObject([{ ...account, required: true }]);
    expect(body.mappings[0].inputs_schema).toMatchObject([{ ...field, required: true }]);
    expect(body.mappings[0].inputs.channel.value).toBe('C2');
    // Another type is another input, and what a client sends wins.
    const changed = await patch(id, { inputs_schema: [{ ...bare(account), integration: 'discord' }] });
    expect(changed.body.inputs_schema).toMatchObject([{ integration: 'discord', requiredScopes: 'a b' }]);
    const text = await patch(id, { inputs_schema: [{ key: 'oauth', type: 'string' }], inputs: {} });
    expect(text.body.inputs_schema[0]).not.toHaveProperty('integration');
  });
});

describe('filters', () => {
  test('that mean other things than events are refused, unless the function is off', async () => {
    const body = (source: string) => ({ hog: 'return 1', filters: { source } });
    for (const source of ['person-updates', 'data-warehouse-table', 'data-warehouse-view', 'x']) {
      const { status, body: answer } = await create({ ...body(source), enabled: true });
      expect([status, answer.attr, answer.detail]).toEqual([
        ...[400, 'filters'],
        `Invalid filter configuration: source must be 'events', not "${source}"`,
      ]);
      const off = await made(body(source));
      expect(off.filters).toMatchObject({
        bytecode: null,
        bytecode_error: expect.stringContaining('source'),
      });
      expect((await patch(off.id, { enabled: true })).status).toBe(400);
    }
    await made({ ...body('events'), enabled: true });
    await made({ ...body('internal-events'), enabled: true, type: 'internal_destination' });
  });

  test('become bytecode', async () => {
    await api.request(anna, 'PATCH', `/api/projects/${anna.projectId}/`, {
      test_account_filters: [{ key: 'email', value: '@x.com', operator: 'not_icontains', type: 'person' }],
    });
    const { filters } = await made({
      hog: 'return 1',
      filters: { events: [{ id: '$pageview', type: 'events' }], filter_test_accounts: true },
    });
    expect(filters.bytecode).toEqual([
      ...['_H', 1, 32, '%@x.com%', 32, 'email', 32, 'properties', 32, 'person', 1, 3, 2, 'toString', 1, 20],
      ...[32, '$pageview', 32, 'event', 1, 1, 11, 3, 2],
    ]);
  });

  test('that cannot be compiled are refused only for a function that runs', async () => {
    const filters = { properties: [{ key: 'id', type: 'cohort', value: 5 }] };
    const message = 'Cohort 5 does not exist in this project, or was deleted';
    const stored = await made({ hog: 'return 1', filters });
    expect(stored.filters).toEqual({ ...filters, bytecode: null, bytecode_error: message });
    const refused = { attr: 'filters', detail: `Invalid filter configuration: ${message}` };
    expect((await create({ hog: 'return 1', filters, enabled: true })).body).toMatchObject(refused);
    expect((await patch(stored.id, { enabled: true })).body).toMatchObject(refused);
  });

  test('of a function with mappings keep only what holds for all of them', async () => {
    const answer = await made({
      hog: 'return 1',
      filters: { events: [{ id: 'a' }], properties: [{ key: 'x', value: 1, type: 'event' }] },
      mappings: [{ name: 'm', filters: { events: [{ id: 'b' }] } }],
    });
    expect(answer.filters.events).toBeUndefined();
    expect(answer.filters.properties).toHaveLength(1);
    expect(answer.mappings[0].filters.bytecode).toEqual(['_H', 1, 32, 'b', 32, 'event', 1, 1, 11]);
  });
});

describe('masking', () => {
  test('gets the bytecode of its key', async () => {
    const masking = { ttl: 60, threshold: 20, hash: '{person.properties.email}' };
    const answer = await made({ hog: 'return 1', masking });
    const bytecode = ['_H', 1, 32, 'email', 32, 'properties', 32, 'person', 1, 3];
    expect(answer.masking).toEqual({ ...masking, bytecode });
    expect((await patch(answer.id, { masking: null })).body.masking).toBeNull();
  });
});

describe('secrets', () => {
  const schema = [string('token', { secret: true, required: true }), string('url')];
  const inputs = { token: { value: 'geheim-1' }, url: { value: 'https://x.io' } };
  const secretsOf = async (id: string) =>
    (await api.pool.query('select * from functions where id = $1', [id])).rows[0];

  test('are sealed, and shown nowhere', async () => {
    const answer = await made({ hog: 'return 1', inputs_schema: schema, inputs });
    expect(answer.inputs.token).toEqual({ secret: true });
    const shown = [answer, await get(`${answer.id}/`), await get('?full=true'), await secretsOf(answer.id)];
    const log = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/activity_log/?limit=1000`);
    expect(JSON.stringify([shown, log.json()])).not.toContain('geheim');
  });

  test('stay when they are left out, and change when a value comes', async () => {
    const { id } = await made({ hog: 'return 1', inputs_schema: schema, inputs });
    const kept = [
      { inputs: { url: { value: 'b' } } },
      { inputs: { token: { secret: true }, url: { value: 'c' } } },
    ];
    const unsaid = [{ inputs: { token: { value: '********' } } }, { inputs: { token: {} } }, { name: 'n' }];
    for (const body of [...kept, ...unsaid]) {
      const answer = await patch(id, body);
      expect(answer.body.inputs.token).toEqual({ secret: true });
    }
    const run = await api.request(anna, 'POST', `${base(anna)}${id}/invocations/`, {
      configuration: { hog: "return inputs.token = '********'" },
      globals: { event: { event: 'a', distinct_id: 'b', properties: {} } },
    });
    expect(run.json().result).toBe(false);
    const before = (await secretsOf(id)).secrets;
    await patch(id, { inputs: { token: { value: 'geheim-2' } } });
    expect((await secretsOf(id)).secrets).not.toBe(before);
    const log = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/activity_log/?limit=1`);
    expect(log.json().results[0].detail.changes).toContainEqual({
      ...{ field: 'encrypted_inputs', before: 'masked', after: 'masked' },
    });
  });

  test('and other values of inputs are not in the activity log, since an address can be a credential', async () => {
    const value = 'https://hooks.example.com/T0-unmarked';
    const { id } = await made({ hog: 'return 1', inputs_schema: schema, inputs });
    await patch(id, { inputs: { url: { value } } });
    await patch(id, { mappings: [{ inputs_schema: [string('a')], inputs: { a: { value } } }] });
    await api.request(anna, 'PATCH', `${base(anna)}${id}/?draft=true`, {
      inputs: { url: { value: `${value}2` } },
    });
    const log = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/activity_log/?item_id=${id}`);
    const changes = log.json().results.map((one: { detail: { changes?: object[] } }) => one.detail.changes);
    const masked = (field: string) => expect.arrayContaining([{ field, before: 'masked', after: 'masked' }]);
    expect(changes).toEqual([masked('inputs'), masked('mappings'), masked('inputs'), undefined]);
    expect(log.body).not.toContain('T0-unmarked');
  });

  test('that are not stored cannot be kept', async () => {
    const { body } = await create({
      ...{ hog: 'return 1', inputs_schema: schema },
      inputs: { token: { secret: true }, url: { value: 'x' } },
    });
    expect(body).toMatchObject({
      attr: 'inputs__token',
      detail: 'No value is saved for this secret input. Enter the value again.',
    });
  });

  test('do not become visible when their schema says that they are none', async () => {
    const { id } = await made({ hog: 'return 1', inputs_schema: schema, inputs });
    const { body } = await patch(id, { inputs_schema: [string('token'), string('url')] });
    expect(JSON.stringify(body)).not.toContain('geheim');
    expect(body.inputs.token).toBeUndefined();
  });

  test('of mappings are sealed, and follow the name of their mapping', async () => {
    const mapping = (name: string, value?: string) => ({
      name,
      inputs_schema: [string('token', { secret: true })],
      inputs: { token: value === undefined ? { secret: true } : { value } },
    });
    const { id } = await made({
      hog: 'return 1',
      mappings: [mapping('a', 'geheim-a'), mapping('b', 'geheim-b')],
    });
    const { body } = await patch(id, { mappings: [mapping('b'), mapping('a')] });
    expect(body.mappings.map((one: { inputs: object }) => one.inputs)).toEqual([
      { token: { secret: true } },
      { token: { secret: true } },
    ]);
    expect(JSON.stringify([body, await secretsOf(id)])).not.toContain('geheim');
    const other = await patch(id, { mappings: [mapping('c')] });
    expect(other.body.attr).toBe('mappings__0__inputs__token');
  });
});

describe('a change', () => {
  test('merges what it brings into what is stored', async () => {
    const answer = await made({
      hog: 'return 1',
      name: 'n',
      inputs_schema: [string('a')],
      inputs: { a: { value: 'x' } },
    });
    const { body } = await patch(answer.id, { description: 'd', enabled: true });
    expect(body).toMatchObject({ name: 'n', description: 'd', enabled: true, inputs: { a: { value: 'x' } } });
    expect(body.status).toEqual({ state: 1, rating: 1, tokens: 10_000 });
    expect(body.version).toBe(1);
    expect((await patch(answer.id, { hog: 'return 2' })).body.version).toBe(2);
    expect((await patch(answer.id, { hog: 'return 2', name: 'm' })).body.version).toBe(2);
  });

  test('cannot change the type, and does not change the template', async () => {
    const { id } = await made({ hog: 'return 1' });
    expect((await patch(id, { type: 'site_app' })).body).toMatchObject({
      ...{ attr: 'type', detail: 'Cannot modify the type of an existing function' },
    });
    expect((await patch(id, { template_id: 'template-webhook' })).body.template_id).toBeNull();
  });

  test('can say what it is based on', async () => {
    const { id, updated_at: base } = await made({ hog: 'return 1' });
    expect((await patch(id, { name: 'a', base_updated_at: base })).status).toBe(200);
    const { status, body } = await patch(id, { name: 'b', base_updated_at: base });
    expect(status).toBe(409);
    expect(body.detail).toMatch(/Somebody else has changed the function/);
    const whole = await put(id, { name: 'b', base_updated_at: base });
    expect([whole.status, whole.body.code]).toEqual([409, 'stale_update']);
  });

  test('of several at once loses nothing', async () => {
    const { id } = await made({ hog: 'return 1' });
    const answers = await Promise.all([
      patch(id, { name: 'a' }),
      patch(id, { description: 'b' }),
      patch(id, { icon_url: 'c' }),
      patch(id, { hog: 'return 2' }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await get(`${id}/`)).body).toMatchObject({
      name: 'a',
      description: 'b',
      icon_url: 'c',
      hog: 'return 2',
    });
  });

  test('of one field by two at once: the later one hears of the other', async () => {
    const { id } = await made({ hog: 'return 1' });
    const answers = await Promise.all([patch(id, { hog: 'return 2' }), patch(id, { hog: 'return 3' })]);
    const winner = answers.find(({ status }) => status === 200);
    const statuses = answers.map(({ status }) => status).toSorted();
    // Either the two overlapped, or one came after the other.
    expect([
      [200, 200],
      [200, 409],
    ]).toContainEqual(statuses);
    const { body } = await get(`${id}/`);
    if (statuses[1] === 409) expect(body.hog).toBe(winner?.body.hog);
    expect(body.version).toBe(statuses[1] === 409 ? 2 : 3);
  });

  test('deletes and brings back', async () => {
    const { id } = await made({ hog: 'return 1' });
    const refused = await api.request(anna, 'DELETE', `${base(anna)}${id}/`);
    expect([refused.statusCode, refused.body]).toEqual([405, '']);
    expect((await patch(id, { deleted: true })).body.deleted).toBe(true);
    expect((await get(`${id}/`)).status).toBe(404);
    expect((await patch(id, { name: 'x' })).status).toBe(404);
    expect((await patch(id, { deleted: false })).status).toBe(200);
    expect((await get(`${id}/`)).status).toBe(200);
  });

  test('by PUT keeps what it leaves out', async () => {
    const { id } = await made({ hog: 'return 1', name: 'n', description: 'd' });
    const answer = await api.request(anna, 'PUT', `${base(anna)}${id}/`, { hog: 'return 2', name: 'm' });
    expect(answer.json()).toMatchObject({ hog: 'return 2', name: 'm', description: 'd' });
  });

  test('is refused for the function of another tenant', async () => {
    const { id } = await made({ hog: 'return 1' });
    expect((await get(`${id}/`, berta)).status).toBe(404);
    expect((await patch(id, { name: 'x' }, berta)).status).toBe(404);
    const foreign = await api.request(berta, 'PATCH', `${base(anna)}${id}/`, { name: 'x' });
    expect(foreign.statusCode).toBe(404);
  });
});

describe('the order of transformations', () => {
  const transformation = (more = {}) => made({ hog: 'return event', type: 'transformation', ...more }, berta);

  test('counts from 1, and can be changed', async () => {
    const [a, b, c] = [
      await transformation(),
      await transformation(),
      await transformation({ execution_order: 7 }),
    ];
    expect([a, b, c].map((one) => one.execution_order)).toEqual([1, 2, 7]);
    const rearranged = await api.request(berta, 'PATCH', `${base(berta)}rearrange/`, {
      orders: { [a.id]: 3, [b.id]: 1 },
    });
    expect(rearranged.json().map((one: { id: string }) => one.id)).toEqual([b.id, a.id, c.id]);
    expect(rearranged.json()[2].updated_at).toBe(c.updated_at);
    const log = await api.request(berta, 'GET', `/api/projects/${berta.projectId}/activity_log/?limit=1`);
    expect(log.json().results[0]).toMatchObject({
      scope: 'HogFunction',
      detail: { changes: [{ field: 'priority' }] },
    });
  });

  test('refuses what it does not know', async () => {
    const url = `${base(berta)}rearrange/`;
    const empty = await api.request(berta, 'PATCH', url, { orders: {} });
    expect(empty.json()).toMatchObject({ attr: null, detail: 'No orders provided' });
    const foreign = await made({ hog: 'return event', type: 'transformation' });
    const unknown = await api.request(berta, 'PATCH', url, { orders: { [foreign.id]: 1 } });
    expect(unknown.json().detail).toBe(`HogFunction with id ${foreign.id} does not exist`);
  });

  test('moves to the end what is enabled or brought back', async () => {
    const one = await transformation();
    const last = await transformation();
    const enabled = await patch(one.id, { enabled: true }, berta);
    expect(enabled.body.execution_order).toBe(last.execution_order + 1);
    await patch(last.id, { deleted: true }, berta);
    expect((await patch(last.id, { deleted: false }, berta)).body.execution_order).toBe(
      last.execution_order + 2,
    );
  });

  test('has at most 20 that are enabled, however many come at once', async () => {
    const tenant = await api.createTenant('Clara');
    const answers = await Promise.all(
      Array.from({ length: 22 }, () =>
        create({ hog: 'return event', type: 'transformation', enabled: true }, tenant),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
    const refused = answers.find(({ status }) => status === 400);
    expect(refused?.body).toMatchObject({
      attr: 'type',
      detail: expect.stringMatching(/^Maximum of 20 enabled/),
    });
    const orders = answers.flatMap(({ body }) => body.execution_order ?? []).toSorted((x, y) => x - y);
    expect(orders).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });
});

describe('the list', () => {
  let dora: Tenant;
  const ids: Record<string, string> = {};
  const names = async (query: string) => {
    const { status, body } = await get(query, dora);
    return status === 200 ? body.results.map((one: { name: string }) => one.name) : body;
  };

  beforeAll(async () => {
    dora = await api.createTenant('Dora');
    for (const [name, more] of [
      ['alpha', { description: 'about slack', filters: { events: [{ id: 'sign up' }] } }],
      ['slack', { enabled: true, filters: { actions: [{ id: '5', type: 'actions' }] } }],
      ['gamma', { type: 'transformation' }],
      ['100% sure', { type: 'site_app', hog: 'export function onLoad() {}' }],
    ] as const) {
      ids[name] = (await made({ hog: 'return 1', name, ...more }, dora)).id;
    }
  });

  test('shows those with an order first, then the newest', async () => {
    expect(await names('')).toEqual(['gamma', '100% sure', 'slack', 'alpha']);
  });

  test.each([
    ['?type=destination', ['slack', 'alpha']],
    ['?type=site_app,transformation', ['gamma', '100% sure']],
    ['?enabled=true', ['slack']],
    ['?enabled=true,false', ['gamma', '100% sure', 'slack', 'alpha']],
    ['?search=SLACK', ['slack', 'alpha']],
    ['?search=%20', ['gamma', '100% sure', 'slack', 'alpha']],
    ['?search=100%25', ['100% sure']],
    ['?filters={"actions":[{"id":"5"}]}', ['slack']],
    ['?filter_groups=[{"actions":[{"id":"5"}]},{"events":[{"id":"sign up"}]}]', ['slack', 'alpha']],
    ['?created_by=999999', []],
    ['?limit=1&offset=1', ['100% sure']],
  ])('with %s', async (query, expected) => {
    expect(await names(query)).toEqual(expected);
  });

  test.each([
    ['?filters=x', 'filters', 'Invalid filters'],
    ['?filters=[]', 'filters', 'Invalid filters'],
    ['?filter_groups={}', 'filter_groups', 'Invalid filter_groups'],
    [`?search=${'x'.repeat(201)}`, 'search', 'Search query must be 200 characters or fewer.'],
  ])('refuses %s', async (query, attr, detail) => {
    expect(await names(query)).toMatchObject({ attr, detail });
  });

  test.each(['created_at', 'updated_at'])('with the %s that an answer shows', async (field) => {
    const { body } = await get('?search=alpha', dora);
    const shown: string = body.results[0][field];
    expect(shown).toMatch(/\.\d{6}Z$/);
    const other = `${shown.slice(0, -2)}${(Number(shown.at(-2)) + 1) % 10}Z`;
    expect(await names(`?${field}=${shown}`)).toEqual(['alpha']);
    expect(await names(`?${field}=${encodeURIComponent(shown.replace('Z', '+00:00'))}`)).toEqual(['alpha']);
    expect(await names(`?${field}=${other}`)).toEqual([]);
  });

  test('shows a part of each function, or the whole', async () => {
    const part = await get('?limit=1', dora);
    const whole = await get('?limit=1&full=true', dora);
    expect(Object.keys(part.body.results[0]).toSorted()).toEqual(
      [
        ...['created_at', 'created_by', 'description', 'enabled', 'execution_order', 'filters', 'hog'],
        ...['icon_url', 'id', 'name', 'status', 'template', 'type', 'updated_at', 'draft_updated_at'],
      ].toSorted(),
    );
    expect(whole.body.results[0]).toMatchObject({ bytecode: expect.any(Array), inputs_schema: [] });
    expect((await get('', berta)).body.results.map((one: { id: string }) => one.id)).not.toContain(ids.alpha);
  });
});
