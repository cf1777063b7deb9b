import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { reservePort } from '../support/ports.ts';

const api = apiForFile({ SLUICE_EGRESS_ALLOW: '127.0.0.1' });
let anna: Tenant;
let server: Server;
let port: number;
/** The requests that arrived. */
const arrived: { method: string; url: string; headers: Record<string, unknown>; body: string }[] = [];

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  port = await reservePort();
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      arrived.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
      const [, status = '200'] = request.url?.match(/status=(\d+)/) ?? [];
      response.writeHead(Number(status), { 'content-type': 'application/json' });
      response.end(JSON.stringify({ heard: request.headers.authorization ?? null, echo: body }));
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const EVENT = {
  uuid: '018f0000-0000-7000-8000-000000000001',
  event: 'paid',
  distinct_id: 'ada',
  properties: { amount: 5, $browser: 'Firefox' },
  timestamp: '2026-01-01T00:00:00Z',
};
const base = () => `/api/projects/${anna.projectId}/hog_functions/`;
const url = (path = '') => `http://127.0.0.1:${port}/${path}`;

const tried = async (configuration: object, more: object = {}, id = 'new') => {
  const answer = await api.request(anna, 'POST', `${base()}${id}/invocations/`, {
    ...{ configuration, globals: { event: EVENT } },
    ...more,
  });
  return { status: answer.statusCode, body: answer.json() };
};
const messages = (body: { logs: { level: string; message: string }[] }) =>
  body.logs.map(({ level, message }) => `${level}: ${message}`);

