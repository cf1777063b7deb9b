// What keeps two workers from doing the same thing, and one from waiting for the other: conditions of statements, asked of
// Postgres one by one.
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Transaction, transaction } from '../../../db/pool.ts';
import { InternalDispatcher } from '../../../functions/dispatch/internal.ts';
import { takeBatches } from '../../../functions/rows/batches.ts';
import { keepBatchProgress, leaveBatch } from '../../../functions/rows/delivery-batches.ts';
import { takeLate } from '../../../functions/rows/late-batches.ts';
import { wakeNext } from '../../../functions/rows/lines.ts';
import { lockFlood } from '../../../functions/rows/positions.ts';
import { claim, extendLeases, giveBack } from '../../../functions/rows/queue.ts';
import { repeatInvocations } from '../../../functions/rows/reruns.ts';
import { NO_PROGRESS } from '../../../functions/rules/progress.ts';
import { createRunner } from '../../../functions/runner.ts';
import type { Tenant } from '../../support/api.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const OURS = '00000000-0000-4000-8000-000000000001';
const THEIRS = '00000000-0000-4000-8000-000000000002';
let bob: Tenant;
let id: string;
beforeAll(async () => {
  bob = await world.api.createTenant('Bob');
});
beforeEach(async () => {
  await rows('delete from function_queue');
  id = await world.create({ ...sender(world.url()), enabled: false });
});

const rows = async (sql: string, values: unknown[] = []) => (await world.api.pool.query(sql, values)).rows;
const key = () => ({ projectId: world.anna.projectId, functionId: id });
const take = (lease: string, count: number, client: Pick<Transaction, 'query'> = world.api.pool) =>
  claim(client, [{ ...key(), count, since: '1970-01-01T00:00:00Z' }], { lease, seconds: 60 });
const seqs = (some: readonly { seq: number }[]) => some.map(({ seq }) => seq).sort((a, b) => a - b);

/** Queues invocations of the function. Returns their numbers. */
async function enqueue(count: number, fields: Record<string, unknown> = {}): Promise<number[]> {
  const names = Object.keys(fields);
  const columns = names.map((name) => `, ${name}`).join('');
  const values = names.map((_, at) => `, $${at + 4}`).join('');
  return seqs(
    await rows(
      `insert into function_queue (id, project_id, function_id, version, clock, seed${columns})
       select gen_random_uuid(), $1, $2, 1, now(), 1${values} from generate_series(1, $3) returning seq`,
      [world.anna.projectId, id, count, ...Object.values(fields)],
    ),
  );
}
const leased = async (lease: string) =>
  seqs(await rows('select seq from function_queue where lease = $1', [lease]));

/** What is asked for while somebody else holds what is asked for: it must not wait for them. */
async function beside<T>(
  held: (client: Transaction) => Promise<T>,
  asked: () => Promise<T>,
): Promise<[T, T]> {
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const { promise: first, resolve, reject } = Promise.withResolvers<T>();
  const holding = transaction(world.api.pool, async (client) => {
    await held(client).then(resolve, reject);
    await over;
  });
  try {
    const one = await first;
    const late = pause(10_000, undefined, { ref: false }).then(() =>
      Promise.reject(new Error('it waits for who holds it')),
    );
    late.catch(() => undefined);
    return [one, await Promise.race([asked(), late])];
  } finally {
    end();
    await holding;
  }
}

describe('two at once take different things, and neither waits for the other:', () => {
  test('invocations', async () => {
    const all = await enqueue(6);
    const [one, other] = await beside(
      (client) => take(OURS, 3, client),
      () => take(THEIRS, 3),
    );
    expect(seqs([...one, ...other])).toEqual(all);
    expect([one.length, other.length]).toEqual([3, 3]);
    expect([await leased(OURS), await leased(THEIRS)]).toEqual([seqs(one), seqs(other)]);
  });

  test('batches of events', async () => {
    await world.create(sender(world.url()));
    for (let at = 0; at < 4; at += 1) await world.capture([{ event: `e${at}` }]);
    const [one, other] = await beside(
      (client) => takeBatches(client, 2),
      () => transaction(world.api.pool, (client) => takeBatches(client, 2)),
    );
    const ids = [...one, ...other].map((batch) => batch.id);
    expect([new Set(ids).size, one.length, other.length]).toEqual([4, 2, 2]);
    await rows('delete from function_batches');
    await rows('update functions set enabled = false');
  });

  test('events that were left for later', async () => {
    for (const { projectId } of [world.anna, bob])
      await rows('insert into function_late_batches (project_id, keys) values ($1, $2)', [
        projectId,
        Buffer.alloc(28),
      ]);
    const taken = await beside(
      (client) => takeLate(client),
      () => transaction(world.api.pool, (client) => takeLate(client)),
    );
    expect(taken.map((one) => one?.project_id).sort()).toEqual(
      [world.anna.projectId, bob.projectId].sort((a, b) => a - b),
    );
    await rows('delete from function_late_batches');
  });

  test('functions that keep positions', async () => {
    const other = await world.create({ ...sender(world.url()), enabled: false });
    for (const one of [id, other])
      await rows('insert into function_floods (project_id, function_id) values ($1, $2)', [
        world.anna.projectId,
        one,
      ]);
    const locked = await beside(
      (client) => lockFlood(client),
      () => transaction(world.api.pool, (client) => lockFlood(client)),
    );
    expect(locked.map((one) => one?.functionId).sort()).toEqual([id, other].sort());
    await rows('delete from function_floods');
  });
});

