import { beforeEach, describe, expect, test } from '@jest/globals';
import { GovernedClaims } from '../../../functions/delivery/governed.ts';
import { eventually } from '../../support/eventually.ts';
import { type Arrival, runtimeForFile } from './world.ts';

// Nothing may wait until a claim is over.
const world = runtimeForFile({ starts: false, settings: { SLUICE_FUNCTION_LEASE_SECONDS: '600' } });
const program = `fetch(inputs.url, {'body': arrayMap(item -> item.event.properties.id, items)});
  if (inputs.twice) { fetch(inputs.url, {'body': 'twice'}) }`;
const on = (
  event: string,
  batch: object,
  { twice = false, ...more }: { twice?: boolean; delivery?: object } = {},
) => ({
  hog: program,
  filters: { events: [{ id: event, type: 'events' }] },
  inputs_schema: [
    { key: 'url', type: 'string' },
    { key: 'twice', type: 'boolean' },
  ],
  inputs: { url: { value: world.url(event) }, twice: { value: twice } },
  delivery: { batch, ...more.delivery },
});
const events = (event: string, count: number, more: object = {}) =>
  Array.from({ length: count }, (_, id) => ({ event, properties: { id, ...more } }));
/** Each happened a second after the one before it. */
const inOrder = (all: object[]) =>
  all.map((one, index) => ({
    ...one,
    timestamp: new Date(Date.UTC(2026, 0, 1) + index * 1_000).toISOString(),
  }));
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const arrived = (path: string) => world.arrivals.filter((one) => one.path === path);
const listOf = ({ body }: Arrival) => JSON.parse(body) as number[];
const keyOf = ({ headers }: Arrival) => headers['idempotency-key'] as string;
const all = (path: string) =>
  arrived(path)
    .flatMap(listOf)
    .toSorted((a, b) => a - b);
const queue = async (id: string) =>
  (await world.api.pool.query('select * from function_queue where function_id = $1 order by seq', [id])).rows;

beforeEach(() => {
  world.arrivals.length = 0;
  world.answer((_arrival, response) => response.end('{}'));
});

/** Runs a worker until nothing is left to do. */
async function work(): Promise<void> {
  const runtime = world.start();
  await world.idle();
  await world.stop(runtime);
}

/** Has events matched, and delivers nothing. */
async function match(id: string, count: number): Promise<void> {
  await world.change(id, { paused: true });
  const runtime = world.start();
  await eventually(async () => (await queue(id)).length === count);
  await world.stop(runtime);
  await world.change(id, { paused: false });
}

