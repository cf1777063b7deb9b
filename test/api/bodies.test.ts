import { beforeAll, describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { acceptBodies, jsonShape } from '../../api/bodies.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { insertExportOf } from '../support/batch-export-rows.ts';
import { refusals } from '../support/refusals.ts';
import { fill, idsOf, managed } from '../support/routes.ts';

const api = apiForFile({ SLUICE_REFUSALS_PER_MINUTE: '0' });
let anna: Tenant;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  await insertExportOf(api.pool, anna);
});

const MIB = 1_048_576;
const send = async (payload: string | Buffer, type = 'application/json', key: Tenant | null = anna) => {
  const answer = await api.request(key, 'PATCH', '/api/users/@me/', payload, { 'content-type': type });
  return [answer.statusCode, answer.json()];
};
const nested = (depth: number) => `{"hedgehog_config":${'{"a":'.repeat(depth - 1)}1${'}'.repeat(depth)}`;

test('large bodies are parsed after the small ones that came with them', async () => {
  const app = Fastify();
  await acceptBodies(app);
  const order: string[] = [];
  app.post('/', ({ body }) => {
    const { name } = body as { name: string };
    order.push(name);
    return {};
  });
  await app.ready();
  const text = 'x'.repeat(64 * 1024);
  const bodies = [{ name: 'large 1', text }, { name: 'large 2', text }, { name: 'small' }];
  await Promise.all(bodies.map((payload) => app.inject({ method: 'POST', url: '/', payload })));
  await app.close();
  expect(order).toEqual(['small', 'large 1', 'large 2']);
});

describe('a body', () => {
  test.each([
    ['{', "Expected property name or '}' in JSON at position 1 (line 1 column 2)"],
    ['{"a":1,}', 'Expected double-quoted property name in JSON at position 7 (line 1 column 8)'],
    ["{'a':1}", "Expected property name or '}' in JSON at position 1 (line 1 column 2)"],
    ['NaN', '"NaN" is not valid JSON'],
    [nested(201), 'nested deeper than 200 levels'],
    ['['.repeat(500_000), 'nested deeper than 200 levels'],
    [`{"hedgehog_config":[${'1,'.repeat(24_998)}1]}`, 'more than 25000 values'],
    [`{"hedgehog_config":[${'{},'.repeat(30_000)}{}]}`, 'more than 25000 values'],
  ])('that is no JSON is refused, case %#', async (text, reason) => {
    expect(await send(text)).toEqual([400, refusals.parse(reason)]);
  });

  test('that is not UTF-8 is refused, one with a mark of its order is not', async () => {
    expect(await send(Buffer.from([0x7b, 0xff, 0x7d]))).toEqual([
      400,
      refusals.parse('the text is not UTF-8'),
    ]);
    expect((await send(Buffer.from('\ufeff{"first_name":"Mark"}')))[0]).toBe(200);
  });

  test('may be nested 200 deep, and what is stored comes back', async () => {
    const [status, body] = await send(nested(200));
    expect([status, JSON.stringify(body.hedgehog_config)]).toEqual([
      200,
      nested(200).slice('{"hedgehog_config":'.length, -1),
    ]);
  });

  test('may be empty or white, and is then nothing', async () => {
    for (const text of ['', ' \n', '{}']) expect((await send(text))[0]).toBe(200);
    const none = await api.request(anna, 'PATCH', '/api/users/@me/');
    expect(none.statusCode).toBe(200);
  });

  test('of one byte too many is refused, of the most bytes read', async () => {
    const most = `{"x":"${'x'.repeat(MIB - 8)}"}`;
    expect(most).toHaveLength(MIB);
    expect((await send(most))[0]).toBe(200);
    expect(await send(`${most} `)).toEqual([
      413,
      {
        type: 'invalid_request',
        code: 'request_too_large',
        detail: 'The request body is larger than 1048576 bytes.',
        attr: null,
      },
    ]);
  });

  test.each([
    'text/plain',
    'text/csv',
    'multipart/form-data; boundary=x',
    'application/xml',
    'x',
    'application/jsonx',
  ])('of the type %s is refused', async (type) => {
    expect(await send('{}', type)).toEqual([
      415,
      {
        type: 'invalid_request',
        code: 'unsupported_media_type',
        detail: `Unsupported media type "${type}" in request.`,
        attr: null,
      },
    ]);
  });

  test.each([
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'application/merge-patch+json',
    'application/json;',
  ])('of the type %s is read', async (type) => {
    expect((await send('{"first_name":"Typed"}', type))[1]).toMatchObject({ first_name: 'Typed' });
  });

  test.each([
    [
      '{"first_name":"a\\u0000b"}',
      'first_name',
      'null_characters_not_allowed',
      'Null characters are not allowed.',
    ],
    [
      '{"hedgehog_config":{"a":["x","\\u0000"]}}',
      'hedgehog_config__a__1',
      'null_characters_not_allowed',
      'Null characters are not allowed.',
    ],
    [
      '{"hedgehog_config":{"\\u0000":1}}',
      'hedgehog_config',
      'null_characters_not_allowed',
      'Null characters are not allowed.',
    ],
    [
      '{"first_name":"\\ud800"}',
      'first_name',
      'invalid_input',
      'The text is not valid Unicode: it has half of a surrogate pair.',
    ],
    [
      '{"first_name":"\\udc00\\ud800"}',
      'first_name',
      'invalid_input',
      'The text is not valid Unicode: it has half of a surrogate pair.',
    ],
    [
      '{"\\udfff":1}',
      null,
      'invalid_input',
      'The text is not valid Unicode: it has half of a surrogate pair.',
    ],
  ])('with text that Postgres cannot hold is refused by name: %s', async (text, attr, code, detail) => {
    expect(await send(text)).toEqual([400, refusals.field(attr, code, detail)]);
  });

  test('in a form is checked alike', async () => {
    const form = 'application/x-www-form-urlencoded';
    expect(await send('first_name=a%00b', form)).toEqual([
      400,
      refusals.field('first_name', 'null_characters_not_allowed', 'Null characters are not allowed.'),
    ]);
    expect((await send('first_name=%F0%9F%A6%94&theme_mode=dark', form))[1]).toMatchObject({
      first_name: '🦔',
      theme_mode: 'dark',
    });
    expect((await send('a=1&'.repeat(9_999), form))[0]).toBe(200);
    expect(await send('a=1&'.repeat(10_000), form)).toEqual([
      400,
      refusals.malformed('The form has more than 10000 fields.'),
    ]);
  });

  test('cannot reach the prototype of anything', async () => {
    const [status, body] = await send(
      '{"__proto__":{"first_name":"Polluted"},"hedgehog_config":{"__proto__":{"x":1},"constructor":{"prototype":{"y":1}},"toString":"z"}}',
    );
    expect(status).toBe(200);
    expect(body.first_name).not.toBe('Polluted');
    expect(JSON.stringify(body.hedgehog_config)).toBe('{"toString":"z","constructor":{"prototype":{"y":1}}}');
    expect([({} as { x?: number }).x, ({} as { y?: number }).y]).toEqual([undefined, undefined]);
  });

  test('with numbers beyond all measure is no fault of the server', async () => {
    expect(
      (await send('{"hedgehog_config":{"a":1e400,"b":-0,"c":9007199254740993}}'))[1].hedgehog_config,
    ).toEqual({
      a: null,
      b: 0,
      c: 9007199254740992,
    });
    expect((await send('{"set_current_team":1e400}'))[0]).toBe(400);
  });
});

