// What one project cannot do to the events of another one.
import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Compute } from '../../../functions/delivery/compute.ts';
import type { Runnable } from '../../../functions/delivery/contents.ts';
import { Dispatcher } from '../../../functions/dispatch/dispatcher.ts';
import { RowPieces } from '../../../functions/dispatch/event-rows.ts';
import { Flood } from '../../../functions/dispatch/flood.ts';
import { findEventsAt, LARGEST_SEEN } from '../../../functions/rows/events.ts';
import { type StepItem, work } from '../../../functions/run.ts';
import type { Runner } from '../../../functions/runner.ts';
import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { createParser } from '../../../hog/parser/index.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { runtimeForFile, sender } from './world.ts';

// Nothing may wait until a claim is over.
const world = runtimeForFile({ starts: false, settings: { SLUICE_FUNCTION_LEASE_SECONDS: '600' } });
const logger = createLogger({ name: 'test', level: 'silent' });
let bob: Tenant;
beforeAll(async () => {
  bob = await world.api.createTenant('Bob');
});
beforeEach(() => {
  world.arrivals.length = 0;
});

const on = (event: string, more: object = {}) =>
  sender(world.url(event), { filters: { events: [{ id: event, type: 'events' }] }, ...more });
const events = (event: string, count: number, more: object = {}) =>
  Array.from({ length: count }, (_, id) => ({ event, properties: { id, ...more } }));
const rows = async (sql: string, values: unknown[] = []) => (await world.api.pool.query(sql, values)).rows;
const queuedOf = async ({ projectId }: Tenant): Promise<number> =>
  (await rows('select count(*)::int as n from function_queue where project_id = $1', [projectId]))[0].n;