describe('a test of a function', () => {
  test('shows its result, what it prints, and what it costs', async () => {
    const { status, body } = await tried({
      hog: "print('paid', event.properties, [1, null])\nreturn event.event",
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: 'success',
      result: 'paid',
      errors: [],
      event: { uuid: EVENT.uuid },
    });
    expect(body.invocations[0]).toMatchObject({ mapping: null, status: 'success', fetches: [] });
    expect(body.invocations[0].steps).toBeGreaterThan(3);
    expect(messages(body)[0]).toBe('info: paid, {"amount":5,"$browser":"Firefox"}, [1,null]');
    expect(messages(body)[1]).toMatch(
      /^debug: Function completed in [\d.e+]+ms\. Sync: [\d.e+]+ms\. Mem: [\d.e+]+kb\. Ops: \d+\. Event: 'https:\/\/sluice\.test\/project\/\d+\/events\//,
    );
  });

  test('shows every request, and sends none of them while they are mocked', async () => {
    const before = arrived.length;
    const hog =
      "let a := fetch(inputs.url, {'body': {'n': 1}})\nlet b := fetch(inputs.url, {'method': 'GET'})\nreturn [a, b]";
    const inputs = {
      inputs_schema: [{ key: 'url', type: 'string' }],
      inputs: { url: { value: url('{event.event}') } },
    };
    const { body } = await tried({ hog, ...inputs });
    expect(body.result).toEqual([
      { status: 200, body: {} },
      { status: 200, body: {} },
    ]);
    expect(body.invocations[0].fetches).toMatchObject([
      {
        url: url('paid'),
        method: 'POST',
        body: '{"n":1}',
        mocked: true,
        response: { status: 200 },
        error: null,
      },
      { url: url('paid'), method: 'GET', body: null, mocked: true },
    ]);
    expect(messages(body).slice(0, 2)).toEqual([
      "info: Async function 'fetch' was mocked with arguments:",
      expect.stringMatching(/^info: fetch\('http:\/\/127\.0\.0\.1:\d+\/paid', \{\n {2}"body"/),
    ]);
    expect(arrived.length).toBe(before);
  });

  test('sends requests when it is asked to', async () => {
    const { body } = await tried(
      {
        hog: `return fetch('${url('real')}', {'headers': {'X-A': 'b', 'X-N': 5}, 'body': event.properties})`,
      },
      { mock_async_functions: false },
    );
    expect(body.result).toMatchObject({ status: 200, body: { heard: null } });
    const request = arrived.at(-1);
    expect(request).toMatchObject({
      method: 'POST',
      url: '/real',
      body: '{"amount":5,"$browser":"Firefox"}',
    });
    expect(request?.headers).toMatchObject({ 'x-a': 'b' });
    expect(request?.headers).not.toHaveProperty('x-n');
  });

  test('fails when a request fails, and the program goes on', async () => {
    const { body } = await tried(
      { hog: `let a := fetch('${url('?status=503')}')\nprint('then')\nreturn a.status` },
      { mock_async_functions: false },
    );
    expect(body).toMatchObject({ status: 'error', result: 503 });
    expect(messages(body)).toEqual(
      expect.arrayContaining(['error: HTTP fetch failed on attempt 1 with status code 503.', 'info: then']),
    );
  });

  test.each([
    ['http://169.254.169.254/latest', /169\.254\.169\.254/],
    ['ftp://example.com', /neither http: nor https:/],
    ['nonsense', /not a valid URL/],
  ])('refuses to ask %s', async (target, message) => {
    const { body } = await tried(
      { hog: `return fetch('${target}').status` },
      { mock_async_functions: false },
    );
    expect(body).toMatchObject({ status: 'error', result: 500 });
    expect(body.errors[0]).toMatch(message);
  });

  test('does not run for an event that its filters do not match', async () => {
    const filters = { events: [{ id: 'other', type: 'events' }] };
    const { body } = await tried({ hog: 'return 1', filters });
    expect(body).toMatchObject({ status: 'skipped', result: null });
    expect(messages(body)).toEqual(['info: Mapping trigger not matching filters was ignored.']);
  });

  test('runs once for each mapping that matches, with its inputs', async () => {
    const mapping = (name: string, event: string) => ({
      name,
      inputs_schema: [{ key: 'who', type: 'string' }],
      inputs: { who: { value: `${name} {event.distinct_id}` } },
      filters: { events: [{ id: event, type: 'events' }] },
    });
    const { body } = await tried({
      hog: 'return inputs.who',
      mappings: [
        mapping('a', 'paid'),
        mapping('b', 'other'),
        mapping('c', 'paid'),
        { ...mapping('d', 'paid'), disabled: true },
      ],
    });
    expect(
      body.invocations.map((one: { status: string; result: unknown }) => [one.status, one.result]),
    ).toEqual([
      ['success', 'a ada'],
      ['skipped', null],
      ['success', 'c ada'],
      ['skipped', null],
    ]);
    expect(messages(body)).toContain('info: A mapping that is disabled was ignored.');
  });

  test('of a transformation shows the event that comes out of it', async () => {
    const { body } = await tried({
      type: 'transformation',
      hog: "let e := event\ne.properties := cleanNullValues({'a': null, 'b': 1})\nreturn e",
    });
    expect(body.result).toMatchObject({ event: 'paid', properties: { b: 1 } });
    const dropped = await tried({ template_id: 'template-drop-events', type: 'transformation' });
    expect(dropped.body).toMatchObject({ status: 'success', result: null });
  });

  test('shows what it would capture', async () => {
    const { body } = await tried({ hog: "postHogCapture({'event': 'made', 'properties': {'a': 1}})" });
    expect(body.invocations[0].captured).toEqual([
      { event: 'made', distinct_id: 'ada', properties: { a: 1, $hog_function_execution_count: 1 } },
    ]);
    const again = await tried({ hog: "postHogCapture({'event': 'a'})\npostHogCapture({'event': 'b'})" });
    expect(again.body.errors[0]).toMatch(/postHogCapture was called more than once/);
  });

  test('goes on where an event has led to the function too often, and says that it captures nothing', async () => {
    const capturing = (count: number) =>
      tried(
        { hog: "postHogCapture({'event': 'made'})\nreturn fetch('https://example.com').status" },
        { globals: { event: { ...EVENT, properties: { $hog_function_execution_count: count } } } },
      );
    const last = await capturing(9);
    expect(last.body.invocations[0].captured).toMatchObject([
      { properties: { $hog_function_execution_count: 10 } },
    ]);
    const { body } = await capturing(10);
    expect([body.status, body.result, body.invocations[0].captured]).toEqual(['success', 200, []]);
    expect(body.logs.map((one: { message: string }) => one.message)).toContainEqual(
      expect.stringMatching(
        /^postHogCapture was called from an event that already executed this function 10 times/,
      ),
    );
  });

  test('computes Liquid inputs', async () => {
    const { body } = await tried({
      hog: 'return inputs.a',
      inputs_schema: [{ key: 'a', type: 'string' }],
      inputs: { a: { value: 'Hi {{ event.distinct_id | upcase }}', templating: 'liquid' } },
    });
    expect(body.result).toBe('Hi ADA');
  });

  test('says which input could not be computed', async () => {
    const { body } = await tried({
      hog: 'return 1',
      inputs_schema: [{ key: 'a', type: 'string' }],
      inputs: { a: { value: '{nobody.knows}' } },
    });
    expect(body.status).toBe('error');
    expect(body.errors[0]).toBe(
      `Error building inputs for event ${EVENT.uuid}: Input "a": Global variable not found: nobody.knows`,
    );
  });
});

describe('an error of a program names its place', () => {
  const errorOf = async (hog: string, more: object = {}) => {
    const { body } = await tried({ hog, ...more });
    expect(body.status).toBe('error');
    const [error] = body.errors as [string];
    const start = `Error executing function on event ${EVENT.uuid}: `;
    expect(error.startsWith(start)).toBe(true);
    expect(messages(body).some((one) => one.includes(error))).toBe(true);
    return error.slice(start.length);
  };

  test('in a function that it calls, after a request, and in a transformation', async () => {
    const inner = "fun broken(a) {\n  let b := a\n  return  [1][b]\n}\nprint('x')\n";
    expect(await errorOf(`${inner}return broken(0)`)).toBe(
      'line 3, column 11: Hog arrays start from index 1',
    );
    expect(await errorOf("let a := 1\n  throw Error('no')")).toBe('line 2, column 3: no');
    const later = "let answer := fetch('http://a.example/')\nprint(answer.status)\nlet x := nobody.knows";
    expect(await errorOf(later)).toBe('line 3, column 10: Global variable not found: nobody.knows');
    expect(await errorOf('let a := event\nreturn jsonParse(1, 2, 3)', { type: 'transformation' })).toBe(
      'line 2, column 8: Function jsonParse requires at most 1 arguments',
    );
  });

  test('that of the call, when a function of the language fails in it', async () => {
    const hog = 'let list := [1, 2]\nlet all := arrayMap(x -> [0][x - 1], list)\nreturn all';
    expect(await errorOf(hog)).toMatch(/^line 2, column 26: /);
    expect(await errorOf('return\n  arrayMap(1, [2])')).toMatch(/^line 2, column 3: /);
  });
});

describe('a program that does harm', () => {
  test.each([
    [
      'loops for ever',
      'while (true) { let a := 1 }',
      /Execution timed out after 0\.55 seconds\. Performed \d+ ops\./,
    ],
    [
      'allocates',
      "let a := 'x'\nwhile (true) { a := concat(a, a) }",
      /Memory limit of \d+ bytes exceeded|Execution timed out/,
    ],
    ['nests', 'fun f(n) { return f(n + 1) }\nreturn f(1)', /Call stack exceeded/],
    [
      'asks too often',
      `for (let i := 0; i < 9; i := i + 1) { fetch('http://a.b/') }`,
      /maximum number of async steps: 5/,
    ],
    ['looks for the host', 'return globalThis', /Global variable not found: globalThis/],
    ['looks for a constructor', "let a := {}\nreturn a.constructor.constructor('return process')()", /.+/],
  ])('and %s ends with a clear error', async (_what, hog, message) => {
    const { status, body } = await tried({ hog });
    expect(status).toBe(200);
    expect(body.status).toBe('error');
    expect(body.errors[0]).toMatch(message);
    expect(JSON.stringify(body)).not.toMatch(/at .*\.ts:\d+/);
  });

  test('prints at most 24 lines, and long ones are cut', async () => {
    const { body } = await tried({ hog: 'for (let i := 0; i < 40; i := i + 1) { print(i) }' });
    const lines = messages(body);
    expect(lines.filter((one) => one.startsWith('info: '))).toHaveLength(24);
    expect(lines[24]).toMatch(
      /^warn: Function exceeded maximum log entries\. No more logs will be collected\. Event: /,
    );
    const times = body.logs.map((one: { timestamp: string }) => one.timestamp);
    expect(new Set(times).size).toBe(times.length);
    const long = await tried({
      hog: "let a := 'x'\nfor (let i := 0; i < 15; i := i + 1) { a := concat(a, a) }\nprint(a)",
    });
    expect(long.body.logs[0].message).toBe(`${'x'.repeat(10_000)}... (truncated)`);
  });
});

describe('secrets in a test', () => {
  const schema = [{ key: 'token', type: 'string', secret: true }];
  const hog = `
print(inputs.token, {'nested': [concat('a', inputs.token)]})
let answer := fetch('${'URL'}', {'headers': {'Authorization': f'Bearer {inputs.token}'}, 'body': {'t': inputs.token}})
print(answer)
throw Error(concat('failed with ', inputs.token))`;

  test('are stored ones where the client leaves them out, and are shown nowhere', async () => {
    const program = hog.replace('URL', url('secret'));
    const made = await api.request(anna, 'POST', base(), {
      ...{ hog: program, inputs_schema: schema, inputs: { token: { value: 'geheim "1"' } } },
    });
    const { body } = await tried(
      { hog: program, inputs: { token: { secret: true } } },
      { mock_async_functions: false },
      made.json().id,
    );
    expect(arrived.at(-1)?.headers.authorization).toBe('Bearer geheim "1"');
    expect(body.status).toBe('error');
    expect(JSON.stringify(body)).not.toContain('geheim');
    expect(messages(body)[0]).toBe('info: ***REDACTED***, {"nested":["a***REDACTED***"]}');
  });

  test('that are short hide nothing that programs need, and encoded ones are hidden', async () => {
    const { body } = await tried({
      hog: "let answer := fetch('http://b.c/')\nprint(base64Encode(inputs.long))\nreturn answer",
      inputs_schema: [...schema, { key: 'long', type: 'string', secret: true }],
      inputs: { token: { value: 'a' }, long: { value: 'geheim-lang' } },
    });
    expect(body.result).toEqual({ status: 200, body: {} });
    expect(JSON.stringify(body)).not.toContain('Z2VoZWltLWxhbmc');
  });

  test('of integrations are put in only for the hosts of their kind', async () => {
    const made = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/integrations/`, {
      kind: 'bearer',
      config: { access_token: 'geheim-2', hosts: ['127.0.0.1'] },
    });
    expect(made.statusCode).toBe(201);
    const id = made.json().id as number;
    const configuration = (target: string) => ({
      hog: `print(inputs.service)\nreturn fetch('${target}', {'headers': {'Authorization': inputs.service.authorization}}).body`,
      inputs_schema: [{ key: 'service', type: 'integration', integration: 'bearer' }],
      inputs: { service: { value: id } },
    });
    const { body } = await tried(configuration(url('service')), { mock_async_functions: false });
    expect(arrived.at(-1)?.headers.authorization).toBe('Bearer geheim-2');
    expect(body.status).toBe('success');
    expect(JSON.stringify(body)).not.toContain('geheim');
    const count = arrived.length;
    const elsewhere = await tried(configuration(`http://localhost:${port}/`), {
      mock_async_functions: false,
    });
    expect(elsewhere.body.status).toBe('error');
    expect(elsewhere.body.errors[0]).toMatch(/localhost/);
    expect(arrived.length).toBe(count);
    const berta = await api.createTenant('Berta');
    const foreign = await api.request(
      berta,
      'POST',
      `/api/projects/${berta.projectId}/hog_functions/new/invocations/`,
      {
        ...{
          configuration: configuration(url('foreign')),
          globals: { event: EVENT },
          mock_async_functions: false,
        },
      },
    );
    expect(foreign.json().logs[0].message).toBe('null');
    expect(arrived.at(-1)?.headers.authorization).toBeUndefined();
  });
});

