import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { filesWorldForFile, json, write } from './support.ts';

const world = filesWorldForFile({ SLUICE_EGRESS_ALLOW: '127.0.0.1' });
const UUID = '01890000-0000-7000-8000-000000000001';
let server: Server;
let hook: string;
const bodies: string[] = [];

beforeAll(async () => {
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    response.writeHead(request.url === '/broken' ? 503 : 200).end('{"ok":true}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  hook = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const captured = await world.api.request(null, 'POST', '/batch/', {
    api_key: world.tenant.projectToken,
    batch: [
      {
        ...{ event: 'paid', uuid: UUID, distinct_id: 'ada', properties: { amount: 5 } },
        timestamp: new Date(Date.now() - 60_000).toISOString(),
      },
    ],
  });
  expect(captured.statusCode).toBe(200);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const file = (name: string, folder: string, value: unknown): string => {
  const at = path.join(folder, name);
  writeFileSync(at, typeof value === 'string' ? value : JSON.stringify(value));
  return at;
};
const PAID = { event: 'paid', distinct_id: 'ada', properties: { amount: 5 } };
/** Runs a program with an event, or with what the options say. */
const tried = async (program: string, definition?: object, args: string[] = [], env = {}) => {
  const folder = world.folder();
  const one = write(folder, 'one', program, definition);
  const event = args.some((arg) => /^--(event|newest)/.test(arg))
    ? []
    : ['--event-file', file('event.data', folder, PAID)];
  return { ...(await world.run(['test', one, ...event, ...args], env)), file: one, folder };
};

describe('npx sluice functions test', () => {
  test('shows the result, the log and every request, and ends with 0', async () => {
    const before = bodies.length;
    const definition = {
      name: 'One',
      inputs_schema: [{ key: 'url', type: 'string' }],
      inputs: { url: { value: `${hook}/{event.event}` } },
    };
    const program =
      "print('paid', event.properties.amount)\nlet a := fetch(inputs.url, {'body': {'n': 1}})\nreturn a.status";
    const { code, stdout, file: at } = await tried(program, definition);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^success {2}/);
    for (const line of [
      at,
      '\n  info   paid, 5\n',
      `\n  POST ${hook}/paid → 200 (not sent)\n`,
      '\n    > {"n":1}\n',
      '\n  result: 200\n',
    ]) {
      expect(stdout).toContain(line);
    }
    expect(bodies.length).toBe(before);
    const real = await tried(program, definition, ['--real']);
    expect(real.stdout).toMatch(/→ 200, \d+ ms\n[\s\S]*< \{"ok":true\}\n/);
    expect(bodies.slice(before)).toEqual(['{"n":1}']);
  });

  test('takes a stored event by its uuid, and the newest that matches', async () => {
    const program = 'return [event.uuid, event.distinct_id]';
    const stored = await tried(program, undefined, ['--event', UUID, '--json']);
    expect(JSON.parse(stored.stdout)).toMatchObject({ status: 'success', result: [UUID, 'ada'] });
    expect((await tried(program, undefined, ['--newest'])).stdout).toContain(UUID);
    const filters = { events: [{ id: 'never', type: 'events' }] };
    const none = await tried(program, { name: 'x', filters }, ['--newest']);
    expect(none).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('matches the filters'),
    });
    const unknown = await tried(program, undefined, ['--event', UUID.replace('1', '2')]);
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('no event with the uuid') });
  });

  test('ends with 1 if the program or a request fails, and with 3 if the filters do not match', async () => {
    const thrown = await tried("throw Error('no such order')");
    expect(thrown).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^error {2}[\s\S]*one\.hog: .*no such order/),
    });
    const broken = await tried(`return fetch('${hook}/broken').status`, undefined, ['--real']);
    expect(broken).toMatchObject({ code: 1, stdout: expect.stringContaining(`POST ${hook}/broken → 503`) });
    const filters = { events: [{ id: 'other', type: 'events' }] };
    expect(await tried('return 1', { name: 'x', filters })).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^skipped {2}/),
    });
  });

  test('shows where a program does not compile', async () => {
    const { code, stderr, file: at } = await tried('let a := 1\nlet x := ;');
    expect([code, stderr]).toEqual([
      1,
      `error: ${at}:2:10: Hog code has errors. Unexpected ';'\n    let x := ;\n             ^\n`,
    ]);
  });

  test('uses the secrets that the server has, or those of the environment', async () => {
    const definition = {
      ...{ name: 'Keeps a secret', inputs_schema: [{ key: 'token', type: 'string', secret: true }] },
      inputs: { token: { env: 'TOKEN' } },
    };
    const program = "print(inputs.token)\nreturn inputs.token = 'tok-998877'";
    const { code, stderr } = await tried(program, definition);
    expect([code, stderr]).toEqual([2, expect.stringContaining('the variable TOKEN is not set')]);
    const given = await tried(program, definition, [], { TOKEN: 'tok-998877' });
    expect(given).toMatchObject({ code: 0, stdout: expect.stringContaining('result: true') });
    expect(given.stdout).not.toContain('tok-998877');
    await world.run(['push', given.folder], { TOKEN: 'tok-998877' });
    expect(json(given.folder, 'one.json').id).toEqual(expect.any(String));
    const kept = await world.run(['test', given.file, '--newest']);
    expect(kept).toMatchObject({ code: 0, stdout: expect.stringContaining('result: true') });
  });

  test.each<[what: string, args: string[], message: string]>([
    ['two events', ['--newest', '--event', UUID], 'Choose the event'],
    ['a uuid that is none', ['--event', 'x'], '"x" is not a uuid'],
    ['an event file that is missing', ['--event-file', '/nowhere.json'], 'There is no file /nowhere.json'],
    ['both ways of requests', ['--newest', '--mock', '--real'], '--mock or --real'],
    ['an unknown option', ['--newest', '--nope'], "unknown option '--nope'"],
    ['an expectation that is missing', ['--newest', '--expect', '/nowhere.json'], 'no file /nowhere.json'],
  ])('refuses %s as wrong use', async (_what, args, message) => {
    const { code, stderr } = await tried('return 1', undefined, args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test('refuses files that hold no event or no expectation', async () => {
    const folder = world.folder();
    const no = await tried('return 1', undefined, ['--event-file', file('e', folder, { name: 'paid' })]);
    expect(no).toMatchObject({ code: 2, stderr: expect.stringContaining('this is no event') });
    const broken = await tried('return 1', undefined, ['--event-file', file('b', folder, '{\n "event": }')]);
    expect(broken).toMatchObject({ code: 2, stderr: expect.stringMatching(/b:2:11: This is not JSON/) });
    const wrong = await tried('return 1', undefined, ['--expect', file('w', folder, { results: 1 })]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('"results"') });
    expect((await world.run(['test', path.join(folder, 'none.hog'), '--newest'])).code).toBe(2);
  });
});