describe('a turn of the dispatch', () => {
  async function dispatching(
    limits: ConstructorParameters<typeof Dispatcher>[1],
    steps: (dispatcher: Dispatcher) => Promise<void>,
  ): Promise<void> {
    const { pool, config } = world.api;
    const site = config.SLUICE_PUBLIC_URL;
    const deps = { pool, readPool: pool, logger, site, queued: () => undefined };
    const dispatcher = new Dispatcher(deps, limits);
    try {
      await steps(dispatcher);
    } finally {
      await dispatcher.close();
      await pool.query(
        'truncate function_queue, function_batches, function_late_batches, function_positions',
      );
    }
  }

  test('leaves what leads to very many invocations to turns of its own, and all of them are queued once', async () => {
    const mappings = Array.from({ length: 20 }, (_, number) => ({ name: `${number}` }));
    const ids = [await world.create(on('paid', { mappings }), bob), await world.create(on('paid'), bob)];
    const quick = await world.create(on('paid'));
    await world.capture(events('paid', 10), bob);
    await world.capture(events('paid', 10));
    await dispatching({ room: 50 }, async (dispatcher) => {
      while ((await dispatcher.turn()) > 0);
      // Two events fit.
      expect([await queuedOf(world.anna), await queuedOf(bob)]).toEqual([10, 42]);
      while ((await dispatcher.lateTurn()) > 0);
      expect([await queuedOf(world.anna), await queuedOf(bob)]).toEqual([10, 210]);
      const found = await rows(
        'select count(distinct (function_id, event_uuid, mapping))::int as n from function_queue where project_id = $1',
        [bob.projectId],
      );
      expect(found[0].n).toBe(210);
      expect((await world.totals(ids[0] as string, bob)).triggered).toBe(200);
    });
    for (const id of ids) await world.change(id, { enabled: false }, bob);
    await world.change(quick, { enabled: false });
  });

  test('leaves less room to a project when events of others wait for the same turn', async () => {
    const mappings = Array.from({ length: 20 }, (_, number) => ({ name: `${number}` }));
    const id = await world.create(on('paid', { mappings }), bob);
    const quick = await world.create(on('paid'));
    await dispatching({ roomBesideOthers: 50 }, async (dispatcher) => {
      await world.capture(events('paid', 10), bob);
      while ((await dispatcher.turn()) > 0);
      expect(await queuedOf(bob)).toBe(200);
      await world.capture(events('paid', 10), bob);
      await world.capture(events('paid', 10));
      while ((await dispatcher.turn()) > 0);
      expect([await queuedOf(world.anna), await queuedOf(bob)]).toEqual([10, 240]);
      while ((await dispatcher.lateTurn()) > 0);
      expect([await queuedOf(world.anna), await queuedOf(bob)]).toEqual([10, 400]);
    });
    await world.change(id, { enabled: false }, bob);
    await world.change(quick, { enabled: false });
  });

  test('does not take events of a project whose events lead to much; these have turns of their own', async () => {
    const mappings = Array.from({ length: 100 }, (_, number) => ({ name: `${number}` }));
    const id = await world.create(on('paid', { mappings }), bob);
    const quick = await world.create(on('paid'));
    const { projectId: ofAnna } = world.anna;
    const { projectId: ofBob } = bob;
    const isMixed = 'select from function_batches where projects @> $1';
    await dispatching({}, async (dispatcher) => {
      await world.capture(events('paid', 4), bob);
      while ((await dispatcher.turn()) > 0);
      expect(await queuedOf(bob)).toBe(400);
      await world.capture(events('paid', 4), bob);
      await world.capture(events('paid', 5));
      while ((await dispatcher.turn()) > 0);
      expect([await queuedOf(world.anna), await queuedOf(bob)]).toEqual([5, 400]);
      while ((await dispatcher.heavyTurn()) > 0);
      expect([await queuedOf(world.anna), await queuedOf(bob)]).toEqual([5, 800]);

      // Requests that come at the same time are stored together.
      let rounds = 0;
      while ((await rows(isMixed, [[ofAnna, ofBob]])).length === 0) {
        rounds += 1;
        const both = () => [world.capture(events('paid', 1)), world.capture(events('paid', 1), bob)];
        await Promise.all([...both(), ...both(), ...both()]);
      }
      while ((await dispatcher.turn()) > 0);
      expect(await queuedOf(world.anna)).toBe(5 + 3 * rounds);
      while ((await dispatcher.heavyTurn()) > 0);
      expect(await queuedOf(bob)).toBeLessThan(800 + 300 * rounds);
      while ((await dispatcher.lateTurn()) > 0);
      expect([await queuedOf(world.anna), await queuedOf(bob)]).toEqual([5 + 3 * rounds, 800 + 300 * rounds]);
      const found = await rows(
        'select count(distinct (function_id, event_uuid, mapping))::int as n from function_queue where project_id = $1',
        [ofBob],
      );
      expect(found[0].n).toBe(800 + 300 * rounds);
    });
    await world.change(id, { enabled: false }, bob);
    await world.change(quick, { enabled: false });
  });

  test('takes an event that leads to more invocations than there is room for, when nobody else waits for it', async () => {
    const mappings = Array.from({ length: 20 }, (_, number) => ({ name: `${number}` }));
    const id = await world.create(on('paid', { mappings }), bob);
    const filters = { events: [{ id: 'paid', type: 'events' }], properties: [{ key: 'no', value: 1 }] };
    const other = await world.create(on('paid', { filters }), bob);
    await world.capture(events('paid', 3), bob);
    await dispatching({ room: 10 }, async (dispatcher) => {
      while ((await dispatcher.turn()) > 0);
      expect(await queuedOf(bob)).toBe(0);
      let turns = 0;
      while ((await dispatcher.lateTurn()) > 0) turns += 1;
      expect([turns, await queuedOf(bob)]).toEqual([3, 60]);
      // What was taken back is not counted twice.
      expect((await world.totals(other, bob)).filtered).toBe(3);
    });
    await world.change(id, { enabled: false }, bob);
    await world.change(other, { enabled: false }, bob);
  });

  test('reads only so much, and every event is seen once', async () => {
    const ids = [await world.create(on('paid'), bob), await world.create(on('paid'))];
    const text = 'x'.repeat(20_000);
    for (let at = 0; at < 4; at += 1) await world.capture(events('paid', 40, { text }), bob);
    await world.capture(events('paid', 5));
    await dispatching({ mostBytes: 400_000 }, async (dispatcher) => {
      await dispatcher.turn();
      const first = await queuedOf(bob);
      expect(first).toBeGreaterThan(0);
      expect(first).toBeLessThan(120);
      for (;;) if ((await dispatcher.turn()) + (await dispatcher.lateTurn()) === 0) break;
      expect([await queuedOf(world.anna), await queuedOf(bob)]).toEqual([5, 160]);
      const found = await rows('select count(distinct event_uuid)::int as n from function_queue');
      expect(found[0].n).toBe(165);
    });
    await world.change(ids[0] as string, { enabled: false }, bob);
    await world.change(ids[1] as string, { enabled: false });
  });
});

