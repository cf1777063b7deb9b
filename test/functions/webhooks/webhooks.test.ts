import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { json, webhooksOf } from './support.ts';

const api = apiForFile({ SLUICE_EGRESS_ALLOW: '127.0.0.1' });
let host = '';
const hooks = webhooksOf(api, () => host);
let anna: Tenant;

beforeAll(async () => {
  host = await api.app.listen({ port: 0, host: '127.0.0.1' });
  anna = await api.createTenant('Anna');
});

const returning = (expression: string) => ({ hog: `return ${expression}` });
const answering = (answer: string) => returning(`{'httpResponse': ${answer}}`);

describe('the template', () => {
  test('makes an event of the project, committed before the answer', async () => {
    const id = await hooks.create(anna, {
      template_id: 'template-source-webhook',
      inputs: {
        ...{ event: { value: '{request.body.event}' }, distinct_id: { value: '{request.body.who}' } },
        properties: {
          value: { amount: '{request.body.amount}', $ip: '{request.ip}', $source_url: '{source.url}' },
        },
        auth_header: { value: 'Bearer s3cret-header' },
        debug: { value: true },
      },
    });
    const body = { event: 'order paid', who: 'ada', amount: 5 };
    expect(await hooks.ask(id, json(body))).toMatchObject({ status: 401, text: 'Unauthorized' });
    const given = { authorization: 'Bearer s3cret-header' };
    expect(await hooks.ask(id, json(body, given))).toMatchObject({ status: 200, text: '{"status":"ok"}' });
    expect(await hooks.events(anna)).toMatchObject([
      {
        ...{ event: 'order paid', distinct_id: 'ada' },
        properties: {
          ...{ amount: 5, $ip: '127.0.0.1', $hog_function_execution_count: 1 },
          $source_url: `/project/${anna.projectId}/functions/${id}`,
        },
      },
    ]);
    expect(await hooks.ask(id, json({ who: 'ada' }, given))).toMatchObject({
      status: 400,
      text: '{"error":"\\"event\\" could not be parsed correctly"}',
    });
    const counts = await eventually(async () => {
      const found = await hooks.counts(id);
      return (found['success succeeded'] ?? 0) >= 3 && found;
    });
    expect(counts).toEqual({ 'success succeeded': 3, 'other triggered': 3 });
    const logs = await eventually(async () => {
      const found = await hooks.logs(id);
      return found.length >= 9 && found;
    });
    expect(logs).toEqual(
      expect.arrayContaining([
        ['info', 'Incoming request:, {"event":"order paid","who":"ada","amount":5}'],
        ['warn', 'Responded with response status - 401, reason: Unauthorized'],
        [
          'warn',
          'Responded with response status - 400, reason: {"error":"\\"event\\" could not be parsed correctly"}',
        ],
      ]),
    );
    expect(JSON.stringify(logs)).not.toContain('s3cret-header');
    expect(logs.filter(([, message]) => message.startsWith('Function completed in'))).toHaveLength(3);
  });

  test('refuses another method', async () => {
    const id = await hooks.create(anna, {
      template_id: 'template-source-webhook',
      inputs: { event: { value: 'a' }, distinct_id: { value: 'b' } },
    });
    expect(await hooks.ask(id, { method: 'GET' })).toMatchObject({ status: 405, text: 'Method not allowed' });
  });
});