describe('the event of a test', () => {
  const row = {
    ...{ uuid: EVENT.uuid, event: 'paid', distinct_id: 'ada', timestamp: EVENT.timestamp, person_id: 'p1' },
    ...{ properties: '{"a":1}', person_properties: '{"email":"ada@x.io"}', elements_chain: '' },
  };

  test('can be a row', async () => {
    const { body } = await tried(
      { hog: 'return [event.properties.a, person.name]' },
      { globals: null, clickhouse_event: row },
    );
    expect(body.result).toEqual([1, 'ada@x.io']);
    const bad = await tried(
      { hog: 'return 1' },
      { globals: null, clickhouse_event: { ...row, properties: '[' } },
    );
    expect(bad.body).toMatchObject({ attr: 'clickhouse_event__properties' });
  });

  test('can be a stored one, or the newest that matches', async () => {
    const uuids = ['018f0000-0000-7000-8000-0000000000a1', '018f0000-0000-7000-8000-0000000000a2'];
    const captured = await api.request(null, 'POST', '/batch/', {
      api_key: anna.projectToken,
      batch: uuids.map((uuid, index) => ({
        ...{
          event: `stored ${index}`,
          distinct_id: 'eve',
          uuid,
          properties: { $set: { email: 'eve@x.io' } },
        },
        timestamp: new Date(Date.now() - 60_000 + index).toISOString(),
      })),
    });
    expect(captured.statusCode).toBe(200);
    const hog = 'return [event.event, person.properties.email]';
    const stored = await tried({ hog }, { globals: null, event_id: uuids[0] });
    expect(stored.body.result).toEqual(['stored 0', 'eve@x.io']);
    const newest = { globals: null, use_newest_event: true };
    expect((await tried({ hog }, newest)).body.result[0]).toBe('stored 1');
    const filters = { events: [{ id: 'stored 0', type: 'events' }] };
    expect((await tried({ hog, filters }, newest)).body.result[0]).toBe('stored 0');
    const none = await tried({ hog, filters: { events: [{ id: 'never' }] } }, newest);
    expect(none.body).toMatchObject({ attr: 'use_newest_event' });
    const unknown = await tried({ hog }, { globals: null, event_id: '018f0000-0000-7000-8000-0000000000a9' });
    expect(unknown.body).toMatchObject({ attr: 'event_id' });
  });

  test.each([
    ['no event', { globals: null }, null, 'Missing event'],
    ['globals without one', { globals: {} }, null, 'Missing event'],
    ['a bad invocation id', { invocation_id: 'x' }, 'invocation_id', 'Must be a valid UUID.'],
    [
      'no configuration',
      { configuration: undefined },
      'configuration',
      'This field is required unless `use_draft` is true.',
    ],
  ])('is refused: %s', async (_what, more, attr, detail) => {
    const { status, body } = await tried({ hog: 'return 1' }, more);
    expect([status, body.attr, body.detail]).toEqual([400, attr, detail]);
  });

  test('is not asked for if the configuration is wrong', async () => {
    const { status, body } = await tried({
      hog: 'return 1',
      inputs_schema: [{ key: 'url', type: 'string', required: true }],
      inputs: {},
    });
    expect([status, body.attr, body.detail]).toEqual([
      400,
      'configuration__inputs__url',
      'This field is required.',
    ]);
    const site = await tried({ hog: 'export function onLoad() {}', type: 'site_app' });
    expect(site.body.attr).toBe('type');
  });

  test('says what is wrong with a template once', async () => {
    const { body } = await tried({
      hog: 'return 1',
      inputs_schema: [{ key: 'url', type: 'string' }],
      inputs: { url: { value: '}{' } },
    });
    expect(body.detail).toBe('Invalid template: Unexpected end of the source (line 1, column 3)\n}{\n  ^');
  });
});