test('a row that comes in many chunks is put together with few copies', () => {
  const [length, chunk] = [8_000_000, 10_000];
  const row = Buffer.alloc(19 + 2 + 4 + length);
  row.writeInt16BE(1, 19);
  row.writeInt32BE(length, 21);
  const bytes = Buffer.concat([row, Buffer.from([0xff, 0xff])]);
  const copied = jest.spyOn(Buffer, 'allocUnsafeSlow');
  const pieces = new RowPieces(100_000);
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += chunk) {
    const piece = pieces.take(bytes.subarray(at, at + chunk));
    if (piece) found.push(piece);
  }
  const rest = pieces.rest();
  if (rest) found.push(rest);
  const all = copied.mock.calls.reduce((sum, [size]) => sum + size, 0);
  copied.mockRestore();
  expect(found.map((one) => one.length)).toEqual([length + 6]);
  expect(all).toBeLessThan(4 * bytes.length);
});

describe('large events', () => {
  test('are read as far as there is room, each project for itself', async () => {
    const text = 'x'.repeat(LARGEST_SEEN - 1_000);
    await world.capture(events('large', 3, { text }), bob);
    await world.capture(events('large', 1, { text: `${text}${text}` }), bob);
    await world.capture(events('large', 1, { text }));
    const keys = await rows(
      'select project_id as "projectId", uuid, timestamp from events where event = $1 order by inserted_at, uuid',
      ['large'],
    );
    const found = await findEventsAt(world.api.pool, [...keys, ...keys]);
    const of = ({ projectId }: Tenant) =>
      found.filter((one) => one.project_id === projectId).map((one) => one.unread ?? 'read');
    expect(of(bob).sort()).toEqual(['large', 'later', 'read', 'read']);
    expect(of(world.anna)).toEqual(['read']);
    for (const { unread, properties } of found) expect(properties === '').toBe(unread !== null);
  });

  test('that are too large for functions end as failed, alone and in batches, and others are delivered', async () => {
    const id = await world.create(on('paid'), bob);
    const hog = "fetch(inputs.url, {'body': {'id': length(items)}})";
    const batched = await world.create(
      on('paid', { hog, delivery: { batch: { max_batch: 4, max_wait_seconds: 0 } } }),
      bob,
    );
    await world.capture(events('paid', 3, { text: 'x'.repeat(LARGEST_SEEN - 1_000) }), bob);
    await world.capture(events('paid', 1, { text: 'x'.repeat(LARGEST_SEEN) }), bob);
    const runtime = world.start();
    await world.idle();
    await world.stop(runtime);
    for (const one of [id, batched]) {
      const history = await world.history(one);
      expect(history.map(({ status }) => status).sort()).toEqual([
        ...['failed', 'succeeded', 'succeeded', 'succeeded'],
      ]);
      const { error } = history.find(({ status }) => status === 'failed') as { error: string };
      expect(error).toContain('4,000,000 characters');
      await world.change(one, { enabled: false }, bob);
    }
  });
});

