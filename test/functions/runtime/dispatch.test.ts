import { beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
beforeEach(() => {
  world.arrivals.length = 0;
});
const ids = () => world.arrivals.map(({ body }) => JSON.parse(body).id as number).sort((a, b) => a - b);
const events = (count: number, event = 'paid') =>
  Array.from({ length: count }, (_, index) => ({ event, properties: { id: index + 1 } }));
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const onPaid = (more: object = {}) =>
  sender(world.url(), { filters: { events: [{ id: 'paid', type: 'events' }] }, ...more });

describe('events that functions have not seen', () => {
  test('are found by their keys if they do not lie where they were expected', async () => {
    const id = await world.create(onPaid());
    await world.capture(events(40));
    await world.capture(events(60).slice(40));
    const { rowCount } = await world.api.pool.query(
      `update function_batches set from_page = case when events = 40 then 100000 end, to_page = 100001`,
    );
    expect(rowCount).toBe(2);
    const runtime = world.start();
    await world.idle();
    await world.stop(runtime);
    expect(ids()).toEqual(numbers(60));
    await world.change(id, { enabled: false });
  });

  test('are found once if only some of them lie where they were expected', async () => {
    const id = await world.create(onPaid());
    const padding = 'x'.repeat(1_000);
    await world.capture(events(40).map((one) => ({ ...one, properties: { ...one.properties, padding } })));
    const { rows } = await world.api.pool.query(
      'update function_batches set to_page = from_page + 3 returning old.to_page - from_page as pages',
    );
    expect(rows).toEqual([{ pages: expect.any(Number) }]);
    expect(rows[0].pages).toBeGreaterThan(4);
    const runtime = world.start();
    await world.idle();
    await world.stop(runtime);
    expect(ids()).toEqual(numbers(40));
    expect(await world.totals(id)).toMatchObject({ triggered: 40 });
    await world.change(id, { enabled: false });
  });

  test('are found if their rows were moved, as a restored backup does', async () => {
    const id = await world.create(onPaid());
    await world.capture(events(30));
    await world.api.pool.query(`create table moved as select * from events`);
    await world.api.pool.query('delete from events');
    await world.api.pool.query('insert into events select * from moved');
    const runtime = world.start();
    await world.idle();
    await world.stop(runtime);
    expect(ids()).toEqual(numbers(30));
    await world.change(id, { enabled: false });
  });

  test('that were deleted meanwhile do not stop the others', async () => {
    const id = await world.create(onPaid());
    await world.capture(events(5));
    await world.api.pool.query(`delete from events where properties->>'id' in ('2', '4')`);
    const runtime = world.start();
    await world.idle();
    await world.stop(runtime);
    expect(ids()).toEqual([1, 3, 5]);
    await world.change(id, { enabled: false });
  });

  test.each([
    { part: 'filters', value: { bytecode: 5 } },
    { part: 'filters', value: null },
    { part: 'filters', value: { bytecode: ['_H', 1, 99_999, { a: 1 }], events: [null] } },
    { part: 'filters', value: { bytecode: ['_H', 1, 32, {}, 1, -5, 2, 'lower'] } },
    { part: 'mappings', value: { filters: {} } },
    { part: 'masking', value: { bytecode: 5 } },
  ])('are not kept from others by a function that is damaged: $part as $value', async ({ part, value }) => {
    const bob = await world.api.createTenant('Bob');
    const damaged = await world.create(onPaid(), bob);
    const sound = [await world.create(onPaid(), bob), await world.create(onPaid())];
    await world.api.pool.query(`update functions set ${part} = $2 where id = $1`, [
      damaged,
      JSON.stringify(value),
    ]);
    await world.capture(events(2), bob);
    await world.capture(events(2));
    const runtime = world.start();
    await eventually(async () => world.arrivals.length >= 4);
    await world.idle();
    await world.stop(runtime);
    expect(ids()).toEqual([1, 1, 2, 2]);
    expect(await world.totals(damaged, bob)).toMatchObject({ filtering_failed: 2 });
    for (const id of sound)
      expect(await world.totals(id, id === sound[0] ? bob : world.anna)).toMatchObject({ succeeded: 2 });
    await world.api.pool.query('update functions set enabled = false');
  });

  test('are left to turns of their own if the filters of their project take long; those of others are not', async () => {
    const bob = await world.api.createTenant('Bob');
    // Each event costs some tens of milliseconds, so a turn ends before it has seen many of them.
    const slow = Array.from(
      { length: 40 },
      (_, index) => `length(replaceAll(properties.text, 'a', 'b${index}')) > 0`,
    );
    const slowId = await world.create(
      onPaid({
        filters: {
          events: [{ id: 'paid', type: 'events' }],
          properties: [{ key: slow.join(' and '), type: 'hogql' }],
        },
      }),
      bob,
    );
    const quickId = await world.create(onPaid());
    const text = 'a'.repeat(5_000);
    for (let at = 0; at < 4; at += 1) {
      const batch = numbers(50).map((id) => ({
        event: 'paid',
        properties: { id: 1_000 + at * 50 + id, text },
      }));
      await world.capture(batch, bob);
    }
    await world.capture(events(20));
    const runtime = world.start();
    await world.idle();
    await world.stop(runtime);
    expect(ids()).toEqual([...numbers(20), ...numbers(200).map((id) => 1_000 + id)]);
    const { rows } = await world.api.pool.query(
      'select last_value, is_called from function_late_batches_id_seq',
    );
    expect(rows[0].is_called).toBe(true);
    await world.change(slowId, { enabled: false }, bob);
    await world.change(quickId, { enabled: false });
  });

  test('and that no function can want are only counted, also in the version that runs next', async () => {
    const filters = (plan: string) => ({
      events: [{ id: 'paid', type: 'events' }],
      properties: [{ key: 'plan', value: plan, type: 'event', operator: 'exact' }],
    });
    const id = await world.create(onPaid({ filters: filters('a') }));
    const paid = (from: number, plan: string) =>
      numbers(10).map((one) => ({ event: 'paid', properties: { id: from + one, plan } }));
    const noted = async () => {
      const { rows } = await world.api.pool.query(
        'select events, from_page is not null as placed, skipped from function_batches order by id',
      );
      await world.api.pool.query('delete from function_batches');
      return rows;
    };
    // The process that captures learns of the function.
    await eventually(async () => {
      await world.capture(paid(0, 'b'));
      return (await noted())[0].events === 0;
    });
    const { projectId: project } = world.anna;
    await world.capture(paid(0, 'b'));
    expect(await noted()).toEqual([
      { events: 0, placed: false, skipped: [{ project, name: 'paid', count: 10 }] },
    ]);
    await world.capture([...paid(0, 'b'), ...paid(10, 'b'), ...paid(20, 'a').slice(9)]);
    expect(await noted()).toEqual([
      { events: 1, placed: false, skipped: [{ project, name: 'paid', count: 20 }] },
    ]);
    await world.capture([...paid(0, 'b'), ...paid(10, 'a')]);
    expect(await noted()).toEqual([{ events: 20, placed: true, skipped: null }]);
    await world.capture(events(3, 'other'));
    expect(await noted()).toEqual([]);

    await world.capture([...paid(100, 'b'), ...paid(110, 'b'), ...paid(120, 'a').slice(9)]);
    await world.change(id, { filters: filters('b') });
    // What was learned before the change counts no longer.
    await world.capture([...paid(140, 'b'), ...paid(150, 'c')]);
    const runtime = world.start();
    await world.idle();
    await world.stop(runtime);
    expect(ids()).toEqual(numbers(10).map((one) => 140 + one));
    expect(await world.totals(id)).toMatchObject({ triggered: 10, filtered: 20 + 1 + 10 });
    await world.change(id, { enabled: false });
  });

  test('are seen once by four runtimes, which count masking together', async () => {
    const id = await world.create(onPaid());
    const masked = await world.create(
      onPaid({
        ...sender(world.url('masked'), { filters: { events: [{ id: 'paid', type: 'events' }] } }),
        masking: { ttl: 3_600, threshold: 10, hash: '{event.properties.key}' },
      }),
    );
    const runtimes = [1, 2, 3, 4].map(() => world.start());
    const keys = ['a', 'b', 'c'];
    let sent = 0;
    const capture = (batch: number) =>
      world.capture(
        numbers(15).map((number) => {
          sent += 1;
          return { event: 'paid', properties: { id: batch * 100 + number, key: keys[number % 3] } };
        }),
      );
    // Each round has 25 events of a key, so a window goes on in the middle of ten.
    for (let batch = 0; batch < 40; batch += 5) {
      await Promise.all(numbers(5).map((number) => capture(batch + number)));
      await world.idle();
    }
    await Promise.all(runtimes.map((one) => world.stop(one)));
    // A request that has no answer in time is repeated under its key, which is no second invocation.
    const requests = new Map(world.arrivals.map((one) => [one.headers['idempotency-key'], one]));
    const direct = [...requests.values()].filter(({ path }) => path === '');
    expect(new Set(direct.map(({ body }) => body)).size).toBe(sent);
    expect(direct).toHaveLength(sent);
    expect(await world.history(id)).toHaveLength(sent);
    // Each of three keys has 200 events, and every tenth passes.
    expect(requests.size - direct.length).toBe(60);
    expect(await world.totals(masked)).toMatchObject({ triggered: 60, masked: 540, succeeded: 60 });
    await world.change(id, { enabled: false });
    await world.change(masked, { enabled: false });
  });
});