describe('what is shown of a test is bounded', () => {
  const long = "let long := 'x' for (let i := 0; i < 20; i := i + 1) { long := concat(long, long) }";

  test('however much a program prints', async () => {
    const { status, body } = await tried({
      hog: `${long} for (let i := 0; i < 10000; i := i + 1) { print(long) }`,
    });
    expect(status).toBe(200);
    expect(body.logs.filter(({ level }: { level: string }) => level === 'info')).toHaveLength(24);
    expect(body.logs[0].message).toHaveLength(10_000 + '... (truncated)'.length);
  });

  test('however long its result and its requests are', async () => {
    const hog = `${long}
for (let i := 0; i < 4; i := i + 1) { fetch('https://x.example', {'body': concat(long, long, long)}) }
return [long, long, long]`;
    const { status, body } = await tried({ hog });
    expect(status).toBe(200);
    expect(JSON.stringify(body).length).toBeLessThan(12 * 1024 * 1024);
    expect(body.invocations[0].fetches).toHaveLength(4);
    expect(body.invocations[0].fetches.at(-1).body).toMatch(/\(truncated\)$/);
    expect(body.result).toBe('... (truncated)');
  });

  test('a request with a body that is too large fails', async () => {
    const hog = `${long} return fetch('https://x.example', {'body': concat(long, long, long, long, long, long)})`;
    const { body } = await tried({ hog });
    expect(body.status).toBe('error');
    expect(body.result.body).toContain('the body is larger than 5 MB');
  });
});