test('an answer that nests too deep is a text, and ends nothing', async () => {
  const hog = "let answer := fetch(inputs.url); print(typeof(answer.body), match('a', 'a'))";
  const id = await world.create(on('paid', { hog }), bob);
  world.answer((_arrival, response) => response.end('['.repeat(400_000) + ']'.repeat(400_000)));
  await world.capture(events('paid', 3), bob);
  const runtime = world.start();
  await world.idle();
  await world.stop(runtime);
  world.answer((_arrival, response) => response.end('{}'));
  expect((await world.history(id)).map(({ status }) => status)).toEqual(Array(3).fill('succeeded'));
  expect((await world.logs(id, bob)).filter(({ message }) => message === 'string, true')).toHaveLength(3);
  await world.change(id, { enabled: false }, bob);
});

describe('steps that take long', () => {
  const hog = 'let n := 0; while (true) { n := n + 1 }';
  const item: StepItem = { globals: { event: {} }, frame: { now: 0, seed: 1 }, given: {}, answers: [] };

  test('leave their thread to others after each of them', async () => {
    const bytecode = compileBytecode(await (await createParser()).program(hog));
    const steps = work({ kind: 'steps', bytecode, inputs: {}, items: [item, item, item] });
    expect(steps).toHaveLength(1);
  });

  test('are all done in the end', async () => {
    const asked: number[] = [];
    const steps: Runner['steps'] = async (_projectId, { items }) => {
      asked.push(items.length);
      return items.slice(0, 2).map(({ given }) => ({ status: 'finished', result: given.at }) as never);
    };
    const compute = new Compute({ steps } as Runner);
    const bytecode = compileBytecode(await (await createParser()).program("return match('a', 'a')"));
    const runnable = { bytecode } as unknown as Runnable;
    const results = await Promise.all(
      [1, 2, 3, 4, 5].map((at) =>
        compute.step(1, 'key', runnable, {}, { item: { ...item, given: { at } }, size: 0 }),
      ),
    );
    expect(results.map((one) => (one as { result?: unknown }).result)).toEqual([1, 2, 3, 4, 5]);
    expect(asked).toEqual([5, 3, 1]);
  });
});

