import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { reading } from '../../db/reading.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { previewFunction } from '../../functions/commands/preview.ts';
import { createFunctionCompiler } from '../../functions/compiler.ts';
import { NO_SECRETS } from '../../functions/reads/secrets.ts';
import { createRunner } from '../../functions/runner.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { reservePort } from '../support/ports.ts';
import { type EventFields, insertEvents } from '../support/rows.ts';

const api = apiForFile({ SLUICE_EGRESS_ALLOW: '127.0.0.1' });
let anna: Tenant;
let server: Server;
let port: number;
let arrived = 0;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  port = await reservePort();
  server = createServer((_request, response) => {
    arrived += 1;
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const START = Date.parse('2026-03-01T00:00:00Z');
const at = (seconds: number) => new Date(START + seconds * 1_000).toISOString().replace('.000', '');
/** A range of its own for each test. */
const days = (day: number) => ({
  after: new Date(START + day * 86_400_000).toISOString(),
  before: new Date(START + (day + 1) * 86_400_000).toISOString(),
});
const inDay = (day: number, seconds: number) => at(day * 86_400 + seconds);
const base = (tenant = anna) => `/api/projects/${tenant.projectId}/hog_functions/`;

const store = (tenant: Tenant, events: Omit<EventFields, 'project_id'>[]) =>
  insertEvents(
    api.pool,
    events.map((one) => ({ project_id: tenant.projectId, ...one })),
  );

const previewed = async (body: object, id = 'new', tenant = anna) => {
  const answer = await api.request(tenant, 'POST', `${base(tenant)}${id}/preview/`, body);
  return { status: answer.statusCode, body: answer.json() };
};
const created = async (fields: object): Promise<string> => {
  const answer = await api.request(anna, 'POST', base(), fields);
  expect(answer.statusCode).toBe(201);
  return answer.json().id;
};
const hook = (path = '') => `http://127.0.0.1:${port}/${path}`;
const sender = (text = 'event.event') => ({
  hog: `fetch(inputs.url, {'body': {'text': ${text}, 'id': event.uuid}})`,
  inputs_schema: [{ key: 'url', type: 'string' }],
  inputs: { url: { value: hook() } },
});

describe('a preview', () => {
  beforeAll(() =>
    store(anna, [
      ...Array.from({ length: 30 }, (_, n) => ({
        ...{ timestamp: inDay(0, n), event: n % 3 === 0 ? 'paid' : 'seen', distinct_id: `user ${n}` },
        properties: { amount: n },
        person_properties: { email: n % 2 ? 'ada@x.io' : 'eve@y.io' },
      })),
      { timestamp: inDay(1, 0), event: 'paid' },
    ]),
  );

  test('counts the events that match, and shows what would be sent for the newest', async () => {
    const { status, body } = await previewed({
      ...days(0),
      configuration: { ...sender(), filters: { events: [{ id: 'paid', type: 'events' }] } },
      sample: 2,
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...days(0),
      searched: { events: 30, too_large: 0, is_complete: true, oldest: at(0) },
      proposed: { matched: 10, invocations: 10, masked: 0, failed: 0, errors: [] },
      ...{ running: null, matches: null, is_sample_complete: true, warnings: [] },
    });
    expect(body.sample.map((one: { event: object }) => one.event)).toMatchObject([
      { event: 'paid', distinct_id: 'user 27', timestamp: at(27) },
      { event: 'paid', distinct_id: 'user 24' },
    ]);
    const [{ proposed, running, differences, event }] = body.sample;
    expect([running, differences]).toEqual([null, null]);
    expect(proposed).toMatchObject({ status: 'success', masked: false });
    const [sent] = proposed.invocations[0].fetches;
    expect(sent).toMatchObject({ url: hook(), method: 'POST', mocked: true });
    expect(JSON.parse(sent.body)).toEqual({ text: 'paid', id: event.uuid });
  });

  test('counts conditions on properties and persons, and events of any name', async () => {
    const filters = {
      properties: [
        { key: 'amount', value: 20, operator: 'gte', type: 'event' },
        { key: 'email', value: 'ada@x.io', type: 'person' },
      ],
    };
    const { body } = await previewed({ ...days(0), configuration: { ...sender(), filters } });
    expect(body.proposed.matched).toBe(5);
    expect(body.searched.events).toBe(30);
  });

  test('sends nothing', async () => {
    await previewed({ ...days(0), configuration: sender(), sample: 20 });
    expect(arrived).toBe(0);
  });

  test('looks at the newest events if there are more than it may look at', async () => {
    const { body } = await previewed({ ...days(0), configuration: sender(), max_events: 12, sample: 0 });
    expect(body.searched).toEqual({ events: 12, too_large: 0, is_complete: false, oldest: at(18) });
    expect(body.proposed.matched).toBe(12);
    const rest = await previewed({
      ...{ after: at(0), before: body.searched.oldest },
      ...{ configuration: sender(), sample: 0 },
    });
    expect(rest.body.proposed.matched).toBe(18);
    const exact = await previewed({ ...days(0), configuration: sender(), max_events: 30, sample: 0 });
    expect(exact.body.searched).toMatchObject({ events: 30, is_complete: true });
  });

  test('gives answers that the caller decides', async () => {
    const hog = "let a := fetch(inputs.url, {}) let b := fetch('https://other.example') return [a, b.status]";
    const { body } = await previewed({
      ...days(0),
      configuration: { ...sender(), hog },
      mock_responses: [{ url: hook(), method: 'post', status: 429, body: { wait: 5 } }],
      sample: 1,
    });
    const [{ proposed }] = body.sample;
    expect(proposed.result).toEqual([{ status: 429, body: { wait: 5 } }, 200]);
    expect(proposed.status).toBe('error');
  });

  test('counts filters that fail, and says why', async () => {
    const filters = {
      properties: [{ type: 'hogql', key: "if(event = 'paid', throwing(1), true)", value: null }],
    };
    const { body } = await previewed({ ...days(0), configuration: { ...sender(), filters } });
    expect(body.proposed).toMatchObject({ matched: 20, failed: 10 });
    expect(body.proposed.errors).toEqual([{ message: expect.stringContaining('throwing'), events: 10 }]);
  });

  test('shows the events that a transformation would make of the stored ones', async () => {
    const hog =
      "let e := event e.properties.amount := e.properties.amount * 2 e.properties.who := person ?? 'nobody' return e";
    const seen = await previewed({
      ...days(0),
      configuration: { type: 'transformation', hog: hog.replace("person ?? 'nobody'", "'nobody'") },
      sample: 1,
    });
    expect(seen.body.sample[0].proposed.result.properties).toMatchObject({ amount: 58, who: 'nobody' });
    const person = await previewed({
      ...days(0),
      configuration: { type: 'transformation', hog },
      sample: 1,
    });
    // Transformations run before an event has a person.
    expect(person.body.sample[0].proposed.errors[0]).toContain('person');
  });

  test('leaves out events that are too large, and says so', async () => {
    await store(anna, [
      { timestamp: inDay(2, 0), properties: { long: 'x'.repeat(1024 * 1024) } },
      { timestamp: inDay(2, 1) },
    ]);
    const { body } = await previewed({ ...days(2), configuration: sender() });
    expect(body.searched).toMatchObject({ events: 2, too_large: 1, is_complete: true });
    expect(body.proposed.matched).toBe(1);
  });

  test('goes through more events than a page holds', async () => {
    const many = Array.from({ length: 4_100 }, (_, n) => ({
      timestamp: inDay(3, Math.floor(n / 3)),
      event: n % 2 ? 'odd' : 'even',
    }));
    await store(anna, many);
    for (const filters of [
      { events: [{ id: 'odd', type: 'events' }] },
      { properties: [{ type: 'hogql', key: "event = 'odd'" }] },
    ]) {
      const { body } = await previewed({ ...days(3), configuration: { ...sender(), filters }, sample: 0 });
      expect(body.searched).toMatchObject({ events: 4_100, is_complete: true });
      expect(body.proposed.matched).toBe(2_050);
    }
  });

  test('sees only events of its project', async () => {
    const bob = await api.createTenant('Bob');
    const { body } = await previewed({ ...days(0), configuration: sender() }, 'new', bob);
    expect(body.searched).toEqual({ events: 0, too_large: 0, is_complete: true, oldest: null });
    const id = await created({ ...sender(), name: 'of Anna' });
    const foreign = await previewed({ ...days(0) }, id, bob);
    expect(foreign.status).toBe(404);
  });

  test.each([
    [
      'a range that ends before it begins',
      { after: at(9), before: at(1) },
      'after',
      /must lie before its end/,
    ],
    ['a time that is none', { after: 'soon' }, 'after', /ISO 8601/],
    ['too large a sample', { sample: 21 }, 'sample', /20/],
    ['a program that does not compile', { configuration: { hog: 'let' } }, 'configuration__hog', /errors/],
    [
      'a type that does not run for events',
      { configuration: { hog: 'return 1', type: 'source_webhook' } },
      'type',
      /do not run for stored events/,
    ],
    ['an answer without a URL', { mock_responses: [{}] }, 'mock_responses__0__url', /required/],
    ['no function', { configuration: undefined }, 'configuration', /no stored function/],
  ])('is refused: %s', async (_what, more, attr, detail) => {
    const { status, body } = await previewed({ ...days(0), configuration: sender(), ...more });
    expect([status, body.attr]).toEqual([400, attr]);
    expect(body.detail).toMatch(detail);
  });
});

describe('masking in a preview', () => {
  const masking = (more: object = {}) => ({ ttl: 60, hash: '{event.distinct_id}', ...more });

  // Two users, an event every 10 seconds for 5 minutes.
  beforeAll(() =>
    store(
      anna,
      Array.from({ length: 30 }, (_, n) => ({
        ...{ timestamp: inDay(10, n * 10), event: 'ping', distinct_id: `user ${n % 2}` },
      })),
    ),
  );

  test('is applied to all events, not only to the sample', async () => {
    const { body } = await previewed({
      ...days(10),
      configuration: { ...sender(), masking: masking() },
      sample: 3,
    });
    // Each user has an event every 20 seconds: the first of every three goes through.
    expect(body.proposed).toMatchObject({ matched: 30, invocations: 30, masked: 20 });
    expect(body.sample.map((one: { proposed: { masked: boolean } }) => one.proposed.masked)).toEqual([
      false,
      false,
      false,
    ]);
    expect(body.sample.map((one: { event: object }) => one.event)).toMatchObject([
      { timestamp: inDay(10, 250) },
      { timestamp: inDay(10, 240) },
      { timestamp: inDay(10, 190) },
    ]);
  });

  test('lets every so many-th through if it has a threshold', async () => {
    const configuration = { ...sender(), masking: masking({ ttl: 86_400, threshold: 4 }) };
    const { body } = await previewed({ ...days(10), configuration });
    // 15 events of each user: the 1st, 5th, 9th and 13th.
    expect(body.proposed).toMatchObject({ invocations: 30, masked: 22 });
  });

  test('says why a key fails, and lets these events through', async () => {
    const configuration = { ...sender(), masking: masking({ hash: '{jsonParse(event.event)}' }) };
    const { body } = await previewed({ ...days(10), configuration, sample: 0 });
    expect(body.proposed).toMatchObject({ masked: 0, failed: 30 });
    expect(body.proposed.errors[0].message).toMatch(/^masking: /);
  });

  test('counts every mapping that runs', async () => {
    const mappings = [{ name: 'a' }, { name: 'b' }, { name: 'off', disabled: true }].map((one) => ({
      ...one,
      filters: {},
    }));
    const { body } = await previewed({
      ...days(10),
      configuration: { ...sender(), mappings, masking: masking({ ttl: 86_400, hash: 'all' }) },
    });
    expect(body.proposed).toMatchObject({ matched: 30, invocations: 60, masked: 59 });
  });
});

describe('a preview of a change', () => {
  beforeAll(() =>
    store(
      anna,
      Array.from({ length: 10 }, (_, n) => ({
        ...{ timestamp: inDay(20, n), event: n < 6 ? 'paid' : 'seen', distinct_id: `user ${n}` },
      })),
    ),
  );
  const only = (...names: string[]) => ({ events: names.map((id) => ({ id, type: 'events' })) });

  test('shows where requests differ, and nothing else', async () => {
    const id = await created({ ...sender(), filters: only('paid') });
    const { body } = await previewed({ ...days(20), configuration: sender('upper(event.event)') }, id);
    expect(body.matches).toEqual({ both: 6, only_proposed: 0, only_running: 0 });
    expect(body.sample).toHaveLength(5);
    for (const { differences } of body.sample) {
      expect(differences).toEqual([
        { mapping: null, path: 'fetches[0].body.text', running: 'paid', proposed: 'PAID' },
      ]);
    }
  });

  test('shows no difference for the same program, whatever time and chance say', async () => {
    const hog = `let before := generateUUIDv4()
fetch(inputs.url, {'body': {'now': toString(now()), 'ids': [before, inputs.id], 'n': randomFloat()}})
fetch(inputs.url, {'body': {'id': generateUUIDv4()}})`;
    const own = {
      hog,
      inputs_schema: [...sender().inputs_schema, { key: 'id', type: 'string' }],
      inputs: { ...sender().inputs, id: { value: '{generateUUIDv4()}' } },
    };
    const id = await created(own);
    const { body } = await previewed({ ...days(20), configuration: { hog: `${hog}\n// the same` } }, id);
    const [{ proposed, differences, event }] = body.sample;
    expect(differences).toEqual([]);
    const [first, second] = proposed.invocations[0].fetches.map((one: { body: string }) =>
      JSON.parse(one.body),
    );
    expect(first.now).toContain(event.timestamp.slice(0, 10));
    expect(new Set([...first.ids, second.id]).size).toBe(3);
    expect(
      (await previewed({ ...days(20), configuration: { hog } }, id)).body.sample[0].proposed.invocations,
    ).toEqual(
      body.sample[0].proposed.invocations.map((one: object) => ({
        ...one,
        steps: expect.any(Number),
        memory: expect.any(Number),
        fetches: expect.any(Array),
      })),
    );
  });

  test('counts events that only one version runs for, and shows them first', async () => {
    const id = await created({ ...sender(), filters: only('paid') });
    const { body } = await previewed(
      { ...days(20), configuration: { filters: only('seen') }, sample: 4 },
      id,
    );
    expect(body.matches).toEqual({ both: 0, only_proposed: 4, only_running: 6 });
    const added = body.sample.find((one: { event: { event: string } }) => one.event.event === 'seen');
    expect(added).toMatchObject({ proposed: { status: 'success' }, running: { status: 'skipped' } });
    expect(added.differences).toContainEqual({
      ...{ mapping: null, path: 'status', running: 'skipped', proposed: 'success' },
    });
  });

  test('shows requests that are added and left out, of each mapping', async () => {
    const mapping = (name: string) => ({
      ...{ name, filters: only('paid'), inputs: { to: { value: name } } },
      inputs_schema: [{ key: 'to', type: 'string' }],
    });
    const hog = "fetch(inputs.url, {'body': inputs.to})";
    const id = await created({ ...sender(), hog, mappings: [mapping('a'), mapping('b')] });
    const { body } = await previewed(
      { ...days(20), configuration: { mappings: [mapping('b'), mapping('c')] }, sample: 1 },
      id,
    );
    expect(
      body.sample[0].differences.map((one: { mapping: string; path: string }) => [one.mapping, one.path]),
    ).toEqual([
      ['a', ''],
      ['c', ''],
    ]);
    expect(body.sample[0].differences[1].proposed.fetches[0].body).toBe('c');
  });

  test('compares masking', async () => {
    const id = await created(sender());
    const { body } = await previewed(
      { ...days(20), configuration: { masking: { ttl: 3_600, hash: 'one' } }, sample: 10 },
      id,
    );
    expect(body.running.masked).toBe(0);
    expect(body.proposed.masked).toBe(9);
    const oldest = body.sample.at(-1);
    expect(oldest.differences).toEqual([]);
    expect(body.sample[0].differences[0]).toMatchObject({
      path: 'status',
      running: 'success',
      proposed: 'masked',
    });
  });

  test('keeps stored secrets, and shows none', async () => {
    const secret = 'very-secret-0815';
    const id = await created({
      hog: "fetch('https://x.example', {'headers': {'X-Key': inputs.key}, 'body': base64Encode(inputs.key)})",
      inputs_schema: [{ key: 'key', type: 'string', secret: true }],
      inputs: { key: { value: secret } },
    });
    const answer = await api.request(anna, 'POST', `${base()}${id}/preview/`, {
      ...days(20),
      configuration: { hog: "fetch('https://y.example', {'headers': {'X-Key': inputs.key}})" },
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toContain('REDACTED');
    expect(answer.body).not.toContain(secret);
    expect(answer.body).not.toContain(Buffer.from(secret).toString('base64'));
  });

  test('names secrets that change, and says nothing of their values', async () => {
    const schema = (key: string) => ({ key, type: 'string', secret: true });
    const id = await created({
      ...{ hog: "fetch('https://x.example', {'body': inputs.key})" },
      inputs_schema: [schema('key'), schema('other'), { key: 'open', type: 'string' }],
      inputs: { key: { value: 'old-secret' }, other: { value: 'same' } },
      mappings: [{ name: 'm', inputs_schema: [schema('own')], inputs: { own: { value: 'old-own' } } }],
    });
    const changed = async (configuration?: object) => {
      const answer = await api.request(anna, 'POST', `${base()}${id}/preview/`, {
        ...days(20),
        configuration,
      });
      expect(answer.body).not.toMatch(/(old|new)-(secret|own)/);
      return answer.json().changed_secrets;
    };
    expect(await changed()).toBeNull();
    expect(await changed({ inputs: { open: { value: 'x' } } })).toEqual([]);
    expect(await changed({ inputs: { key: { value: 'old-secret' } } })).toEqual([]);
    expect(await changed({ inputs: { key: { value: 'new-secret' } } })).toEqual(['inputs.key']);
    const mapping = { name: 'm', inputs_schema: [schema('own')], inputs: { own: { value: 'new-own' } } };
    expect(await changed({ mappings: [mapping] })).toEqual(['mappings[0].inputs.own']);
    const fewer = { inputs_schema: [schema('key')] };
    expect(await changed(fewer)).toEqual(['inputs.other']);
  });

  test('can be one of a draft', async () => {
    const id = await created({ ...sender(), filters: only('paid') });
    const none = await previewed({ ...days(20), use_draft: true }, id);
    expect([none.status, none.body.attr]).toEqual([400, 'use_draft']);
    const draft = await api.request(anna, 'PATCH', `${base()}${id}/?draft=true`, { filters: only('seen') });
    expect(draft.statusCode).toBe(200);
    const { body } = await previewed({ ...days(20), use_draft: true }, id);
    expect(body.matches).toEqual({ both: 0, only_proposed: 4, only_running: 6 });
  });

  test('without a change shows the stored function', async () => {
    const id = await created({ ...sender(), filters: only('paid') });
    const { body } = await previewed({ ...days(20), sample: 1 }, id);
    expect(body).toMatchObject({ proposed: { matched: 6 }, running: null, matches: null });
  });
});

test('the preview of one project does not hold up that of another', async () => {
  await store(
    anna,
    Array.from({ length: 40 }, (_, n) => ({ timestamp: inDay(30, n) })),
  );
  const filters = {
    properties: [{ type: 'hogql', key: 'arrayCount(x -> x > 0, range(0, 20000)) > 5' }],
  };
  const slow = previewed({ ...days(30), configuration: { ...sender(), filters } });
  let ended = false;
  void slow.then(() => {
    ended = true;
  });
  const bob = await api.createTenant('Bert');
  const other = await previewed({ ...days(30), configuration: sender() }, 'new', bob);
  expect(other.status).toBe(200);
  expect(ended).toBe(false);
  // It may end with a part of the events on a busy machine, but none is left out.
  const { searched, proposed } = (await slow).body;
  expect(searched.events).toBeGreaterThan(1);
  expect(proposed.matched).toBe(searched.events);
});

test('the same uuid of another project is not found', async () => {
  const bob = await api.createTenant('Ben');
  const uuid = uuidv7();
  await store(bob, [{ timestamp: inDay(40, 0), uuid }]);
  const { body } = await previewed({ ...days(40), configuration: sender() });
  expect(body.searched.events).toBe(0);
});

test('one event whose mappings take long does not hold up a preview for longer than its time', async () => {
  await store(anna, [{ timestamp: inDay(50, 0) }]);
  const compiler = createFunctionCompiler();
  const runner = createRunner();
  try {
    const mappings = Array.from({ length: 40 }, (_, n) => ({ name: `mapping ${n}`, filters: {} }));
    const content = { hog: 'while (true) { let a := 1 }', filters: {}, masking: null, mappings };
    const compiled = await compiler.compile(anna.projectId, {
      ...{ type: 'destination', content: { ...content, inputs_schema: [], inputs: {} }, secrets: NO_SECRETS },
      ...{ isEnabled: true, testAccounts: [], actions: [], now: Date.now(), timezone: 'UTC' },
    });
    const {
      is_sample_complete: isComplete,
      sample,
      proposed,
    } = await previewFunction(
      {
        ...{ runner, compiler, egress: unused(), integrations: unused() },
        read: (work) => reading(api.pool, { projectId: anna.projectId }, work),
      },
      {
        ...{
          type: 'destination',
          proposed: compiled,
          running: null,
          mostEvents: 100,
          sample: 5,
          answers: [],
        },
        ...days(50),
        facts: {
          ...{ project: { id: anna.projectId, name: 'Anna' }, site: 'https://sluice.test' },
          source: { id: 'new', name: null },
        },
      },
      undefined,
      { search: 10_000, whole: 10 },
    );
    // All 40 mappings would take 22 seconds of the processor, and no more than one was given its time.
    expect([isComplete, sample, proposed.matched]).toEqual([false, [], 1]);
  } finally {
    await Promise.all([compiler.close(), runner.close()]);
  }
});

/** What nothing may ask for. */
const unused = () =>
  new Proxy(
    {},
    {
      get: () => {
        throw new Error('not expected to be used');
      },
    },
  ) as never;