test('while programs loop, other requests are answered', async () => {
  const looping = Array.from({ length: 6 }, () => tried({ hog: 'while (true) { let a := 1 }' }));
  let answered = 0;
  const all = Promise.all(looping).then((answers) => {
    expect(answers.every(({ body }) => body.status === 'error')).toBe(true);
    return answered;
  });
  for (let n = 0; n < 20; n += 1) {
    const { statusCode } = await api.request(anna, 'GET', `${base()}?limit=1`);
    expect(statusCode).toBe(200);
    answered += 1;
  }
  // Had the programs run on the thread that serves requests, they would have ended before the first answer.
  expect(await all).toBe(20);
});

describe('a test of a draft', () => {
  const schema = [
    { key: 'url', type: 'string' },
    { key: 'token', type: 'string', secret: true },
  ];
  const hog = (header: string) =>
    `return fetch(inputs.url, {'headers': {'authorization': concat('${header} ', inputs.token)}}).status`;
  const heard = async (id: string, more: object) => {
    arrived.length = 0;
    const payload = { globals: { event: EVENT }, mock_async_functions: false, ...more };
    const answer = await api.request(anna, 'POST', `${base()}${id}/invocations/`, payload);
    expect([answer.statusCode, answer.json().status]).toEqual([200, 'success']);
    return arrived.map((one) => one.headers.authorization);
  };
  const stage = (id: string, change: object) =>
    api.request(anna, 'PATCH', `${base()}${id}/?draft=true`, change);

  test('runs the draft, with its secrets and those that it keeps', async () => {
    const inputs = { url: { value: url() }, token: { value: 'live-token' } };
    const live = { hog: hog('live'), inputs_schema: schema, inputs };
    const { id } = (await api.request(anna, 'POST', base(), live)).json();
    await stage(id, { hog: hog('draft') });
    expect(await heard(id, { use_draft: true })).toEqual(['draft live-token']);
    expect(await heard(id, { configuration: {} })).toEqual(['live live-token']);
    await stage(id, { inputs: { ...inputs, token: { value: 'staged-token' } } });
    // What the configuration says does not matter.
    const both = { use_draft: true, configuration: { hog: 'return 1' } };
    expect(await heard(id, both)).toEqual(['draft staged-token']);
    expect(await heard(id, { configuration: {} })).toEqual(['live live-token']);
    const shown = await api.request(anna, 'POST', `${base()}${id}/invocations/`, {
      ...{ use_draft: true, globals: { event: EVENT } },
    });
    expect(shown.body).not.toMatch(/(staged|live)-token/);
  });

  test('is refused without a draft', async () => {
    const { id } = (await api.request(anna, 'POST', base(), { hog: 'return 1' })).json();
    for (const one of [id, 'new']) {
      const { status, body } = await tried({}, { use_draft: true }, one);
      expect([status, body.attr, body.detail]).toEqual([
        ...[400, 'use_draft', 'This function has no staged draft to test.'],
      ]);
    }
  });
});
