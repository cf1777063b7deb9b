import { expect, test } from '@jest/globals';
import pg from 'pg';
import { uuidv7 } from '../../../db/uuid.ts';
import { claim, end, keepProgress, postpone } from '../../../functions/rows/queue.ts';
import { NO_PROGRESS } from '../../../functions/rules/progress.ts';
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
const expire = () =>
  world.api.pool.query("update function_queue set due_at = clock_timestamp() - interval '1 second'");

test('what a worker says late of an invocation that belongs to somebody else counts for nothing', async () => {
  const id = await world.create({ ...sender(world.url()), enabled: false });
  await enqueue(id);
  const [row] = await take(id, FIRST);
  expect(row).toMatchObject({ was_lost: false });
  expect(await take(id, SECOND)).toEqual([]);
  await expire();
  const [again] = await take(id, SECOND);
  expect(again).toMatchObject({ id: row?.id, was_lost: true });
  const late = { lease: FIRST, row: row!, status: 'succeeded' as const, error: null, attempts: '[]' };
  expect(await end(world.api.pool, [late])).toEqual(new Set());
  const postponed = { seq: row!.seq, lease: FIRST, attempt: 1, progress: null, after: 0 };
  expect(await postpone(world.api.pool, [postponed])).toEqual(new Set());
  const progress = { seq: row!.seq, lease: FIRST, progress: NO_PROGRESS, seconds: 60 };
  expect(await keepProgress(world.api.pool, progress)).toBe(false);
  expect(await world.history(id)).toEqual([]);
  expect(await end(world.api.pool, [{ ...late, lease: SECOND }])).toEqual(new Set([row!.seq]));
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
