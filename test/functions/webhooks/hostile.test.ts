import { beforeAll, describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../../db/uuid.ts';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { json, webhooksOf } from './support.ts';

const GUESSES = 5;
const api = apiForFile({ SLUICE_EGRESS_ALLOW: '127.0.0.1', SLUICE_REFUSALS_PER_MINUTE: String(GUESSES) });
let host = '';
const hooks = webhooksOf(api, () => host);
let anna: Tenant;
let bob: Tenant;

beforeAll(async () => {
  host = await api.app.listen({ port: 0, host: '127.0.0.1' });
  anna = await api.createTenant('Anna');
  bob = await api.createTenant('Bob');
});

test('ids that nobody has: a query for each at most, and few from one address; known functions go on', async () => {
  const id = await hooks.create(anna, { hog: 'return 1' });
  // Until it listens, what is remembered may be asked for again.
  await eventually(async () => api.listener.isListening());
  let queries = 0;
  const counted = await api.rebuild({
    lanePool: new Proxy(api.pool, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value;
        return (...given: unknown[]) => {
          if (String(given[0]).includes("type = 'source_webhook'")) queries += 1;
          return (value as (...all: unknown[]) => unknown).apply(target, given);
        };
      },
    }),
  });
  const ask = async (one: string) =>
    (await counted.inject({ method: 'POST', url: `/public/webhooks/${one}`, payload: {} })).statusCode;
  // Postgres may tell of its creation while it is read. Then it is read once more.
  await eventually(async () => {
    const before = queries;
    expect(await ask(id)).toBe(200);
    return queries === before;
  });
  queries = 1;
  const nobody = uuidv7();
  for (let times = 0; times < 20; times += 1) expect(await ask(nobody)).toBe(404);
  for (let times = 0; times < 20; times += 1) expect(await ask(`no-id-${times}`)).toBe(404);
  expect(queries).toBe(2);
  const statuses: number[] = [];
  for (let times = 0; times < 3 * GUESSES; times += 1) statuses.push(await ask(uuidv7()));
  expect(statuses.filter((status) => status === 404).length).toBeLessThanOrEqual(GUESSES);
  expect(statuses.at(-1)).toBe(503);
  expect(queries).toBeLessThanOrEqual(2 + GUESSES);
  expect([await ask(id), await ask(nobody)]).toEqual([200, 404]);
  // Also when it has just changed.
  await hooks.change(anna, id, { hog: "return {'httpResponse': {'status': 202}}" });
  await eventually(async () => {
    const status = await ask(id);
    expect([200, 202]).toContain(status);
    return status === 202;
  });
  await counted.close();
});

test('a project with many requests that take long leaves room for others', async () => {
  const stuck = await hooks.create(anna, { hog: 'while (true) {}' });
  const quick = await hooks.create(bob, { hog: 'return 1' });
  let ended = 0;
  const asked = Array.from({ length: 60 }, () =>
    hooks.ask(stuck, json({})).finally(() => {
      ended += 1;
    }),
  );
  await eventually(async () => ended > 0);
  expect(await hooks.ask(quick, json({}))).toMatchObject({ status: 200 });
  expect(ended).toBeLessThan(60);
  const statuses = new Set((await Promise.all(asked)).map(({ status }) => status));
  expect(statuses).toEqual(new Set([500, 503]));
});

describe('requests of a project that are under way', () => {
  const REFUSED = 'Too many requests are under way';
  const PATH = '/public/webhooks/';

  /** An API whose programs of Anna begin one by one, when the test says so. Threads are free meanwhile. */
  async function holding() {
    const { functionRunner } = api;
    const held: (() => void)[] = [];
    const app = await api.rebuild({
      functionRunner: {
        ...functionRunner,
        async begin(projectId, ...job) {
          if (projectId === anna.projectId) await new Promise<void>((resolve) => void held.push(resolve));
          return functionRunner.begin(projectId, ...job);
        },
      },
    });
    const answers: { status: number; text: string }[] = [];
    const ask = async (id: string, payload: string | object = {}) => {
      const { statusCode: status, body: text } = await app.inject({
        ...{ method: 'POST', url: `${PATH}${id}`, payload },
        headers: { 'content-type': typeof payload === 'string' ? 'text/plain' : 'application/json' },
      });
      answers.push({ status, text });
      return status;
    };
    const release = async () => {
      const before = answers.length;
      held.shift()?.();
      await eventually(async () => answers.length > before);
    };
    const close = async () => {
      while (held.length > 0) await release();
      await app.close();
    };
    return { held, answers, ask, release, close };
  }

  test('are fifty at most, and one that ends makes room for another one', async () => {
    const [own, other] = [
      await hooks.create(anna, { hog: 'return 1' }),
      await hooks.create(bob, { hog: 'return 1' }),
    ];
    const { held, answers, ask, release, close } = await holding();
    const asked = Array.from({ length: 60 }, () => ask(own));
    await eventually(async () => held.length + answers.length === 60);
    expect(held).toHaveLength(50);
    expect(answers).toEqual(Array(10).fill({ status: 503, text: expect.stringContaining(REFUSED) }));
    expect(await ask(other)).toBe(200);
    await release();
    expect(answers.at(-1)).toMatchObject({ status: 200 });
    asked.push(ask(own));
    await eventually(async () => held.length === 50);
    await close();
    expect((await Promise.all(asked)).filter((status) => status === 200)).toHaveLength(51);
  });

  test('have four mebibytes at most, however few they are', async () => {
    const id = await hooks.create(anna, { hog: 'return 1' });
    const { held, answers, ask, close } = await holding();
    const asked: Promise<number>[] = [];
    for (let count = 1; count <= 8; count += 1) {
      asked.push(ask(id, 'x'.repeat(500_000)));
      await eventually(async () => held.length === count);
    }
    const refused = ask(id, 'x'.repeat(500_000));
    await eventually(async () => held.length + answers.length === 9);
    expect(answers).toEqual([{ status: 503, text: expect.stringContaining(REFUSED) }]);
    asked.push(ask(id, 'small'));
    await eventually(async () => held.length === 9);
    await close();
    expect(await refused).toBe(503);
    expect(await Promise.all(asked)).toEqual(Array(9).fill(200));
  });
});