describe('a request', () => {
  test('is seen without what belongs to the way it took', async () => {
    const id = await hooks.create(
      anna,
      answering("{'status': 201, 'body': {'r': request, 'p': project, 's': source, 'e': event.event}}"),
    );
    const { status, text, headers } = await hooks.ask(id, {
      ...json(
        { a: [1, { b: 2 }] },
        {
          'x-own': '1',
          cookie: 'a=b',
          referer: 'https://x.example/',
          'x-forwarded-for': '1.2.3.4',
          'x-forwarded-host': 'h',
          'x-real-ip': '1.2.3.4',
          forwarded: 'for=1.2.3.4',
          'true-client-ip': '1.2.3.4',
          'x-csrftoken': 'c',
          'proxy-authorization': 'p',
        },
      ),
      query: '?one=1&two=a&two=b',
    });
    expect(status).toBe(201);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    const { r, p, s, e } = JSON.parse(text);
    expect(r).toMatchObject({
      ...{ method: 'POST', query: { one: '1', two: 'a,b' }, ip: '127.0.0.1' },
      ...{ body: { a: [1, { b: 2 }] }, stringBody: '{"a":[1,{"b":2}]}' },
    });
    expect(r.headers['x-own']).toBe('1');
    expect(Object.keys(r.headers)).not.toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^(?:x-forwarded|cookie|referer|x-real|forwarded|true-|x-csrf|proxy-)/),
      ]),
    );
    expect(p).toEqual({ id: anna.projectId, name: '', url: '' });
    expect(s.url).toBe(`/project/${anna.projectId}/functions/${id}`);
    expect(e).toBe('$incoming_webhook');
  });

  test.each([
    ['form', 'application/x-www-form-urlencoded', 'a=1&b=x+y', { a: '1', b: 'x y' }],
    ['text', 'text/plain', 'hello', 'hello'],
    ['JSON of another name', 'application/cloudevents+json; charset=utf-8', '{"a":1}', { a: 1 }],
    ['nothing', 'application/json', '', {}],
  ])('with %s', async (_name, type, body, expected) => {
    const id = await hooks.create(anna, answering("{'status': 200, 'body': {'b': request.body}}"));
    const { text } = await hooks.ask(id, { body, headers: { 'content-type': type } });
    expect(JSON.parse(text)).toEqual({ b: expected });
  });

  test.each([
    ['{"a":', 'The body is not valid JSON.'],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'The body nests deeper than 200 levels.'],
  ])('that cannot be read is refused: %#', async (body, error) => {
    const id = await hooks.create(anna, returning('1'));
    const answer = await hooks.ask(id, { body, headers: { 'content-type': 'application/json' } });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([400, { error }]);
    expect(await hooks.ask(id, json({}))).toMatchObject({ status: 200 });
  });

  test('larger than 512,000 bytes is refused, one of this size is not', async () => {
    const id = await hooks.create(
      anna,
      answering("{'status': 200, 'body': toString(length(request.stringBody))}"),
    );
    const sized = (bytes: number) => ({ body: 'x'.repeat(bytes), headers: { 'content-type': 'text/plain' } });
    expect(await hooks.ask(id, sized(512_000))).toMatchObject({ status: 200, text: '512000' });
    expect(await hooks.ask(id, sized(512_001))).toMatchObject({
      status: 413,
      text: '{"error":"Request entity too large"}',
    });
  });

  test('GET, .gif and HEAD, which runs nothing', async () => {
    const id = await hooks.create(anna, {
      hog: `postHogCapture({'event': 'seen by ' || request.method, 'distinct_id': 'pixel'})
        return {'httpResponse': {'status': 200, 'contentType': 'image/gif', 'isBase64Encoded': true, 'body': 'R0lGODlhAQABAAAAACw='}}`,
    });
    const picture = await hooks.ask(`${id}.gif`, { method: 'GET' });
    expect(picture).toMatchObject({ status: 200, text: expect.stringMatching(/^GIF89a/) });
    expect(picture.headers.get('content-type')).toBe('image/gif');
    expect((await hooks.ask(id, { method: 'HEAD' })).status).toBe(404);
    const seen = (await hooks.events(anna)).filter(({ distinct_id: who }) => who === 'pixel');
    expect(seen.map(({ event }) => event)).toEqual(['seen by GET']);
  });
});

