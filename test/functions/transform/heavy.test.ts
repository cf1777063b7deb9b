import { beforeEach, describe, expect, test } from '@jest/globals';
import { integrationsOf } from '../../../api/functions/dependencies.ts';
import { createPool } from '../../../db/pool.ts';
import { createTransformer } from '../../../functions/transform/transformer.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { transformingApi } from './support.ts';

const api = transformingApi();
let anna: Tenant;
let ben: Tenant;
beforeEach(async () => {
  [anna, ben] = [await api.createTenant('Anna'), await api.createTenant('Ben')];
});

const counting = (times: number) => `let sum := 0
  for (let i := 0; i < ${times}; i := i + 1) { sum := sum + i }
  let changed := event
  changed.properties.sum := sum
  return changed`;

async function secondsIn(thread: string): Promise<number> {
  const metric = await api.registry.getSingleMetric('sluice_transformation_seconds_total')?.get();
  return metric?.values.find((one) => one.labels.thread === thread)?.value ?? 0;
}

describe('a program that takes long', () => {
  test('runs in another thread, and the events of its project are stored as it changes them', async () => {
    await api.transform(anna, { hog: counting(2_000_000), on_error: 'refuse' });
    const before = await secondsIn('other');
    const found = await api.stored(anna, [{ event: 'a' }, { event: 'b' }, { event: 'c' }]);
    expect(found.map((one) => one.properties.sum)).toEqual([1999999000000, 1999999000000, 1999999000000]);
    expect(await secondsIn('other')).toBeGreaterThan(before);
  });

  test('leaves the thread that receives events to others', async () => {
    await api.transform(anna, { hog: 'while (true) {}\nreturn event', on_error: 'drop' });
    await api.transform(ben, { hog: counting(10), on_error: 'refuse' });
    const slow = api.stored(
      anna,
      Array.from({ length: 8 }, () => ({})),
    );
    let isOver = false;
    const ended = slow.then((found) => {
      isOver = true;
      return found;
    });
    let answered = 0;
    while (!isOver && answered < 20) {
      const [found] = await api.stored(ben, [{}]);
      expect(found?.properties.sum).toBe(45);
      answered += 1;
    }
    // Eight programs that are ended after half a second each take longer than twenty quick requests.
    expect([answered, isOver]).toEqual([20, false]);
    expect(await ended).toEqual([]);
  });

  test('is not begun again and again for a request: what is left of it counts as failed', async () => {
    const id = await api.transform(anna, { hog: 'while (true) {}\nreturn event', on_error: 'pass' });
    const events = Array.from({ length: 60 }, (_, index) => ({ event: `e${index}` }));
    expect(await api.stored(anna, events)).toHaveLength(60);
    expect(await api.counts(id)).toEqual({ 'failure failed': 60 });
    const logs = await api.logs(id);
    expect(logs.some((line) => line.includes('Execution timed out after 0.55 seconds'))).toBe(true);
    expect(logs.some((line) => line.includes('The transformations of a request took too long.'))).toBe(true);
  });
});

test.each([
  ['an input in Liquid', { inputs: { text: { value: 'hello {{ event.event }}', templating: 'liquid' } } }],
  [
    'an input with a function',
    { inputs: { text: { value: "{arrayMap(x -> concat('hello ', x), [event.event])[1]}" } } },
  ],
])('%s is found in another thread', async (_what, content) => {
  await api.transform(anna, {
    ...{
      hog: 'let changed := event\nchanged.properties.text := inputs.text\nreturn changed',
      on_error: 'refuse',
    },
    inputs_schema: [{ key: 'text', type: 'string', label: 'Text' }],
    ...content,
  });
  const before = await secondsIn('main');
  const [found] = await api.stored(anna, [{ event: 'ada' }]);
  expect(found?.properties.text).toBe('hello ada');
  expect(await secondsIn('main')).toBe(before);
});

test('a filter that takes long is asked in another thread', async () => {
  const long = `length(arrayStringConcat(arrayMap(x -> toString(x), range(30000)), ',')) > 10`;
  await api.transform(anna, {
    ...{ hog: counting(1), on_error: 'refuse' },
    filters: { properties: [{ type: 'hogql', key: long }] },
  });
  const before = await secondsIn('other');
  const answer = await api.send(anna, [{}]);
  expect(answer.statusCode).toBe(200);
  expect(await secondsIn('other')).toBeGreaterThan(before);
});

test('a program that grows events without end is stopped, and the process does not', async () => {
  // 200 bytes become 400 kB, a thousand times.
  const id = await api.transform(anna, {
    hog: `let text := 'x'
      for (let i := 0; i < 18; i := i + 1) { text := concat(text, text) }
      let changed := event
      changed.properties.text := text
      return changed`,
    on_error: 'drop',
  });
  const events = Array.from({ length: 1_000 }, (_, index) => ({ event: `e${index}` }));
  const found = await api.stored(anna, events);
  expect(found.length).toBeGreaterThan(10);
  expect(found.length).toBeLessThan(200);
  expect(await api.counts(id)).toMatchObject({ 'other dropped_on_error': 1_000 - found.length });
});

