import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { dropExpiredEvents, WAITED_DAYS } from '../../../db/event-partitions.ts';
import { transaction } from '../../../db/pool.ts';
import { Dispatcher } from '../../../functions/dispatch/dispatcher.ts';
import { Flood } from '../../../functions/dispatch/flood.ts';
import { FUNCTIONS } from '../../../functions/manifest.ts';
import { deleteForgotten } from '../../../functions/rows/forgotten-persons.ts';
import { eventsWanted, noteLosses } from '../../../functions/rows/losses.ts';
import { keepPositions } from '../../../functions/rows/positions.ts';
import { queueDispatched } from '../../../functions/rows/queue.ts';
import { deleteOfPersons } from '../../../functions/rows/upkeep.ts';
import { createLogger, type Logger } from '../../../telemetry/logger.ts';
import { dropHooks } from '../../../tenancy/product.ts';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
let dispatcher: Dispatcher;
let flood: Flood;
let missing = 0;
afterAll(() => dispatcher?.close());
const anyTurn = async () =>
  (await dispatcher.turn()) || (await dispatcher.heavyTurn()) || (await dispatcher.lateTurn());
beforeAll(() => {
  const { pool, config } = world.api;
  const logger = createLogger({ name: 'test', level: 'silent' });
  const site = config.SLUICE_PUBLIC_URL;
  dispatcher = new Dispatcher({ pool, readPool: pool, logger, site, queued: () => undefined });
  const deps = {
    pool,
    queued: () => undefined,
    missing(count: number) {
      missing += count;
    },
  };
  flood = new Flood(deps, { most: 20, least: 10, atOnce: 1_000 });
});
beforeEach(async () => {
  world.arrivals.length = 0;
  await world.api.pool.query('truncate function_queue, function_positions, function_floods, function_losses');
});

let next = 0;
/** Captures so many events, and has functions see them. */
async function store(count: number, event = 'paid', isSeen = true): Promise<void> {
  await world.capture(
    Array.from({ length: count }, () => ({
      event,
      timestamp: new Date(Date.UTC(2026, 0, 1) + next * 1_000).toISOString(),
      properties: { id: next++ },
    })),
  );
  // On a busy machine filters may take long enough for turns of their own.
  while (isSeen && (await anyTurn()) > 0);
}
const count = async (sql: string, values: unknown[] = []): Promise<number> =>
  (await world.api.pool.query(`select coalesce((${sql}), 0)::int as count`, values)).rows[0].count;
const queued = (id: string) => count('select count(*) from function_queue where function_id = $1', [id]);
const positions = (id: string) =>
  count('select sum(count) from function_positions where function_id = $1', [id]);
const floods = () => count('select count(*) from function_floods');
const on = (event: string, more: object = {}) =>
  sender(world.url(event), { filters: { events: [{ id: event, type: 'events' }] }, ...more });