describe('functions whose targets hang', () => {
  const held: ServerResponse[] = [];
  /** Those that did not give up: a slow machine may take longer than a target. */
  const hanging = () => held.filter((one) => !one.destroyed);
  let most = 0;
  const servers: Server[] = [];
  const ports: number[] = [];
  beforeAll(async () => {
    for (let at = 0; at < 3; at += 1) {
      const server = createServer((_request, response) => {
        held.push(response);
        most = Math.max(most, hanging().length);
      });
      servers.push(server);
      ports.push(await reservePort());
      await new Promise<void>((resolve) => server.listen(ports[at], '127.0.0.1', resolve));
    }
  });
  beforeEach(() => {
    held.length = 0;
    most = 0;
  });
  afterAll(async () => {
    for (const server of servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test('leave places for others of their project, however many hosts one of them asks', async () => {
    const url = 'http://127.0.0.1:{event.properties.port}/';
    const hangs = await world.create(on('hangs', sender(url)));
    const works = await world.create(on('works'));
    const runtime = world.start();
    const places = world.api.config.SLUICE_FUNCTION_CONCURRENCY;
    await world.capture(
      Array.from({ length: places }, (_, id) => ({ event: 'hangs', properties: { port: ports[id % 3] } })),
    );
    await eventually(async () => held.length >= places * 0.4);
    await world.capture(events('works', 60));
    await eventually(async () => world.arrivals.filter(({ path }) => path === 'works').length === 60);
    expect(hanging().length).toBeLessThanOrEqual(places * 0.5);
    for (const id of [hangs, works]) await world.change(id, { enabled: false });
    for (const one of held) one.end('{}');
    await world.idle();
    await world.stop(runtime);
  });

  test('and whose programs take much memory wait for each other, and for nobody else', async () => {
    // Each takes 12 MB, and there is room for two of them.
    const hog = `let text := 'x';
      for (let n := 0; n < 23; n := n + 1) { text := concat(text, text) }
      let answer := fetch(inputs.url);
      fetch(f'{inputs.url}{length(text)}');`;
    const id = await world.create(on('heavy', { ...sender(`http://127.0.0.1:${ports[0]}/`), hog }), bob);
    const works = await world.create(on('works'));
    const runtime = world.start();
    await world.capture(events('heavy', 4), bob);
    await eventually(async () => held.length > 0);
    await world.capture(events('works', 20));
    await eventually(async () => world.arrivals.filter(({ path }) => path === 'works').length === 20);
    // All of them have tried by now.
    await eventually(async () => {
      const [{ n }] = await rows(
        'select count(*)::int as n from function_queue where function_id = $1 and lease is null',
        [id],
      );
      return n >= 2;
    });
    expect(most).toBeLessThanOrEqual(2);
    await eventually(async () => {
      for (const one of held.splice(0)) one.end('{}');
      return (await queuedOf(bob)) === 0;
    });
    expect((await world.history(id)).map(({ status }) => status)).toEqual(Array(4).fill('succeeded'));
    for (const one of [id, works]) await world.change(one, { enabled: false }, one === id ? bob : world.anna);
    await world.idle();
    await world.stop(runtime);
  });

  test('do not take all places together, however many hosts hang', async () => {
    const ids: string[] = [];
    for (let at = 0; at < 12; at += 1) {
      ids.push(await world.create(on('hang', sender(`http://127.0.0.1:${ports[at % 3]}/`)), bob));
    }
    const works = await world.create(on('works'));
    const runtime = world.start();
    await world.capture(events('hang', 60), bob);
    const places = world.api.config.SLUICE_FUNCTION_CONCURRENCY;
    await eventually(async () => held.length >= places / 2);
    await world.capture(events('works', 60));
    await eventually(async () => world.arrivals.filter(({ path }) => path === 'works').length === 60);
    expect(hanging().length).toBeLessThanOrEqual(places * 0.75);
    for (const id of ids) await world.change(id, { enabled: false }, bob);
    for (const one of held) one.end('{}');
    await world.change(works, { enabled: false });
    await world.idle();
    await world.stop(runtime);
  });
});

describe('many functions of a project', () => {
  test('that wait and are paused hide none of those after them', async () => {
    const url = world.url('found');
    const ids = await Promise.all(
      Array.from({ length: 5 }, () => world.create(on('found', { ...sender(url), paused: true }))),
    );
    const dispatching = world.start();
    await world.capture(events('found', 1));
    await eventually(async () => (await queuedOf(world.anna)) === 5);
    await world.stop(dispatching);
    // In the order in which functions are looked for.
    const [paused, works] = [ids.sort().slice(0, 4), ids.at(-1) as string];
    await world.change(works, { paused: false });
    const runtime = world.start({ delivering: { mostFound: 2 } });
    await eventually(async () => world.arrivals.filter(({ path }) => path === 'found').length === 1);
    for (const id of paused) await world.change(id, { enabled: false });
    await world.change(works, { enabled: false });
    await world.idle();
    await world.stop(runtime);
  });

  test('keep positions only if too many of all of them wait', async () => {
    const ids = await Promise.all([1, 2, 3].map(() => world.create(on('paid', { paused: true }), bob)));
    const { pool } = world.api;
    await pool.query(
      `insert into function_queue (id, project_id, function_id, version, clock, seed)
       select gen_random_uuid(), $1, f, 1, now(), 1 from unnest($2::uuid[]) f cross join generate_series(1, 400)`,
      [bob.projectId, ids],
    );
    const deps = { pool, queued: () => undefined, missing: () => undefined };
    const limits = { most: 1_000, least: 500, mostOfProject: 1_100, leastOfProject: 600, atOnce: 1_000 };
    const flood = new Flood(deps, limits);
    await flood.look();
    const flooded = async () => (await rows('select function_id from function_floods')).length;
    expect(await flooded()).toBe(3);
    // Each has room, and all of them together have none.
    expect(await flood.turn()).toBe(0);
    expect(await flooded()).toBe(3);
    await pool.query('delete from function_queue where seq % 3 > 0');
    for (const _ of ids) await flood.turn();
    expect(await flooded()).toBe(0);
    await pool.query('truncate function_queue');
    for (const id of ids) await world.change(id, { enabled: false }, bob);
  });
});