describe('what somebody else has stays theirs', () => {
  test('when a claim is given back whose answer was lost', async () => {
    await enqueue(4);
    const [ours, theirs] = [seqs(await take(OURS, 2)), seqs(await take(THEIRS, 2))];
    await giveBack(world.api.pool, [key()], OURS);
    expect(await leased(THEIRS)).toEqual(theirs);
    expect(await leased(OURS)).toEqual([]);
    expect(seqs(await take(OURS, 10))).toEqual(ours);
  });

  test('when leases are made longer', async () => {
    await enqueue(4);
    const [ours, theirs] = [seqs(await take(OURS, 2)), seqs(await take(THEIRS, 2))];
    const dueOf = (lease: string) =>
      rows('select seq, due_at from function_queue where lease = $1 order by seq', [lease]);
    const before = await dueOf(THEIRS);
    const asked = [...ours, ...theirs].map((seq) => ({ seq, lease: OURS }));
    const longer = await extendLeases(world.api.pool, asked, 600);
    expect([...longer].sort()).toEqual(ours.map((seq) => [seq, true]));
    expect(await dueOf(THEIRS)).toEqual(before);
  });

  test('when the progress of a batch is stored, or a part of it is given back', async () => {
    const batch = '00000000-0000-4000-8000-000000000009';
    const [seq = 0] = await enqueue(2, { batch });
    const theirs = seqs(await take(THEIRS, 2));
    const progress = { seq, batch, lease: OURS, progress: NO_PROGRESS, seconds: 60 };
    expect(await keepBatchProgress(world.api.pool, progress)).toBe(false);
    expect(await leaveBatch(world.api.pool, theirs, OURS)).toBe(false);
    expect(await rows('select lease, batch, progress from function_queue')).toEqual(
      Array(2).fill({ lease: THEIRS, batch, progress: null }),
    );
    expect(await keepBatchProgress(world.api.pool, { ...progress, lease: THEIRS })).toBe(true);
    expect(await leaveBatch(world.api.pool, theirs, THEIRS)).toBe(true);
  });

  test('when invocations are run again by their ids', async () => {
    const other = await world.create({ ...sender(world.url()), enabled: false });
    const [ended] = await rows(
      `insert into function_invocations (project_id, id, function_id, version, status, attempts, created_at, finished_at)
       values ($1, gen_random_uuid(), $2, 1, 'failed', '[]', now(), now()) returning id`,
      [world.anna.projectId, other],
    );
    const repeated = { ids: [ended.id], statuses: null, window: null, version: null };
    const of = (projectId: number, functionId: string) =>
      repeatInvocations(world.api.pool, { projectId, functionId }, repeated);
    expect(await of(world.anna.projectId, id)).toBe(0);
    expect(await of(bob.projectId, other)).toBe(0);
    expect(await of(world.anna.projectId, other)).toBe(1);
  });
});

test.each([
  { name: 'that has not been attempted is due', fields: {}, isWoken: true },
  { name: 'that waits for its next attempt goes on waiting', fields: { attempt: 1 }, isWoken: false },
  { name: 'that sleeps goes on sleeping', fields: { progress: '{}' }, isWoken: false },
  { name: 'that somebody has stays theirs', fields: { lease: THEIRS }, isWoken: false },
])('when the one before it has ended, the next of a line $name', async ({ fields, isWoken }) => {
  const due = new Date(Date.now() + 3_600_000);
  await enqueue(1, { line: 'ada', due_at: due, ...fields });
  await wakeNext(world.api.pool, [{ ...key(), line: 'ada' }]);
  const [{ is_due: isDue }] = await rows('select due_at <= clock_timestamp() as is_due from function_queue');
  expect(isDue).toBe(isWoken);
});

test('events of Sluice wait behind those of others if the filters of their project take long, and none is lost', async () => {
  const { pool, config } = world.api;
  const event = 'told';
  for (const tenant of [world.anna, bob])
    await world.create(
      { type: 'internal_destination', hog: 'return 1', filters: { events: [{ id: event, type: 'events' }] } },
      tenant,
    );
  await rows('delete from function_internal_events');
  for (const { projectId, count } of [
    { projectId: world.anna.projectId, count: 10 },
    { projectId: bob.projectId, count: 1 },
  ])
    await rows(
      `insert into function_internal_events (project_id, uuid, event, distinct_id, properties, created_at)
       select $1, gen_random_uuid(), $2, 'ada', '{}', clock_timestamp() from generate_series(1, $3)`,
      [projectId, event, count],
    );
  const runner = createRunner();
  const slow: typeof runner = {
    ...runner,
    async match(projectId, ...job) {
      if (projectId === world.anna.projectId) await pause(300);
      return runner.match(projectId, ...job);
    },
  };
  const site = config.SLUICE_PUBLIC_URL;
  const dispatcher = new InternalDispatcher({ pool, runner: slow, site, queued: () => undefined });
  const queued = async ({ projectId }: Tenant) =>
    (await rows('select from function_queue where project_id = $1', [projectId])).length;
  try {
    expect(await dispatcher.turn()).toBe(11);
    expect(await queued(bob)).toBe(1);
    expect(await queued(world.anna)).toBeLessThan(10);
    while ((await dispatcher.turn()) > 0);
    expect([await queued(world.anna), await queued(bob)]).toEqual([10, 1]);
  } finally {
    await runner.close();
  }
});
