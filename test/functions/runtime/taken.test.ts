import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Dispatcher, type Taken } from '../../../functions/dispatch/dispatcher.ts';
import { claim, type NewInvocation, type QueueRow } from '../../../functions/rows/queue.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { runtimeForFile, sender } from './world.ts';

// What is claimed in the transaction that queues it.
const world = runtimeForFile({ starts: false });
const LEASE = '00000000-0000-4000-8000-000000000001';
const OTHER = '00000000-0000-4000-8000-000000000002';
/** What the dispatcher told. */
let begun: QueueRow[];
let dropped: number;
let told: string[];
let takes: (invocations: readonly NewInvocation[]) => readonly NewInvocation[];
let dispatcher: Dispatcher;

function take(invocations: readonly NewInvocation[]): Taken {
  return {
    ...{ ids: new Set(takes(invocations).map(({ id }) => id)), lease: LEASE, seconds: 60 },
    begin: (rows) => begun.push(...rows),
    drop: () => {
      dropped += 1;
    },
  };
}

beforeEach(() => {
  [begun, dropped, told, takes] = [[], 0, [], (invocations) => invocations];
  const { pool, config } = world.api;
  dispatcher = new Dispatcher({
    ...{ pool, readPool: pool, take, site: config.SLUICE_PUBLIC_URL },
    logger: createLogger({ name: 'test', level: 'silent' }),
    queued: (functions) => told.push(...functions.map(({ functionId }) => functionId)),
  });
});
afterEach(async () => {
  await dispatcher.close();
  await world.api.pool.query(
    'truncate function_queue, function_batches, function_late_batches, function_floods, function_positions',
  );
  await world.api.pool.query('update functions set enabled = false');
});

const queue = async () =>
  (await world.api.pool.query('select * from function_queue order by seq')).rows as (QueueRow & {
    lease: string | null;
    due_at: string;
  })[];
const isSoon = (time: string, seconds: number) =>
  Math.abs(Date.parse(time) - Date.now() - seconds * 1_000) < 30_000;

test('it has its lease when others see it, and nobody else is told of it', async () => {
  const [one, two] = [await world.create(sender(world.url())), await world.create(sender(world.url()))];
  takes = (invocations) => invocations.filter(({ functionId }) => functionId === one);
  await world.capture([{ properties: { id: 1 } }]);
  expect(await dispatcher.turn()).toBe(1);
  const rows = await queue();
  const leases = Object.fromEntries(rows.map((row) => [row.function_id, row.lease]));
  expect(leases).toEqual({ [one]: LEASE, [two]: null });
  const dueAt = new Map(rows.map((row) => [row.function_id, row.due_at]));
  expect([isSoon(dueAt.get(one)!, 60), isSoon(dueAt.get(two)!, 0)]).toEqual([true, true]);
  expect(begun.map((row) => row.function_id)).toEqual([one]);
  expect(told).toEqual([two]);
  expect(dropped).toBe(0);
});

test('it has all that a claim would have returned', async () => {
  const id = await world.create(sender(world.url()));
  await world.capture([
    { timestamp: '2026-11-01T10:00:00.123Z', properties: { id: 1, $groups: { company: 'x' } } },
  ]);
  expect(await dispatcher.turn()).toBe(1);
  await world.api.pool.query('update function_queue set lease = null, due_at = clock_timestamp()');
  const want = { projectId: world.anna.projectId, functionId: id, count: 1, since: '1970-01-01T00:00:00Z' };
  const [claimed] = await claim(world.api.pool, [want], { lease: OTHER, seconds: 60 });
  expect(begun).toEqual([{ ...claimed, was_due: begun[0]?.created_at }]);
});

test('nothing begins if the transaction fails, and the claim is given up', async () => {
  await world.create(sender(world.url()));
  await world.capture([{ properties: { id: 1 } }]);
  await world.api.pool.query(
    'alter table function_queue add constraint broken check (seed is null) not valid',
  );
  try {
    await expect(dispatcher.turn()).rejects.toThrow('broken');
  } finally {
    await world.api.pool.query('alter table function_queue drop constraint broken');
  }
  expect([begun, dropped, await queue()]).toEqual([[], 1, []]);
  expect(await dispatcher.turn()).toBe(1);
  expect([begun.length, dropped]).toEqual([1, 1]);
});

test('what is not queued, because its function keeps positions, does not begin', async () => {
  const id = await world.create(sender(world.url()));
  await world.api.pool.query('insert into function_floods (project_id, function_id) values ($1, $2)', [
    ...[world.anna.projectId, id],
  ]);
  await world.capture([{ properties: { id: 1 } }]);
  expect(await dispatcher.turn()).toBe(1);
  expect([begun, await queue()]).toEqual([[], []]);
  const { rows } = await world.api.pool.query('select count from function_positions');
  expect(rows).toEqual([{ count: 1 }]);
});
