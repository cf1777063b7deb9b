import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { uuidv7 } from '../../../db/uuid.ts';
import { Leases } from '../../../functions/delivery/leases.ts';
import { claim, keepProgress } from '../../../functions/rows/queue.ts';
import { type StoredResult, storeResults } from '../../../functions/rows/results.ts';
import { NO_PROGRESS } from '../../../functions/rules/progress.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const FIRST = '00000000-0000-4000-8000-000000000001';
const SECOND = '00000000-0000-4000-8000-000000000002';
const take = (functionId: string, lease: string) =>
  claim(
    world.api.pool,
    [{ projectId: world.anna.projectId, functionId, count: 10, since: '1970-01-01T00:00:00Z' }],
    { lease, seconds: 60 },
  );
const enqueue = (functionId: string) =>
  world.api.pool.query(
    `insert into function_queue (id, project_id, function_id, version, globals, clock, seed)
     values (gen_random_uuid(), $1, $2, 1, '{"event": {"uuid": "", "properties": {}}}', now(), 1)`,
    [world.anna.projectId, functionId],
  );
/** Of each waiting invocation: when its lease ends, and whether it has lasted for longer than at first. */
const leasesOf = async (functionId: string, first = '1970-01-01') => {
  const { rows } = await world.api.pool.query(
    `select due_at, due_at > $2::timestamptz and clock_timestamp() > $2::timestamptz + interval '1 second' as is_longer
     from function_queue where function_id = $1 and lease is not null`,
    [functionId, first],
  );
  return rows as { due_at: string; is_longer: boolean }[];
};
const expire = () =>
  world.api.pool.query("update function_queue set due_at = clock_timestamp() - interval '1 second'");

/** How many lines and numbers there are of a function. */
const told = async (functionId: string) => {
  const { rows } = await world.api.pool.query(
    `select (select count(*)::int from function_logs where function_id = $1) as logs,
       (select count(*)::int from function_metrics where function_id = $1) as counts`,
    [functionId],
  );
  return rows[0];
};

test('what a worker says late of an invocation that belongs to somebody else counts for nothing', async () => {
  const id = await world.create({ ...sender(world.url()), enabled: false });
  await enqueue(id);
  const [row] = await take(id, FIRST);
  expect(row).toMatchObject({ was_lease: null });
  expect(await take(id, SECOND)).toEqual([]);
  await expire();
  const [again] = await take(id, SECOND);
  expect(again).toMatchObject({ id: row?.id, was_lease: FIRST });
  const late: StoredResult = {
    ...{ seq: row!.seq, lease: FIRST, status: 'succeeded', error: null, text: '[]', attempt: 0, after: 0 },
    logs: [{ level: 'info', timestamp: new Date().toISOString(), message: 'one' }],
    counts: [{ kind: 'success', name: 'succeeded', count: 1 }],
  };
  const postponed: StoredResult = { ...late, status: 'postponed', attempt: 1, text: null };
  expect(await storeResults(world.api.pool, [late])).toEqual(new Set());
  expect(await storeResults(world.api.pool, [postponed])).toEqual(new Set());
  const progress = { seq: row!.seq, lease: FIRST, progress: NO_PROGRESS, seconds: 60 };
  expect(await keepProgress(world.api.pool, progress)).toBe(false);
  expect(await world.history(id)).toEqual([]);
  expect(await told(id)).toEqual({ logs: 0, counts: 0 });
  expect(await storeResults(world.api.pool, [{ ...late, lease: SECOND }])).toEqual(new Set([row!.seq]));
  expect(await told(id)).toEqual({ logs: 1, counts: 1 });
  expect(await world.history(id)).toMatchObject([{ id: row?.id, status: 'succeeded' }]);
});

test('a claim begins where the last one has ended, and all of a backlog is taken', async () => {
  const id = await world.create(sender(world.url()));
  const count = 300;
  const { rows } = await world.api.pool.query(
    `with queued as (
       insert into function_queue (id, project_id, function_id, version, globals, clock, seed, created_at, due_at)
       select gen_random_uuid(), $1, $2, 1, $3, now(), 1, now() + interval '1 hour', now() - n * interval '10 seconds'
       from generate_series(10, 9 + ${count}) n returning due_at)
     select min(due_at) as first, max(due_at) as last from queued`,
    [world.anna.projectId, id, JSON.stringify({ event: { uuid: uuidv7(), event: 'order', properties: {} } })],
  );
  const since: number[] = [];
  const query = pg.Client.prototype.query;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [{ name, values }] = args as [{ name?: string; values?: unknown[][] }];
    if (name === 'claim-invocations') since.push(...((values?.[3] ?? []) as string[]).map(Date.parse));
    return (query as (...all: unknown[]) => unknown).apply(this, args);
  } as typeof query;
  try {
    const runtime = world.start({ delivering: { places: 20 } });
    await world.idle();
    await world.stop(runtime);
  } finally {
    pg.Client.prototype.query = query;
  }
  expect(await world.history(id)).toHaveLength(count);
  // What is behind it stays in the index while somebody may see it, and is not passed again.
  const [first, last] = [Date.parse(rows[0].first), Date.parse(rows[0].last)];
  expect(since.filter((one) => one > first && one < last).length).toBeGreaterThan(5);
  world.arrivals.length = 0;
  await world.change(id, { enabled: false });
});