test('a program that captures what cannot be an event fails by itself', async () => {
  const id = await hooks.create(anna, {
    hog: "postHogCapture({'event': request.body.event, 'distinct_id': 'x', 'properties': {'deep': request.body.deep}})",
  });
  const deep = JSON.parse(`${'['.repeat(190)}${']'.repeat(190)}`);
  expect((await hooks.ask(id, json({ event: 'a\0b', deep }))).status).toBeLessThanOrEqual(500);
  expect(await hooks.ask(id, json({ event: 'fine' }))).toMatchObject({ status: 200 });
  expect((await hooks.events(anna)).map(({ event }) => event)).toContain('fine');
});

const CIRCLE = 'let a := {}; a.a := a;';
const DEEP = 'let a := {}; for (let i := 0; i < 450; i := i + 1) { a := {"a": a} }'.replaceAll('"', "'");
const ANSWER = "return {'httpResponse': {'status': 200, 'body': a}}";
const CAPTURE = "postHogCapture({'event': 'odd', 'distinct_id': 'x', 'properties': a})";

test.each([
  ['a circle as the answer', CIRCLE, ANSWER, [200, '{"a":null}']],
  ['a circle in an event', CIRCLE, CAPTURE, [200, '{"status":"ok"}']],
  ['a circle as the result', CIRCLE, 'return a', [200, '{"status":"ok"}']],
  ['a deep answer', DEEP, ANSWER, [200, `${'{"a":'.repeat(450)}{}${'}'.repeat(450)}`]],
  ['an event that is too deep', DEEP, CAPTURE, [500, '{"status":"Unhandled error"}']],
])('values that are hard to write are no fault of the server: %s', async (_name, begin, end, expected) => {
  const id = await hooks.create(anna, { hog: `${begin}\n${end}` });
  const { status, text } = await hooks.ask(id, json({}));
  expect([status, text]).toEqual(expected);
  const counts = await eventually(async () => {
    const found = await hooks.counts(id);
    return Object.keys(found).length > 0 && found;
  });
  expect(counts[status === 200 ? 'success succeeded' : 'failure failed']).toBe(1);
});

test('names that objects have anyway are data', async () => {
  const id = await hooks.create(anna, {
    hog: "return {'httpResponse': {'status': 200, 'body': {'b': request.body, 'q': request.query}}}",
  });
  const { text } = await hooks.ask(id, {
    body: '{"__proto__":{"a":1},"constructor":2}',
    headers: { 'content-type': 'application/json' },
    query: '?__proto__=x&constructor=y',
  });
  expect(text).toContain('"constructor":2');
  expect(({} as Record<string, unknown>).a).toBeUndefined();
});

test('nobody sees secrets: neither in an answer by default, nor in logs', async () => {
  const id = await hooks.create(anna, {
    hog: "print(inputs.key, request.headers); throw Error(f'failed with {inputs.key}')",
    inputs_schema: [{ key: 'key', type: 'string', secret: true }],
    inputs: { key: { value: 'sk_very_secret' } },
  });
  expect(await hooks.ask(id, json({}, { 'x-key': 'sk_very_secret' }))).toMatchObject({
    status: 500,
    text: '{"status":"Unhandled error"}',
  });
  const logs = await eventually(async () => {
    const found = await hooks.logs(id);
    return found.length === 2 && found;
  });
  expect(JSON.stringify(logs)).not.toContain('sk_very_secret');
  expect(JSON.stringify(logs)).toContain('REDACTED');
});
