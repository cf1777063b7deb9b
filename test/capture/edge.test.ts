import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { MemoryAfterRush } from '../../api/public/body-memory.ts';
import { Gate, newTicket, type Ticket } from '../../api/public/gate.ts';
import { createProjectKeys } from '../../api/public/project-keys.ts';
import { Notices } from '../../capture/parse/notices.ts';
import { createWarnings } from '../../capture/warnings.ts';
import type { Subscriber } from '../../db/listen.ts';
import type { Queryable } from '../../db/pool.ts';
import { createTenant } from '../support/api.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const database = databaseForFile();

/** The database, until it is told to be away; counts what it is asked. */
function flaky() {
  const state = { away: false, queries: 0 };
  const queryable = {
    query: (...args: unknown[]) => {
      state.queries += 1;
      if (state.away) return Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
      return (database.pool.query as (...all: unknown[]) => unknown)(...args);
    },
  } as unknown as Queryable;
  return { state, queryable };
}

describe('project keys', () => {
  /** Hears what it is told to have heard. */
  function ear() {
    let subscriber: Subscriber | undefined;
    const state = { listening: false };
    const listener = {
      isListening: () => state.listening,
      subscribe(_channel: string, one: Subscriber) {
        subscriber = one;
        return () => undefined;
      },
    };
    return {
      state,
      listener,
      tell: (token: string) => subscriber?.told(token),
      miss: () => subscriber?.missed(),
    };
  }

  test.each([
    [false, 5_000],
    [true, 60_000],
  ])(
    'are asked for once, and again after a while (listening: %s); unknown ones too',
    async (listening, freshFor) => {
      const anna = await createTenant(database.pool, 'Anna');
      const { state, queryable } = flaky();
      const { state: heard, listener } = ear();
      heard.listening = listening;
      let now = 0;
      const keys = createProjectKeys(queryable, listener, { now: () => now });
      const found = await Promise.all(Array.from({ length: 50 }, () => keys.find(anna.projectToken)));
      expect(found).toEqual(
        Array(50).fill({ id: anna.projectId, anonymize_ips: false, transformations: null }),
      );
      expect(await keys.find('phc_nobody')).toBeUndefined();
      expect(keys.find('phc_nobody')).toBeUndefined();
      expect(state.queries).toBe(2);

      await database.pool.query('update projects set api_token = $2, anonymize_ips = true where id = $1', [
        anna.projectId,
        `phc_rotated_${freshFor}`,
      ]);
      now = freshFor - 1;
      expect(keys.find(anna.projectToken)).toEqual({
        id: anna.projectId,
        anonymize_ips: false,
        transformations: null,
      });
      now = freshFor;
      // While changes are heard of, nobody waits: the last answer is given until the next one is there.
      if (listening)
        expect(keys.find(anna.projectToken)).toEqual({
          id: anna.projectId,
          anonymize_ips: false,
          transformations: null,
        });
      await eventually(async () => (await keys.find(anna.projectToken)) === undefined);
      expect(await keys.find(`phc_rotated_${freshFor}`)).toEqual({
        id: anna.projectId,
        anonymize_ips: true,
        transformations: null,
      });
    },
  );

  test('are forgotten when a change is heard of', async () => {
    const carl = await createTenant(database.pool, 'Carl');
    const rotate = (to: string) =>
      database.pool.query('update projects set api_token = $2 where id = $1', [carl.projectId, to]);
    const { queryable } = flaky();
    const { state, listener, tell, miss } = ear();
    state.listening = true;
    const keys = createProjectKeys(queryable, listener, { now: () => 0 });
    expect(await keys.find(carl.projectToken)).toMatchObject({ id: carl.projectId });
    const early = keys.find('phc_carl_2');
    await early;
    await rotate('phc_carl_2');
    tell(carl.projectToken);
    tell('phc_carl_2');
    expect(await keys.find(carl.projectToken)).toBeUndefined();
    await rotate('phc_carl_3');
    tell('phc_carl_2');
    expect(await keys.find('phc_carl_2')).toBeUndefined();
    expect(await keys.find('phc_carl_3')).toMatchObject({ id: carl.projectId });
    await rotate('phc_carl_4');
    miss();
    expect(await keys.find('phc_carl_3')).toBeUndefined();
  });

  test('are asked for again when a change is heard of while the answer is on its way', async () => {
    const dora = await createTenant(database.pool, 'Dora');
    const { listener, tell } = ear();
    const copies = new Map<string, unknown>();
    let answered = Promise.resolve();
    /** Reads at once, and tells it when it may. */
    const queryable = {
      async query(...args: Parameters<Queryable['query']>) {
        const mayTell = answered;
        const result = await database.pool.query(...args);
        await mayTell;
        return result;
      },
    } as unknown as Queryable;
    const keys = createProjectKeys(queryable, listener, {
      now: () => 0,
      patience: 30_000,
      copies: {
        save: (token, project) => void copies.set(token, project),
        remove: (token) => void copies.delete(token),
        has: (token) => copies.has(token),
        read: async () => undefined,
      },
    });
    const askWhile = async (happening: () => Promise<unknown>) => {
      const held = Promise.withResolvers<void>();
      answered = held.promise;
      const underWay = keys.find(dora.projectToken);
      answered = Promise.resolve();
      await happening();
      tell(dora.projectToken);
      held.resolve();
      return underWay;
    };
    // Nobody asks a second time, and yet there is a copy for a start without the database.
    expect(await askWhile(async () => undefined)).toMatchObject({ id: dora.projectId });
    await eventually(async () => copies.has(dora.projectToken));
    tell(dora.projectToken);
    await askWhile(() =>
      database.pool.query('update projects set api_token = $2 where id = $1', [dora.projectId, 'phc_dora_2']),
    );
    await eventually(async () => !copies.has(dora.projectToken));
    expect(await keys.find(dora.projectToken)).toBeUndefined();
  });

  test.each([
    ['away', true],
    ['away', false],
    ['slow', true],
    ['slow', false],
  ])('that are known stay good while Postgres is %s (listening: %s)', async (how, listening) => {
    const eve = await createTenant(database.pool, 'Eve');
    const eves = { id: eve.projectId, anonymize_ips: false, transformations: null };
    const { state: heard, listener, miss } = ear();
    heard.listening = listening;
    let isWell = true;
    const givenUp = Promise.withResolvers<never>();
    givenUp.promise.catch(() => undefined);
    const queryable = {
      query: (...args: unknown[]) => {
        if (isWell) return (database.pool.query as (...all: unknown[]) => unknown)(...args);
        if (how === 'slow') return givenUp.promise;
        return Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
      },
    } as unknown as Queryable;
    let now = 0;
    const keys = createProjectKeys(queryable, listener, { now: () => now, patience: 5 });
    expect(await keys.find(eve.projectToken)).toEqual(eves);
    isWell = false;
    now = 59_999;
    expect(await keys.find(eve.projectToken)).toEqual(eves);
    if (listening) {
      // As long as every change is heard of, what is known is right.
      now = 3_600_000;
      expect(await keys.find(eve.projectToken)).toEqual(eves);
      miss();
    }
    // However long it lasts. Only the first one waits.
    now += 86_400_000;
    expect(await keys.find(eve.projectToken)).toEqual(eves);
    expect(keys.find(eve.projectToken)).toEqual(eves);
    // A key that nobody had may be somebody's by now.
    await expect(
      Promise.race([keys.find('phc_new'), pause(20).then(() => Promise.reject(new Error('away')))]),
    ).rejects.toThrow('away');
    await database.pool.query('update projects set api_token = $2 where id = $1', [
      eve.projectId,
      `phc_${how}_${listening}`,
    ]);
    isWell = true;
    givenUp.reject(new Error('Query read timeout'));
    await eventually(async () => {
      now += 1_000;
      return (await keys.find(eve.projectToken)) === undefined;
    });
  });

  test('that are guessed are looked up only so often for a client, and drive out no key that is known', async () => {
    const finn = await createTenant(database.pool, 'Finn');
    const gina = await createTenant(database.pool, 'Gina');
    const { state, queryable } = flaky();
    const { state: heard, listener } = ear();
    heard.listening = true;
    let now = 0;
    const keys = createProjectKeys(queryable, listener, { now: () => now, wrongPerMinute: 60 });
    const ask = async (token: string, client: string) => keys.find(token, client);
    expect(await ask(finn.projectToken, '10.0.0.1')).toMatchObject({ id: finn.projectId });
    for (let n = 0; n < 60; n += 1) expect(await ask(`phc_guess_${n}`, '10.0.0.1')).toBeUndefined();
    expect(state.queries).toBe(61);
    await expect(ask('phc_guess_60', '10.0.0.1')).rejects.toMatchObject({
      status: 503,
      headers: { 'retry-after': '2' },
    });
    await expect(ask(gina.projectToken, '::ffff:10.0.0.1')).rejects.toMatchObject({ status: 503 });
    expect(state.queries).toBe(61);
    // The key that is known is good from there too, and the guesses cost nothing a second time.
    expect(keys.find(finn.projectToken, '10.0.0.1')).toMatchObject({ id: finn.projectId });
    expect(keys.find('phc_guess_1', '10.0.0.1')).toBeUndefined();
    expect(await ask(gina.projectToken, '10.0.0.2')).toMatchObject({ id: gina.projectId });
    now = 1_000;
    expect(await ask('phc_guess_61', '10.0.0.1')).toBeUndefined();
    await expect(ask('phc_guess_62', '10.0.0.1')).rejects.toMatchObject({ status: 503 });
  });

  test('a failed question is no answer, and is asked again', async () => {
    const bob = await createTenant(database.pool, 'Bob');
    const { state, queryable } = flaky();
    const keys = createProjectKeys(queryable, ear().listener);
    state.away = true;
    await expect(keys.find(bob.projectToken)).rejects.toThrow('away');
    state.away = false;
    expect(await keys.find(bob.projectToken)).toMatchObject({ id: bob.projectId });
  });
});