test('after a worker was lost, only the request that was under way is made again', async () => {
  let isHeld = true;
  world.answer(({ path }, response) => {
    // The first worker never hears of the second request.
    if (path === 'second' && isHeld) return;
    response.end(JSON.stringify({ number: world.arrivals.length }));
  });
  const id = await world.create({
    hog: `let one := fetch('${world.url('first')}', {'body': {}});
      let two := fetch('${world.url('second')}', {'body': {'number': one.body.number}});
      print(two.body.number)`,
    filters: { events: [{ id: 'twice', type: 'events' }] },
  });
  await world.capture([{ event: 'twice' }]);
  const lost = world.start();
  await eventually(async () => world.arrivals.length === 2);
  isHeld = false;
  await expire();
  const other = world.start();
  await world.idle();
  expect(world.arrivals.map(({ path, body }) => [path, body])).toEqual([
    ['first', '{}'],
    ['second', '{"number":1}'],
    ['second', '{"number":1}'],
  ]);
  expect(new Set(world.arrivals.slice(1).map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  await world.stop(lost);
  await world.stop(other);
  expect(await world.history(id)).toMatchObject([{ status: 'succeeded' }]);
  expect(await world.totals(id)).toMatchObject({ succeeded: 1 });
  await world.change(id, { enabled: false });
});

test('a function does not see what was stored before it was enabled, however far the workers are behind', async () => {
  world.arrivals.length = 0;
  const filters = { events: [{ id: 'late', type: 'events' }] };
  const first = await world.create(sender(world.url('first'), { filters }));
  await world.capture([{ event: 'late', properties: { id: 1 } }]);
  const second = await world.create(sender(world.url('second'), { filters }));
  await world.change(first, { enabled: false });
  await world.capture([{ event: 'late', properties: { id: 2 } }]);
  await world.change(first, { enabled: true });
  await world.capture([{ event: 'late', properties: { id: 3 } }]);
  const runtime = world.start();
  await world.idle();
  await world.stop(runtime);
  const arrived = world.arrivals.map(({ path, body }) => `${path} ${JSON.parse(body).id}`).sort();
  expect(arrived).toEqual(['first 3', 'second 2', 'second 3']);
  for (const id of [first, second]) await world.change(id, { enabled: false });
});

describe('what takes longer than a lease', () => {
  const SHORT = { delivering: { leaseSeconds: 2 } };
  const on = (event: string) => ({ filters: { events: [{ id: event, type: 'events' }] } });
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  let held: (() => void)[] = [];
  const release = () => {
    for (const go of held.splice(0)) go();
  };
  /** Statements that fail, by their name, as long as this answers true. */
  const failing = new Map<string, () => boolean>();
  beforeEach(() => {
    world.arrivals.length = 0;
    held = [];
    world.answer((_arrival, response) => {
      held.push(() => response.end('{}'));
    });
    pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
      const [{ name = '' }] = args as [{ name?: string }];
      if (!failing.get(name)?.()) return query.apply(this, args);
      const error = new Error('Connection terminated unexpectedly');
      const done = args.at(-1);
      if (typeof done !== 'function') return Promise.reject(error);
      return done(error);
    } as typeof pg.Client.prototype.query;
  });
  afterEach(() => {
    pg.Client.prototype.query = query as typeof pg.Client.prototype.query;
    failing.clear();
    release();
    world.answer((_arrival, response) => response.end('{}'));
  });

  test('is not begun by another worker while the one that has it lives', async () => {
    const id = await world.create(sender(world.url(), on('slow')));
    const batched = await world.create(
      sender(world.url(), {
        ...on('slow'),
        hog: "fetch(inputs.url, {'body': arrayMap(item -> item.event.properties.id, items)})",
        delivery: { batch: { max_batch: 3, max_wait_seconds: 0 } },
      }),
    );
    await world.capture([1, 2, 3].map((one) => ({ event: 'slow', properties: { id: one } })));
    const runtimes = [world.start(SHORT), world.start(SHORT)];
    await eventually(async () => held.length === 4);
    for (const [one, count] of [
      [id, 3],
      [batched, 3],
    ] as const) {
      const first = (await leasesOf(one))
        .map(({ due_at }) => due_at)
        .sort()
        .at(-1) as string;
      await eventually(async () => {
        const now = await leasesOf(one, first);
        return now.length === count && now.every(({ is_longer }) => is_longer);
      });
    }
    expect(held).toHaveLength(4);
    release();
    await world.idle();
    await Promise.all(runtimes.map((one) => world.stop(one)));
    expect(world.arrivals).toHaveLength(4);
    for (const one of [id, batched]) {
      expect((await world.history(one)).map(({ status }) => status)).toEqual(Array(3).fill('succeeded'));
      await world.change(one, { enabled: false });
    }
  });

  test('is not begun anew by the worker that has it, also if Postgres did not hear of it', async () => {
    const id = await world.create(sender(world.url(), on('silent')));
    await world.capture([{ event: 'silent' }]);
    failing.set('extend-invocation-leases', () => true);
    const runtime = world.start(SHORT);
    await eventually(async () => held.length === 1);
    const [first] = await leasesOf(id);
    await eventually(async () => (await leasesOf(id, first?.due_at)).some(({ is_longer }) => is_longer));
    expect(held).toHaveLength(1);
    release();
    await world.idle();
    await world.stop(runtime);
    expect(world.arrivals).toHaveLength(1);
    expect(await world.history(id)).toMatchObject([{ status: 'succeeded' }]);
    await world.change(id, { enabled: false });
  });

  test('is written when Postgres takes it again', async () => {
    const id = await world.create(sender(world.url(), on('unwritten')));
    await world.capture([{ event: 'unwritten' }]);
    let refused = 0;
    // The pauses between the tries add up to more than a lease.
    failing.set('store-invocation-results', () => {
      refused += 1;
      return refused <= 7;
    });
    const runtime = world.start(SHORT);
    await eventually(async () => held.length === 1);
    release();
    await world.idle();
    await world.stop(runtime);
    expect(refused).toBe(8);
    expect(world.arrivals).toHaveLength(1);
    expect(await world.history(id)).toMatchObject([{ status: 'succeeded' }]);
    await world.change(id, { enabled: false });
  });
});

describe('before a request', () => {
  const logger = createLogger({ name: 'test', level: 'silent' });
  const SECONDS = 60;
  /** As if the claim had been made so many seconds ago. */
  const secondsAgo = (seconds: number) => performance.now() - seconds * 1_000;

  test('a lease that may end during it is made longer', async () => {
    const leases = new Leases(world.api.pool, logger, SECONDS);
    const id = await world.create({ ...sender(world.url()), enabled: false });
    await enqueue(id);
    const [row] = leases.hold(await take(id, FIRST), FIRST, secondsAgo(55));
    await world.api.pool.query(`update function_queue set due_at = clock_timestamp() + interval '5 seconds'`);
    expect(await leases.secure(row!, FIRST)).toBe(true);
    const { rows } = await world.api.pool.query(
      `select due_at > clock_timestamp() + interval '30 seconds' as is_longer from function_queue where function_id = $1`,
      [id],
    );
    expect(rows).toEqual([{ is_longer: true }]);
    await world.api.pool.query('delete from function_queue');
    // It is not asked again, because it is known for how long it is ours.
    expect(await leases.secure(row!, FIRST)).toBe(true);
    leases.release(row!, FIRST);
    expect(await leases.secure(row!, FIRST)).toBe(false);
  });

  test('it shows that an invocation belongs to somebody else by now', async () => {
    const leases = new Leases(world.api.pool, logger, SECONDS);
    const id = await world.create({ ...sender(world.url()), enabled: false });
    await enqueue(id);
    const [row] = leases.hold(await take(id, FIRST), FIRST, secondsAgo(55));
    await expire();
    await take(id, SECOND);
    expect(await leases.secure(row!, FIRST)).toBe(false);
    await world.api.pool.query('delete from function_queue');
  });

  test('what is claimed again here goes on under its new lease, unless another worker had it meanwhile', async () => {
    const leases = new Leases(world.api.pool, logger, SECONDS);
    const id = await world.create({ ...sender(world.url()), enabled: false });
    await enqueue(id);
    const [row] = leases.hold(await take(id, FIRST), FIRST, secondsAgo(70));
    await expire();
    expect(leases.hold(await take(id, SECOND), SECOND, secondsAgo(0))).toEqual([]);
    expect(leases.leaseOf(row!.seq, FIRST)).toBe(SECOND);
    expect(await leases.secure(row!, FIRST)).toBe(true);

    await expire();
    const OTHERS = '00000000-0000-4000-8000-000000000003';
    await take(id, OTHERS);
    await expire();
    const [again] = leases.hold(await take(id, FIRST), FIRST, secondsAgo(0));
    expect(again).toMatchObject({ seq: row!.seq, was_lease: OTHERS });
    await world.api.pool.query('delete from function_queue');
  });
});