describe('events that go together', () => {
  test('are as many as the policy says, each once, and the rest does not wait for ever', async () => {
    const id = await world.create(on('many', { max_batch: 100, max_wait_seconds: 1 }));
    await world.capture(inOrder(events('many', 250)));
    await work();
    expect(all('many')).toEqual(numbers(250));
    const sizes = arrived('many').map((one) => listOf(one).length);
    expect(sizes.sort((one, other) => other - one)).toEqual([100, 100, 50]);
    // In their order.
    expect(
      arrived('many').every((one) =>
        listOf(one).every((number, at, list) => at === 0 || number > list[at - 1]!),
      ),
    ).toBe(true);
    expect(new Set(arrived('many').map(keyOf)).size).toBe(3);
    expect(await world.totals(id)).toMatchObject({ triggered: 250, succeeded: 250, fetch: 3 });
    const history = await world.history(id);
    expect(history).toHaveLength(250);
    expect(
      history.every((one) => one.status === 'succeeded' && (one.attempts as unknown[]).length === 1),
    ).toBe(true);
    await world.change(id, { enabled: false });
  });

  test('are repeated together, under the same key, whoever comes later', async () => {
    let fails = true;
    world.answer((_arrival, response) => {
      response.statusCode = fails ? 503 : 200;
      response.end('{}');
    });
    const id = await world.create(on('again', { max_batch: 10, max_wait_seconds: 0 }));
    await world.capture(events('again', 5));
    const runtime = world.start();
    await eventually(async () => arrived('again').length > 0);
    await world.capture(events('again', 8));
    fails = false;
    await world.idle();
    await world.stop(runtime);
    const [first] = arrived('again') as [Arrival];
    const same = arrived('again').filter((one) => keyOf(one) === keyOf(first));
    expect(same.length).toBeGreaterThan(1);
    expect(new Set(same.map(({ body }) => body)).size).toBe(1);
    const last = new Map(arrived('again').map((one) => [keyOf(one), listOf(one).length]));
    expect([...last.values()].reduce((sum, one) => sum + one, 0)).toBe(13);
    expect(await world.totals(id)).toMatchObject({ succeeded: 13 });
    await world.change(id, { enabled: false });
  });

  test('stay together when the worker is lost that had them, with what it had done', async () => {
    const id = await world.create(on('lost', { max_batch: 10, max_wait_seconds: 0 }, { twice: true }));
    await world.capture(events('lost', 4));
    await match(id, 4);
    const claims = new GovernedClaims(world.api.pool);
    const want = { projectId: world.anna.projectId, functionId: id, count: 5, since: '2020-01-01T00:00:00Z' };
    const [claimed] = await claims.claim([want], { lease: id, seconds: 0 });
    expect(claimed?.rows).toHaveLength(1);
    const [{ batch }] = (await queue(id)) as [{ batch: string }];
    // The first request is done.
    await world.api.pool.query('update function_queue set progress = $2 where seq = $1', [
      (await queue(id))[2].seq,
      JSON.stringify({ answers: [{ status: 200, body: {} }], attempts: [], printed: 0, failed: false }),
    ]);
    await world.capture(events('lost', 2));
    await work();
    const own = arrived('lost').filter((one) => keyOf(one).startsWith(batch));
    expect(own.map((one) => [keyOf(one), one.body])).toEqual([[`${batch}-1`, 'twice']]);
    expect((await world.history(id)).map((one) => one.status)).toEqual(Array(6).fill('succeeded'));
    await world.change(id, { enabled: false });
  });

  test('leave out those whose events are gone, and those that are too much for one program', async () => {
    const id = await world.create(on('left', { max_batch: 10, max_wait_seconds: 0 }));
    await world.capture(
      inOrder([...events('left', 3), ...events('left', 2, { text: 'x'.repeat(3_000_000) })]),
    );
    await match(id, 5);
    const [first] = await queue(id);
    await world.api.pool.query('delete from events where uuid = $1', [first.event_uuid]);
    await work();
    expect(arrived('left')).toHaveLength(2);
    expect(all('left')).toHaveLength(4);
    expect((await world.history(id)).map((one) => one.status).sort()).toEqual([
      ...['cancelled', 'succeeded', 'succeeded', 'succeeded', 'succeeded'],
    ]);
    await world.change(id, { enabled: false });
  });

  test('count as one for the other limits, and fail together', async () => {
    let open = 0;
    let most = 0;
    world.answer((_arrival, response) => {
      open += 1;
      most = Math.max(most, open);
      setTimeout(() => {
        open -= 1;
        response.statusCode = 400;
        response.end('{"reason":"no"}');
      }, 30);
    });
    const id = await world.create(
      on('limited', { max_batch: 5, max_wait_seconds: 0 }, { delivery: { max_concurrency: 2 } }),
    );
    await world.capture(events('limited', 60));
    await match(id, 60);
    await work();
    expect(most).toBe(2);
    expect(arrived('limited')).toHaveLength(12);
    expect(await world.totals(id)).toMatchObject({ failed: 60, fetch: 12 });
    const history = await world.history(id);
    expect(history.map((one) => one.status)).toEqual(Array(60).fill('failed'));
    const bodies = history.flatMap((one) =>
      (one.attempts as { response_body: string | null }[]).map((a) => a.response_body),
    );
    expect(bodies.filter((one) => one === '{"reason":"no"}')).toHaveLength(12);
    await world.change(id, { enabled: false });
  });

  test('go one by one without the policy, also those that were together', async () => {
    const id = await world.create({
      ...on('alone', { max_batch: 10, max_wait_seconds: 0 }),
      hog: "fetch(inputs.url, {'body': event.properties.id})",
    });
    await world.capture(events('alone', 3));
    await match(id, 3);
    const claims = new GovernedClaims(world.api.pool);
    const want = { projectId: world.anna.projectId, functionId: id, count: 5, since: '2020-01-01T00:00:00Z' };
    await claims.claim([want], { lease: id, seconds: 0 });
    await world.change(id, { delivery: null });
    await work();
    expect(
      arrived('alone')
        .map(({ body }) => body)
        .sort(),
    ).toEqual(['0', '1', '2']);
    await world.change(id, { enabled: false });
  });
});

test.each([
  [{ max_batch: 1 }, {}, 'destination'],
  [{ max_batch: 5, max_wait_seconds: -1 }, {}, 'destination'],
  [{ max_batch: 5 }, { ordering: 'distinct_id' }, 'destination'],
  [{ max_batch: 5 }, {}, 'internal_destination'],
])('a policy with the batch %j and %j is refused for a function of type %s', async (batch, more, type) => {
  const path = `/api/projects/${world.anna.projectId}/hog_functions/`;
  const body = { type, hog: 'return 1', delivery: { batch, ...more } };
  const answer = await world.api.request(world.anna, 'POST', path, body);
  expect(answer.statusCode).toBe(400);
  expect(answer.json().attr).toMatch(/^delivery/);
});

test('a program of batches is tried with a batch of one event', async () => {
  const id = await world.create({ ...on('tried', { max_batch: 5 }), enabled: false });
  const path = `/api/projects/${world.anna.projectId}/hog_functions/${id}/invocations/`;
  const answer = await world.api.request(world.anna, 'POST', path, {
    ...{
      configuration: {},
      globals: { event: { uuid: id, event: 'tried', distinct_id: 'a', properties: { id: 7 } } },
    },
  });
  expect(answer.json().invocations[0]?.fetches[0]?.body).toBe('[7]');
});