describe('ingestion warnings', () => {
  const noticed = (count: number) => {
    const notices = new Notices();
    for (let index = 0; index < count; index += 1) notices.skip('missing_event_name', index, { n: index });
    return notices;
  };
  const stored = async (projectId: number) => {
    const { rows } = await database.pool.query(
      'select day::text, count, sample from ingestion_warnings where project_id = $1 order by day',
      [projectId],
    );
    return rows;
  };

  test('are kept while the database is away, and written once', async () => {
    const { state, queryable } = flaky();
    const warnings = createWarnings({ queryable, flushEvery: 3_600_000 });
    const day = Date.UTC(2026, 0, 1, 23);
    warnings.add(1, noticed(3), day);
    state.away = true;
    await expect(warnings.flush()).rejects.toThrow('away');
    warnings.add(1, noticed(2), day);
    state.away = false;
    await Promise.all([warnings.flush(), warnings.flush()]);
    warnings.add(1, noticed(1), day);
    warnings.add(1, new Notices(), day);
    await warnings.flush();
    warnings.add(1, noticed(7), day + 3_600_000);
    await warnings.close();
    expect(await stored(1)).toEqual([
      { day: '2026-01-01', count: 6, sample: { index: 0, n: 0 } },
      { day: '2026-01-02', count: 7, sample: { index: 0, n: 0 } },
    ]);
  });

  test('a million skipped events are one row and a short list', async () => {
    const notices = noticed(1_000_000);
    expect([notices.skippedCount, notices.skipped.length]).toEqual([1_000_000, 1_000]);
    const warnings = createWarnings({ queryable: database.pool });
    warnings.add(2, notices, Date.UTC(2026, 0, 1));
    await warnings.close();
    expect(await stored(2)).toMatchObject([{ count: 1_000_000 }]);
  });
});