describe('an answer', () => {
  test.each([
    ["{'status': 202, 'body': {'a': 1}}", 202, 'application/json; charset=utf-8', '{"a":1}'],
    ["{'status': 200, 'body': '<b>', 'contentType': 'text/html'}", 200, 'text/plain; charset=utf-8', '<b>'],
    [
      "{'status': 200, 'body': 'a,b', 'contentType': 'text/csv; header=present'}",
      200,
      'text/csv; charset=utf-8',
      'a,b',
    ],
    [
      "{'status': 200, 'body': 'aGk=', 'isBase64Encoded': true, 'contentType': 'image/svg+xml'}",
      200,
      'application/octet-stream',
      'hi',
    ],
    ["{'status': 200, 'body': 7}", 200, null, ''],
    ["{'status': 'x', 'body': 'a'}", 500, 'text/plain; charset=utf-8', 'a'],
    ["{'status': 1000, 'body': 'a'}", 500, 'text/plain; charset=utf-8', 'a'],
    ["{'status': 101, 'body': 'a'}", 500, 'text/plain; charset=utf-8', 'a'],
  ])('%s', async (given, status, type, text) => {
    const id = await hooks.create(anna, answering(given));
    const answer = await hooks.ask(id, json({}));
    expect([answer.status, answer.headers.get('content-type'), answer.text]).toEqual([status, type, text]);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('content-security-policy')).toBe("default-src 'none'");
  });

  test('of a program without one is ok, of one that fails an error that is logged', async () => {
    const fine = await hooks.create(anna, returning("'anything'"));
    expect(await hooks.ask(fine, json({}))).toMatchObject({ status: 200, text: '{"status":"ok"}' });
    const failing = await hooks.create(anna, { hog: "throw Error('broken')" });
    expect(await hooks.ask(failing, json({}))).toMatchObject({
      status: 500,
      text: '{"status":"Unhandled error"}',
    });
    const endless = await hooks.create(anna, { hog: 'while (true) {}' });
    expect(await hooks.ask(endless, json({}))).toMatchObject({
      status: 500,
      text: '{"status":"Unhandled error"}',
    });
    await eventually(async () => (await hooks.counts(endless))['failure failed'] === 1);
    await eventually(async () => (await hooks.logs(failing)).length > 0);
    expect(await hooks.logs(failing)).toEqual([['error', expect.stringContaining('broken')]]);
  });
});

describe('which function', () => {
  const gone = { status: 404, text: '{"error":"Not found"}' };

  test('unknown, disabled, deleted, or of another type: 404', async () => {
    const destination = await hooks.create(anna, { type: 'destination', hog: 'return 1' });
    for (const id of ['nothing', '0197f2a0-0000-7000-8000-000000000000', destination, `${destination}.gif`]) {
      expect(await hooks.ask(id, json({}))).toMatchObject(gone);
    }
    const id = await hooks.create(anna, returning('1'));
    const status = async () => (await hooks.ask(id, json({}))).status;
    expect(await status()).toBe(200);
    await hooks.change(anna, id, { enabled: false });
    await eventually(async () => (await status()) === 404);
    await hooks.change(anna, id, { enabled: true });
    await eventually(async () => (await status()) === 200);
    await hooks.change(anna, id, { deleted: true });
    await eventually(async () => (await status()) === 404);
  });

  test('a change counts for the next request; an event goes to the project of the function', async () => {
    const [one, two] = [await api.createTenant('One'), await api.createTenant('Two')];
    const capturing = (name: string) => ({
      hog: `postHogCapture({'event': '${name}', 'distinct_id': 'x', 'properties': {'token': '${two.projectToken}'}})`,
    });
    const id = await hooks.create(one, capturing('first'));
    await hooks.ask(id, json({ api_key: two.projectToken, token: two.projectToken }));
    await hooks.change(one, id, capturing('second'));
    await eventually(async () => {
      await hooks.ask(id, json({}));
      return (await hooks.events(one)).some(({ event }) => event === 'second');
    });
    expect((await hooks.events(one))[0]?.event).toBe('first');
    expect(await hooks.events(two)).toEqual([]);
  });

  test('a project that wants no addresses stores none', async () => {
    const tenant = await api.createTenant('Private');
    await api.pool.query('update projects set anonymize_ips = true where id = $1', [tenant.projectId]);
    const id = await hooks.create(tenant, {
      hog: "postHogCapture({'event': 'a', 'distinct_id': 'x', 'properties': {'$ip': request.ip, 'b': 1}})",
    });
    await eventually(async () => {
      await hooks.ask(id, json({}));
      const [newest] = (await hooks.events(tenant)).slice(-1);
      return newest !== undefined && newest.properties.$ip === undefined;
    });
  });
});