describe('--expect', () => {
  const program =
    "print('hello')\nfetch('https://example.com/a', {'headers': {'X-A': 'b', 'X-C': 'd'}, 'body': {'n': [1, {'m': 2}]}})\nreturn {'sum': 3, 'list': [1, 2]}";
  const compared = async (expected: object, text = program, definition?: object) => {
    const folder = world.folder();
    return tried(text, definition, ['--expect', file('expected', folder, expected)]);
  };

  test('is content with what the test did', async () => {
    const { code, stdout } = await compared({
      status: 'success',
      result: { list: [1, 2], sum: 3 },
      fetches: [
        {
          ...{ method: 'POST', url: 'https://example.com/a', headers: { 'x-a': 'b' }, status: 200 },
          body: { n: [1, { m: 2 }] },
        },
      ],
      captured: [],
      logs: ['hello'],
    });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/as expected\n$/)]);
    expect((await compared({ fetches: [{ body: '{"n":[1,{"m":2}]}' }] })).code).toBe(0);
  });

  test('shows each place that differs, and ends with 1', async () => {
    const { code, stdout } = await compared({
      result: { sum: 4, list: [1, 2, 3], more: null },
      fetches: [
        { url: 'https://example.com/b', headers: { 'X-A': 'c', 'X-Z': 'z' }, body: { n: [1, { m: 3 }] } },
      ],
    });
    expect(code).toBe(1);
    expect(stdout.slice(stdout.indexOf('not as expected:'))).toBe(
      [
        'not as expected:',
        '  result.sum: expected 4, got 3',
        '  result.list[2]: expected 3, got nothing',
        '  result.more: expected null, got nothing',
        '  fetches[0].url: expected "https://example.com/b", got "https://example.com/a"',
        '  fetches[0].headers.x-a: expected "c", got "b"',
        '  fetches[0].headers.x-z: expected "z", got nothing',
        '  fetches[0].body.n[1].m: expected 3, got 2',
        '',
      ].join('\n'),
    );
    expect((await compared({ fetches: [] })).stdout).toContain('fetches: expected 0, got 1');
    const { stdout: said } = await compared({ logs: ['bye', 'hello'] });
    expect(said).toContain('not as expected:\n  logs[0]: no message "bye"\n');
    const order = await compared({ logs: ['hello', 'hello'] });
    expect(order.stdout).toContain('  logs[1]: no message "hello" after the ones before\n');
  });

  test('may expect an error, or that the filters do not match', async () => {
    expect((await compared({ status: 'error' }, "throw Error('x')")).code).toBe(0);
    expect((await compared({ status: 'success' }, "throw Error('x')")).code).toBe(1);
    const filters = { events: [{ id: 'other', type: 'events' }] };
    expect((await compared({ status: 'skipped' }, 'return 1', { name: 'x', filters })).code).toBe(0);
    expect((await compared({ result: null }, 'return 1', { name: 'x', filters })).code).toBe(3);
  });
});