describe('the memory for bodies', () => {
  const SHARE = { held: 160 * 1024 * 1024, atWork: 12 * 1024 * 1024, unpacking: 2 };
  const ticket = newTicket;

  test('is given to the first, refused to the others, and given back', () => {
    const gate = new Gate({ ...SHARE, held: 1_000 });
    const [first, second] = [ticket(), ticket()];
    gate.hold(first, 600);
    expect(() => gate.hold(second, 600)).toThrow('Too many large requests at once');
    gate.leave(first);
    gate.leave(first);
    gate.hold(second, 600);
    expect(gate.held).toBe(600);
  });

  test('that slow clients hold goes to others, from the slowest first', () => {
    let now = 0;
    const gate = new Gate({ ...SHARE, held: 1_000 }, undefined, () => now);
    const sent: string[] = [];
    const begin = (name: string) => {
      const one = ticket();
      gate.begin(one, () => {
        sent.push(name);
        gate.end(one);
        gate.leave(one);
      });
      return one;
    };
    const [slow, slower, done] = [begin('slow'), begin('slower'), begin('done')];
    gate.hold(slow, 400);
    gate.hold(slower, 300);
    gate.hold(done, 200);
    gate.end(done);
    now = 4_000;
    const young = begin('young');
    // For the first seconds nobody is slow.
    expect(() => gate.hold(young, 200)).toThrow('Too many large requests at once');
    now = 5_000;
    gate.hold(young, 200);
    expect([sent, gate.held]).toEqual([['slower'], 800]);
    gate.hold(ticket(), 600);
    expect([sent, gate.held]).toEqual([['slower', 'slow'], 1_000]);
    expect(() => gate.hold(ticket(), 1)).toThrow('Too many large requests at once');
  });

  test('large bodies are parsed while there is room, in their order; small ones do not wait', async () => {
    const gate = new Gate(SHARE);
    const large = 5 * 1024 * 1024;
    const tickets = [ticket(), ticket(), ticket(), ticket()];
    const order: number[] = [];
    const entries = tickets.map((one, index) =>
      Promise.resolve(gate.enter(one, large)).then(() => order.push(index)),
    );
    await Promise.all(entries.slice(0, 2));
    expect(gate.enter(ticket(), 100)).toBeUndefined();
    expect(order).toEqual([0, 1]);
    gate.leave(tickets[1] as Ticket);
    await entries[2];
    expect(order).toEqual([0, 1, 2]);
    gate.leave(tickets[0] as Ticket);
    await entries[3];
    for (const one of tickets) gate.leave(one);
    expect(gate.held).toBe(100);
  });

  test('a large body whose turn does not come is refused, and holds up none behind it', async () => {
    const gate = new Gate(SHARE, 50);
    const [working, larger, smaller] = [ticket(), ticket(), ticket()];
    await gate.enter(working, 7 * 1024 * 1024);
    const tooLarge = gate.enter(larger, 6 * 1024 * 1024) as Promise<void>;
    const behind = gate.enter(smaller, 1024 * 1024) as Promise<void>;
    await expect(tooLarge).rejects.toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    await behind;
    for (const one of [working, larger, smaller]) gate.leave(one);
    expect(gate.held).toBe(0);
  });

  test('a body of very many events keeps other large ones waiting until it is stored', async () => {
    const gate = new Gate(SHARE);
    const [many, few, large] = [ticket(), ticket(), ticket()];
    expect(gate.enter(few, 1_000)).toBeUndefined();
    gate.expect(few, 10 * 1024);
    expect(gate.enter(many, 100_000)).toBeUndefined();
    gate.expect(many, 50_000 * 1024);
    let entered = false;
    const entry = Promise.resolve(gate.enter(large, 100_000)).then(() => {
      entered = true;
    });
    gate.leave(few);
    await Promise.resolve();
    expect(entered).toBe(false);
    gate.leave(many);
    await entry;
    gate.leave(large);
    expect(gate.held).toBe(0);
  });

  test('is given back to the system when it is quiet after a rush, once', async () => {
    let collected = 0;
    const collect = async () => {
      collected += 1;
    };
    const memory = new MemoryAfterRush({ quiet: 10, collect });
    memory.used(1_000);
    await pause(50);
    expect(collected).toBe(0);
    memory.used(64 * 1024 * 1024);
    await eventually(async () => collected > 0);
    await pause(50);
    expect(collected).toBe(1);
    memory.close();
  });

  test('is really collected then', async () => {
    const memory = new MemoryAfterRush({ quiet: 10 });
    const garbage = new WeakRef({ text: 'x'.repeat(1_000) });
    // A reference that was looked at stays until the turn ends.
    await pause(0);
    memory.used(64 * 1024 * 1024);
    await eventually(async () => garbage.deref() === undefined);
    memory.close();
  });
});
