import type { ServerResponse } from 'node:http';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { GovernedClaims } from '../../../functions/delivery/governed.ts';
import { eventually } from '../../support/eventually.ts';
import { type Arrival, runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const workers = (count: number) => Array.from({ length: count }, () => world.start());
const stop = (all: ReturnType<typeof workers>) => Promise.all(all.map((one) => world.stop(one)));
const on = (event: string, more: object = {}) =>
  sender(world.url(event), { filters: { events: [{ id: event, type: 'events' }] }, ...more });
const events = (event: string, count: number, more: object = {}) =>
  Array.from({ length: count }, (_, id) => ({ event, properties: { id }, ...more }));
const arrived = (path: string) => world.arrivals.filter((one) => one.path === path);
const ids = (arrivals: readonly Arrival[]) => arrivals.map(({ body }) => JSON.parse(body).id);
const waiting = async (id: string) => {
  const { rows } = await world.api.pool.query(
    'select count(*)::int as count from function_queue where function_id = $1',
    [id],
  );
  return rows[0].count as number;
};
const ok = (_arrival: Arrival, response: ServerResponse) => response.end('{}');

beforeEach(() => {
  world.arrivals.length = 0;
  world.answer(ok);
});

/** Answers after a while, and returns how many requests were open at once at most. */
function counting(milliseconds: number): { most: Map<string, number> } {
  const open = new Map<string, number>();
  const most = new Map<string, number>();
  world.answer(({ path }, response) => {
    const now = (open.get(path) ?? 0) + 1;
    open.set(path, now);
    most.set(path, Math.max(most.get(path) ?? 0, now));
    setTimeout(() => {
      open.set(path, open.get(path)! - 1);
      response.end('{}');
    }, milliseconds);
  });
  return { most };
}

describe('max_concurrency', () => {
  test('holds for all workers together, and for no other function', async () => {
    const { most } = counting(40);
    const limited = await world.create(on('limited', { delivery: { max_concurrency: 3 } }));
    const free = await world.create(on('free'));
    await world.capture([...events('limited', 80), ...events('free', 80)]);
    const all = workers(4);
    await world.idle();
    await stop(all);
    expect(ids(arrived('limited')).toSorted((a, b) => a - b)).toEqual(
      events('limited', 80).map((_, id) => id),
    );
    expect(most.get('limited')).toBe(3);
    expect(most.get('free')).toBeGreaterThan(3);
    for (const id of [limited, free]) await world.change(id, { enabled: false });
  });

  test('is not used up by a worker that is dead', async () => {
    const id = await world.create(on('lost', { delivery: { max_concurrency: 2 } }));
    const { projectId } = world.anna;
    await world.api.pool.query(
      `insert into function_queue (id, project_id, function_id, version, globals, clock, seed)
       select gen_random_uuid(), $1, $2, 1,
         json_build_object('event', json_build_object('uuid', '', 'event', 'lost', 'properties', json_build_object('id', n))),
         now(), 1 from generate_series(1, 5) n`,
      [projectId, id],
    );
    const claims = new GovernedClaims(world.api.pool);
    const want = { projectId, functionId: id, count: 10, since: '1970-01-01T00:00:00Z' };
    const take = async (lease: string) => (await claims.claim([want], { lease, seconds: 600 }))[0]!.rows;
    const dead = await take('00000000-0000-4000-8000-000000000001');
    expect(dead).toHaveLength(2);
    expect(await take('00000000-0000-4000-8000-000000000002')).toEqual([]);
    await world.api.pool.query(
      "update function_queue set due_at = clock_timestamp() - interval '1 second' where lease is not null",
    );
    const [worker] = workers(1);
    await world.idle();
    await stop([worker!]);
    expect(ids(arrived('lost')).toSorted()).toEqual([1, 2, 3, 4, 5]);
    await world.change(id, { enabled: false });
  });
});

test('rate_per_second holds for all workers together, and everything is sent in the end', async () => {
  const id = await world.create(on('often', { delivery: { rate_per_second: 20 } }));
  await world.capture(events('often', 60));
  const all = workers(2);
  await world.idle();
  await stop(all);
  const times = arrived('often').map(({ at }) => at);
  expect(times).toHaveLength(60);
  // 59 distances of 50 ms.
  expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(2_000);
  await world.change(id, { enabled: false });
});

describe('ordering by distinct_id', () => {
  const BEGAN = Date.parse('2026-01-01T00:00:00Z');
  const people = ['ada', 'bob', 'cem', 'dan'];
  const ofPeople = (event: string, count: number) =>
    Array.from({ length: count }, (_, id) =>
      people.map((distinct_id) => ({
        ...{ event, distinct_id, properties: { id: `${distinct_id} ${id}` } },
        timestamp: new Date(BEGAN + id).toISOString(),
      })),
    ).flat();
  const idsOf = (path: string, person: string) =>
    ids(arrived(path)).filter((one: string) => one.startsWith(person));
  const inOrder = (person: string, count: number) =>
    Array.from({ length: count }, (_, id) => `${person} ${id}`);

  test('invocations of an id run one after the other, and one id does not wait for another', async () => {
    let held: ServerResponse | undefined;
    let isReleased = false;
    let failures = 0;
    const open = new Map<string, number>();
    let most = 0;
    world.answer(({ body }, response) => {
      const { id } = JSON.parse(body);
      const [person] = id.split(' ');
      const now = (open.get(person) ?? 0) + 1;
      open.set(person, now);
      most = Math.max(most, now);
      const answer = (status: number) => {
        open.set(person, open.get(person)! - 1);
        response.writeHead(status).end('{}');
      };
      if (id === 'ada 0' && !isReleased) {
        held = response;
        held.once('close', () => open.set('ada', open.get('ada')! - 1));
      } else if (id === 'bob 1' && failures === 0) {
        failures += 1;
        answer(503);
      } else setTimeout(() => answer(200), 5);
    });
    const id = await world.create(on('ordered', { delivery: { ordering: 'distinct_id' } }));
    await world.capture(ofPeople('ordered', 10));
    const all = workers(4);
    await eventually(async () => ['cem', 'dan'].every((one) => idsOf('ordered', one).length === 10));
    await eventually(async () => idsOf('ordered', 'bob').length === 11);
    // It is tried again where the others took longer than the target may.
    expect(new Set(idsOf('ordered', 'ada'))).toEqual(new Set(['ada 0']));
    expect(await waiting(id)).toBeGreaterThanOrEqual(10);
    isReleased = true;
    held?.end('{}');
    await world.idle();
    await stop(all);
    expect([...new Set(idsOf('ordered', 'ada'))]).toEqual(inOrder('ada', 10));
    expect(idsOf('ordered', 'bob')).toEqual(['bob 0', 'bob 1', ...inOrder('bob', 10).slice(1)]);
    for (const one of ['cem', 'dan']) expect(idsOf('ordered', one)).toEqual(inOrder(one, 10));
    expect(most).toBe(1);
    await world.change(id, { enabled: false });
  });

  test('holds for what waited before somebody asked for it, and ends when nobody asks any more', async () => {
    const later = await world.create(on('later'));
    const [worker] = workers(1);
    // The first one of ada waits for its next attempt, as in the days before.
    world.answer((_arrival, response) => response.writeHead(503, { 'retry-after': '3600' }).end());
    await world.capture(ofPeople('later', 1).slice(0, 1));
    await eventually(async () => arrived('later').length === 1);
    world.answer(ok);
    await world.change(later, { delivery: { ordering: 'distinct_id' } });
    await world.capture(ofPeople('later', 3).slice(people.length));
    await eventually(async () => ['bob', 'cem', 'dan'].every((one) => idsOf('later', one).length === 2));
    expect(idsOf('later', 'ada')).toEqual(['ada 0']);
    await eventually(async () => (await waiting(later)) === 3);
    await world.change(later, { delivery: null });
    await world.api.pool.query(
      'update function_queue set due_at = clock_timestamp() where function_id = $1 and attempt = 0',
      [later],
    );
    await eventually(async () => idsOf('later', 'ada').length === 3);
    await eventually(async () => (await waiting(later)) === 1);
    await world.change(later, { enabled: false });
    await world.api.pool.query('update function_queue set due_at = clock_timestamp()');
    await world.idle();
    await stop([worker!]);
  });
});

describe('paused', () => {
  test('nothing is attempted, new ones are queued, and all go on afterwards', async () => {
    const paused = await world.create(on('both', { paused: true }));
    const other = await world.create(
      sender(world.url('other'), { filters: { events: [{ id: 'both', type: 'events' }] } }),
    );
    const all = workers(2);
    await world.capture(events('both', 20));
    await eventually(async () => arrived('other').length === 20);
    await world.capture(events('both', 20));
    await eventually(async () => arrived('other').length === 40);
    expect(await waiting(paused)).toBe(40);
    expect(arrived('both')).toEqual([]);
    await world.change(paused, { paused: false });
    await world.idle();
    expect(arrived('both')).toHaveLength(40);
    // Workers that have not heard of the change attempt nothing either. Some have, so this is tried several times.
    for (let round = 1; round <= 6; round += 1) {
      const before = arrived('other').length;
      await world.change(other, { paused: true });
      await world.capture(events('both', 20));
      await eventually(async () => arrived('both').length === 40 + round * 20);
      expect([arrived('other').length, await waiting(other)]).toEqual([before, 20]);
      if (round === 6) break;
      await world.change(other, { paused: false });
      await world.idle();
    }
    await world.change(other, { enabled: false });
    await world.idle();
    const history = await world.history(other);
    expect(history.filter(({ status }) => status === 'cancelled')).toHaveLength(20);
    await stop(all);
    await world.change(paused, { enabled: false });
  });
});

describe('retry', () => {
  test('statuses and attempts of the function count, also for what waits already', async () => {
    world.answer(({ path }, response) => response.writeHead(path === 'busy' ? 503 : 404).end());
    const gone = await world.create(
      on('gone', { delivery: { retry: { statuses: ['4xx'], max_attempts: 2 } } }),
    );
    const busy = await world.create(on('busy', { delivery: { retry: { statuses: [404] } } }));
    await world.capture([...events('gone', 1), ...events('busy', 1)]);
    const [worker] = workers(1);
    await world.idle();
    expect(arrived('gone')).toHaveLength(2);
    expect(arrived('busy')).toHaveLength(1);
    expect(await world.history(gone)).toMatchObject([{ status: 'failed' }]);
    await world.change(gone, { delivery: null });
    await world.capture(events('gone', 1));
    await world.idle();
    await stop([worker!]);
    expect(arrived('gone')).toHaveLength(3);
    for (const id of [gone, busy]) await world.change(id, { enabled: false });
  });
});

test('requests say the time of the event and its place in the queue, unless the program says something else', async () => {
  const id = await world.create(
    on('told', {
      hog: `fetch(inputs.url, {'body': inputs.body});
        fetch(inputs.url, {'body': inputs.body, 'headers': {'sluice-sequence': 'mine', 'Sluice-Event-Time': 'never'}})`,
    }),
  );
  const times = ['2026-01-02T03:04:05.678Z', '2026-01-02T03:04:06.000Z'];
  const [worker] = workers(1);
  for (const timestamp of times) {
    await world.capture(events('told', 1, { timestamp }));
    await world.idle();
  }
  await stop([worker!]);
  const [first, own, second] = arrived('told').map(({ headers }) => headers);
  expect([first, second].map((one) => Date.parse(one?.['sluice-event-time'] as string))).toEqual(
    times.map((one) => Date.parse(one)),
  );
  const [before, after] = [first, second].map((one) => Number(one?.['sluice-sequence'])) as [number, number];
  expect(before).toBeGreaterThan(0);
  expect(after).toBeGreaterThan(before);
  expect(own).toMatchObject({ 'sluice-sequence': 'mine', 'sluice-event-time': 'never' });
  await world.change(id, { enabled: false });
});