describe('a transformation that the watcher has disabled', () => {
  const disable = (id: string, state: number) =>
    api.pool.query(
      `insert into function_states (project_id, function_id, tokens, state, disabled_until)
       values ($1, $2, 0, $3, clock_timestamp() + interval '1 hour')
       on conflict (project_id, function_id) do update set state = $3, tokens = 0, disabled_until = excluded.disabled_until`,
      [anna.projectId, id, state],
    );

  test.each([
    ['pass', 3, 'failure disabled_temporarily'],
    ['drop', 3, 'failure disabled_temporarily'],
    ['refuse', 4, 'failure disabled_permanently'],
  ] as const)('does with events what it does after a failure: %s', async (onError, state, metric) => {
    const id = await api.transform(anna, { hog: counting(1), on_error: onError });
    await disable(id, state);
    // Another one of the project is saved, so the states are read again.
    await api.transform(anna, { hog: 'return event' });
    const answer = await api.send(anna, [{ event: 'one' }]);
    expect(answer.statusCode).toBe(onError === 'refuse' ? 503 : 200);
    const { rows } = await api.pool.query('select properties from events where project_id = $1', [
      anna.projectId,
    ]);
    expect(rows.map((row) => row.properties.sum)).toEqual(onError === 'pass' ? [undefined] : []);
    expect(await api.counts(id)).toMatchObject({ [metric]: 1 });
    // Whoever saves it has it run again.
    await api.change(anna, id, { name: 'Saved' });
    const [found] = await api.stored(anna, [{}]);
    expect(found?.properties.sum).toBe(0);
  });

  test('was disabled because its programs cost too much', async () => {
    // A run costs about 100 of 10,000 tokens. On a slow machine, some of them come back meanwhile.
    const id = await api.transform(anna, { hog: 'while (true) {}\nreturn event' });
    await api.pool.query(
      'insert into function_states (project_id, function_id, tokens) values ($1, $2, -2000)',
      [anna.projectId, id],
    );
    await api.stored(anna, [{}, {}, {}]);
    await api.transformer.flush();
    const status = await eventually(async () => {
      const found = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/hog_functions/${id}/`);
      return found.json().status.state === 3 && found.json().status;
    });
    expect(status).toMatchObject({ state: 3 });
    expect(await api.stored(anna, [{}])).toHaveLength(1);
    expect(await api.counts(id)).toEqual({ 'failure failed': 3, 'failure disabled_temporarily': 1 });
    expect((await api.logs(id)).at(-1)).toBe(
      'warn The function took too long. It is not run for ten minutes.',
    );
  });
});

test('while transformations cannot be loaded, requests are refused and nothing is stored as it came', async () => {
  await api.transform(anna, { hog: counting(3) });
  const away = createPool({
    url: 'postgres://127.0.0.1:1/none',
    name: 'away',
    size: 1,
    onError: () => undefined,
  });
  const { keyring, egress, functionCompiler: compiler, config } = api;
  const transformer = createTransformer({
    ...{ pool: away, keyring, compiler, integrations: integrationsOf({ pool: away, keyring, egress }) },
    ...{ site: config.SLUICE_PUBLIC_URL, logger: createLogger({ name: 'test', level: 'silent' }) },
  });
  const app = await api.rebuild({ transform: transformer.transform });
  const send = (tenant: Tenant) =>
    app.inject({
      ...{ method: 'POST', url: '/batch/' },
      payload: { api_key: tenant.projectToken, batch: [{ event: 'a', distinct_id: 'b' }] },
    });
  try {
    const answer = await send(anna);
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5']);
    expect(answer.json().detail).toBe(
      'The transformations of the project cannot be loaded at the moment. Send the events again.',
    );
    expect(await api.countEvents(anna)).toBe(0);
    // Others have none, and notice nothing.
    expect((await send(ben)).statusCode).toBe(200);
  } finally {
    await app.close();
    await transformer.close();
    await away.end();
  }
});

test('a transformation whose secrets cannot be read fails, in the way that it is told', async () => {
  const id = await api.transform(anna, {
    hog: 'let changed := event\nchanged.properties.hash := sha256Hex(inputs.salt)\nreturn changed',
    inputs_schema: [{ key: 'salt', type: 'string', label: 'Salt', secret: true }],
    inputs: { salt: { value: 'pepper' } },
    on_error: 'drop',
  });
  expect((await api.stored(anna, [{}]))[0]?.properties.hash).toMatch(/^[0-9a-f]{64}$/);
  await api.pool.query("update functions set secrets = 'k9:nonsense' where id = $1", [id]);
  await eventually(async () => (await api.stored(anna, [{}])).length === 0);
  expect(JSON.stringify(await api.logs(id))).not.toContain('pepper');
  expect(await api.counts(id)).toMatchObject({ 'other dropped_on_error': expect.any(Number) });
});