describe('injection', () => {
  const HOSTILE = [
    "'; drop table organizations; --",
    "' or '1'='1",
    '$1',
    'a\r\nset-cookie: x=1',
    '\u2028\u202e<script>alert(1)</script>',
    '{{7*7}}',
    'null',
    '%s%n',
    '../../etc/passwd',
  ];

  test.each(HOSTILE)('a name is a name: %j', async (text) => {
    const created = await api.request(anna, 'POST', '/api/projects/', { name: text });
    expect([created.statusCode, created.json().name]).toEqual([201, text.trim()]);
    const organization = await api.request(anna, 'POST', '/api/organizations/', { name: text });
    expect([organization.statusCode, organization.json().name]).toEqual([201, text.trim()]);
    expect(organization.json().slug).toMatch(/^[a-z0-9_-]{1,48}$/);
    expect(created.headers['set-cookie']).toBeUndefined();
    const { rows } = await api.pool.query('select count(*)::int as count from organizations');
    expect(rows[0].count).toBeGreaterThan(0);
  });

  test('in every parameter of every path and query is no fault of the server', async () => {
    const answers: [string, string, number][] = [];
    for (const text of HOSTILE) {
      const id = encodeURIComponent(text);
      const places = { organization_id: id, project_id: id, user_uuid: id, user_id: id, key_id: id };
      const ids = {
        ...places,
        id,
        run_id: id,
        backfill_id: id,
        version: id,
        invocation_id: id,
        replay_id: id,
        rollout_id: id,
        query_id: id,
        key: id,
      };
      for (const one of managed(api.app)) {
        for (const path of [
          fill(one.path, ids),
          `${fill(one.path, idsOf(anna))}?limit=${id}&offset=${id}&order=${id}&x=${id}`,
        ]) {
          if (!path.includes('?') || one.method === 'GET') {
            const answer = await api.request(anna, one.method, path, one.hasBody ? {} : undefined);
            if (answer.statusCode >= 500) answers.push([one.method, path, answer.statusCode]);
          }
        }
      }
    }
    expect(answers).toEqual([]);
  });
});

test('the depth and the values of JSON are counted without being led astray by strings', () => {
  const texts = [
    '1',
    '[]',
    '[[]]',
    '{"a":[{}]}',
    '"[[["',
    '["\\"[["]',
    '["\\\\",[]]',
    '[[],[]]',
    '["a,b",1,2]',
  ];
  expect(texts.map((text) => jsonShape(text).depth)).toEqual([0, 1, 2, 3, 0, 1, 2, 2, 1]);
  expect(texts.map((text) => jsonShape(text).values)).toEqual([1, 2, 3, 4, 1, 2, 4, 5, 4]);
});

test('a prototype is no field, however its name is written', async () => {
  for (const name of ['__proto__', '\\u005f_proto__', '__\\u0070roto__']) {
    const [status, body] = await send(`{"hedgehog_config":{"${name}":{"x":1},"y":2}}`);
    expect([status, body.hedgehog_config]).toEqual([200, { y: 2 }]);
  }
});