describe('a function with too many waiting invocations', () => {
  test('keeps positions of what comes in, others do not, and all is delivered once and in its order', async () => {
    const first = next;
    const id = await world.create(on('paid', { delivery: { ordering: 'distinct_id' } }));
    const other = await world.create(on('other'));
    await store(15);
    await flood.look();
    await store(15);
    expect(await floods()).toBe(0);
    await flood.look();
    expect(await floods()).toBe(1);
    await store(40);
    await store(5, 'other');
    await store(10);
    expect([await queued(id), await positions(id)]).toEqual([30, 50]);
    expect([await queued(other), await positions(other)]).toEqual([5, 0]);
    // There is no room yet.
    expect(await flood.turn()).toBe(0);
    expect(await positions(id)).toBe(50);
    const runtime = world.start();
    await eventually(async () => (await floods()) === 0);
    await world.idle();
    await world.stop(runtime);
    const paid = world.arrivals.filter(({ path }) => path === 'paid').map(({ body }) => JSON.parse(body).id);
    expect(paid).toEqual(
      Array.from({ length: 85 }, (_, index) => first + index).filter(
        (one) => one < first + 70 || one >= first + 75,
      ),
    );
    const history = await world.history(id);
    expect(new Set(history.map((one) => one.event_uuid)).size).toBe(80);
    expect(new Set(history.map((one) => one.distinct_id))).toEqual(new Set(['ada']));
    await world.change(id, { enabled: false });
    await world.change(other, { enabled: false });
  });

  test('goes on as before only when nobody keeps positions of it: those who do hold their function', async () => {
    let done: Promise<number> | undefined;
    const waiters = () =>
      count(
        `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
    const id = await world.create(on('paid'));
    await world.api.pool.query('insert into function_floods (project_id, function_id) values ($1, $2)', [
      ...[world.anna.projectId, id],
    ]);
    await transaction(world.api.pool, async (client) => {
      const [uuid, timestamp] = ['00000000-0000-4000-8000-000000000001', '2026-01-01T00:00:00Z'];
      const invocation = {
        ...{ id: uuid, projectId: world.anna.projectId, functionId: id, version: 1, mapping: null },
        ...{ distinctId: 'ada', personId: null, groups: null, clock: 0, seed: 1, uuid, timestamp },
      };
      const dispatched = { invocations: [invocation], claim: undefined, counts: [], batches: [] };
      const { flooded } = await queueDispatched(client, dispatched);
      expect(flooded).toEqual(new Set([id]));
      const turn = flood.turn();
      await eventually(async () => (await waiters()) > 0);
      await keepPositions(client, [invocation]);
      done = turn;
    });
    await done;
    expect(await floods()).toBe(1);
    // Its event is gone, which is counted.
    missing = 0;
    expect(await flood.turn()).toBe(1);
    expect(missing).toBe(1);
    await flood.turn();
    expect(await floods()).toBe(0);
    await world.change(id, { enabled: false });
  });
});

describe('positions', () => {
  const keepPositionsOf = (id: string) =>
    world.api.pool.query('insert into function_floods (project_id, function_id) values ($1, $2)', [
      ...[world.anna.projectId, id],
    ]);
  const flooded = async () => {
    const id = await world.create(on('paid'));
    await keepPositionsOf(id);
    await store(12);
    expect(await positions(id)).toBe(12);
    return id;
  };
  /** The same, with some invocations that are queued. */
  const floodedAndQueued = async (count: number) => {
    const id = await flooded();
    await world.api.pool.query('delete from function_floods');
    await store(count);
    await keepPositionsOf(id);
    return id;
  };
  const cancel = async (id: string, body: object) => {
    const path = `/api/projects/${world.anna.projectId}/hog_functions/${id}/invocations/cancel/`;
    return (await world.api.request(world.anna, 'POST', path, body)).json();
  };
  const turns = async () => {
    let done = 0;
    for (let count = 1; count > 0; done += count) count = await flood.turn();
    return done;
  };
  const deliver = async () => {
    const runtime = world.start();
    await eventually(async () => (await floods()) === 0);
    await world.idle();
    await world.stop(runtime);
  };
  const statuses = async (id: string) =>
    Object.fromEntries(
      [...Map.groupBy(await world.history(id), (one) => one.status as string)].map(([status, all]) => [
        ...[status, new Set(all.map((one) => one.event_uuid)).size],
      ]),
    );

  test('are cancelled with what waits, and what comes later is delivered', async () => {
    const id = await floodedAndQueued(3);
    expect([await queued(id), await positions(id)]).toEqual([3, 12]);
    expect(await cancel(id, { search: 'quota' })).toEqual({
      cancelled_count: 0,
      has_more: false,
      looked_at_before: null,
    });
    expect(await cancel(id, { before: '2020-01-01T00:00:00Z' })).toEqual({
      cancelled_count: 0,
      has_more: false,
      looked_at_before: null,
    });
    expect(await cancel(id, { before: '2100-01-01T00:00:00Z' })).toEqual({
      cancelled_count: 15,
      has_more: false,
      looked_at_before: null,
    });
    expect(await cancel(id, { before: '2100-01-01T00:00:00Z' })).toEqual({
      cancelled_count: 0,
      has_more: false,
      looked_at_before: null,
    });
    const later = next;
    await store(4);
    await deliver();
    expect(world.arrivals.map(({ body }) => JSON.parse(body).id).sort()).toEqual(
      Array.from({ length: 4 }, (_, index) => later + index).sort(),
    );
    expect(await statuses(id)).toEqual({ cancelled: 15, succeeded: 4 });
    await world.change(id, { enabled: false });
  });

  test('that are cancelled leave although the queue is full', async () => {
    const id = await floodedAndQueued(10);
    await world.api.pool.query("update function_positions set cancelled = 'Cancelled by a test.'");
    expect(await turns()).toBe(12);
    expect([await queued(id), await positions(id), await statuses(id)]).toEqual([10, 0, { cancelled: 12 }]);
    await world.change(id, { enabled: false });
  });

  test('of a person that is deleted are left out, and what the same person does later is delivered', async () => {
    const id = await flooded();
    const { rows } = await world.api.pool.query(
      `select distinct e.person_id as id from function_positions p cross join lateral unnest(p.uuids) as u (uuid)
       join events e on e.uuid = u.uuid`,
    );
    const persons = rows.map((row) => row.id);
    expect(persons).toHaveLength(1);
    await transaction(world.api.pool, async (client) => {
      await deleteOfPersons(client, world.anna.projectId, persons);
      const { rows } = await client.query(
        'select count(*)::int as n from function_positions where xmin = pg_current_xact_id()::xid',
      );
      // However many positions there are, none of them is written again.
      expect(rows[0].n).toBe(0);
    });
    expect(await deleteForgotten(world.api.pool, 100)).toBe(0);
    const later = next;
    await store(1);
    missing = 0;
    expect(await turns()).toBe(13);
    expect([await queued(id), missing]).toEqual([1, 12]);
    await deliver();
    expect(world.arrivals.map(({ body }) => JSON.parse(body).id)).toEqual([later]);
    await world.api.pool.query('delete from function_floods');
    expect(await deleteForgotten(world.api.pool, 100)).toBe(1);
    await world.change(id, { enabled: false });
  });

  test('of a function that is switched off and on again end as cancelled, and so does what is queued', async () => {
    const id = await floodedAndQueued(10);
    await world.change(id, { enabled: false });
    await world.change(id, { enabled: true });
    const later = next;
    await store(3);
    // There is no room for the others yet.
    expect([await turns(), await positions(id)]).toEqual([12, 3]);
    await deliver();
    expect(world.arrivals.map(({ body }) => JSON.parse(body).id).sort((a, b) => a - b)).toEqual([
      ...[later, later + 1, later + 2],
    ]);
    expect(await statuses(id)).toEqual({ cancelled: 22, succeeded: 3 });
    await world.change(id, { enabled: false });
  });

  test('and that were cancelled do not count as lost if their partition is dropped', async () => {
    const id = await flooded();
    const [{ names }] = (
      await world.api.pool.query(
        `select array_agg(distinct e.tableoid::regclass::text) as names from function_positions p
         cross join lateral unnest(p.uuids) as u (uuid) join events e on e.uuid = u.uuid where p.function_id = $1`,
        [id],
      )
    ).rows;
    const lost = () =>
      transaction(world.api.pool, async (client) => {
        let sum = 0;
        for (const name of names) sum += await noteLosses(client, name);
        await client.query('delete from function_losses');
        return sum;
      });
    expect(await lost()).toBe(12);
    await world.api.pool.query("update function_positions set cancelled = 'Cancelled by a test.'");
    expect(await lost()).toBe(0);
    expect(await eventsWanted(world.api.pool, names[0])).toBe(true);
    await world.change(id, { enabled: false });
  });

  test('of a function that is switched off or deleted end as cancelled', async () => {
    for (const end of [{ enabled: false }, { deleted: true }]) {
      const id = await flooded();
      await world.change(id, end);
      expect(await turns()).toBe(12);
      expect([await queued(id), await positions(id)]).toEqual([0, 0]);
      expect(await statuses(id)).toEqual({ cancelled: 12 });
      await world.api.pool.query('delete from function_floods');
    }
    expect(world.arrivals).toEqual([]);
  });
});

test('retention waits for functions, and then counts what they lose', async () => {
  const { pool } = world.api;
  await pool.query('truncate function_batches');
  const id = await world.create(on('paid'));
  await store(4);
  await pool.query('insert into function_floods (project_id, function_id) values ($1, $2)', [
    ...[world.anna.projectId, id],
  ]);
  await store(3);
  await store(2, 'paid', false);
  await pool.query(
    `with b as (delete from function_batches returning keys)
     insert into function_late_batches (project_id, keys) select $1, keys from b`,
    [world.anna.projectId],
  );
  await store(5, 'paid', false);
  const lines: unknown[] = [];
  const note = (about: object, msg?: string) => void lines.push({ ...about, msg });
  const logger = { info: note, warn: note } as unknown as Logger;
  const hooks = dropHooks(pool, [FUNCTIONS], logger);
  const { rows: weeks } = await pool.query('select distinct tableoid::regclass::text as name from events');
  expect(weeks).toHaveLength(1);
  const [{ name }] = weeks;
  const digits = name.slice(-8);
  const end =
    Date.parse(`${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}T00:00:00Z`) + 7 * 86_400_000;
  const drop = (days: number) => dropExpiredEvents(pool, new Date(end + days * 86_400_000), 1, hooks);
  await drop(1);
  await drop(WAITED_DAYS);
  expect(await count('select count(*) from events')).toBeGreaterThanOrEqual(14);
  expect(lines).toContainEqual(
    expect.objectContaining({
      partition: name,
      msg: expect.stringContaining('retention waits for functions'),
    }),
  );
  await drop(WAITED_DAYS + 1);
  expect(await count('select count(*) from events')).toBe(0);
  const { rows } = await pool.query(
    'select function_id, partition, events from function_losses order by events',
  );
  expect(rows).toEqual([
    { function_id: id, partition: name, events: 7 },
    { function_id: null, partition: name, events: 7 },
  ]);
  expect(await world.totals(id)).toMatchObject({ lost: 7 });
  expect(lines).toContainEqual(
    expect.objectContaining({ events: 14, msg: 'retention deletes events that functions have not seen' }),
  );
  // What waited ends, and is listed.
  const runtime = world.start();
  await eventually(async () => (await world.history(id)).length === 4 && (await floods()) === 0);
  await world.stop(runtime);
  expect((await world.history(id)).map((one) => one.status)).toEqual(Array(4).fill('cancelled'));
  expect(world.arrivals).toEqual([]);
});
