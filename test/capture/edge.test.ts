import { Writable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import type { FastifyBaseLogger } from 'fastify';
import { Gate, type Ticket } from '../../api/capture/gate.ts';
import { LazyLogger } from '../../api/capture/lazy-logger.ts';
import { createProjectKeys } from '../../api/capture/project-keys.ts';
import { Notices } from '../../capture/parse/notices.ts';
import { createWarnings } from '../../capture/warnings.ts';
import type { Queryable } from '../../db/pool.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createTenant } from '../support/api.ts';
import { databaseForFile } from '../support/database.ts';

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
  test('are asked for once, forgotten after a while, and unknown ones are remembered too', async () => {
    const anna = await createTenant(database.pool, 'Anna');
    const { state, queryable } = flaky();
    let now = 0;
    const keys = createProjectKeys(queryable, { now: () => now, freshFor: 1_000 });
    const found = await Promise.all(Array.from({ length: 50 }, () => keys.find(anna.projectToken)));
    expect(found).toEqual(Array(50).fill({ id: anna.projectId, anonymize_ips: false }));
    expect(await keys.find('phc_nobody')).toBeUndefined();
    expect(keys.find('phc_nobody')).toBeUndefined();
    expect(state.queries).toBe(2);

    await database.pool.query('update projects set api_token = $2, anonymize_ips = true where id = $1', [
      anna.projectId,
      'phc_rotated',
    ]);
    expect(keys.find(anna.projectToken)).toEqual({ id: anna.projectId, anonymize_ips: false });
    now = 1_000;
    expect(await keys.find(anna.projectToken)).toBeUndefined();
    expect(await keys.find('phc_rotated')).toEqual({ id: anna.projectId, anonymize_ips: true });
  });

  test('a failed question is no answer, and is asked again', async () => {
    const bob = await createTenant(database.pool, 'Bob');
    const { state, queryable } = flaky();
    const keys = createProjectKeys(queryable);
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
  const ticket = (): Ticket => ({ bytes: 0, atWork: 0 });

  test('is given to the first, refused to the others, and given back', () => {
    const gate = new Gate(1_000);
    const [first, second] = [ticket(), ticket()];
    gate.hold(first, 600);
    expect(() => gate.hold(second, 600)).toThrow('Too many large requests at once');
    gate.leave(first);
    gate.leave(first);
    gate.hold(second, 600);
    expect(gate.held).toBe(600);
  });

  test('large bodies are parsed while there is room, in their order; small ones do not wait', async () => {
    const gate = new Gate();
    const large = 4 * 1024 * 1024;
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
    const gate = new Gate(undefined, 50);
    const [working, larger, smaller] = [ticket(), ticket(), ticket()];
    await gate.enter(working, 4 * 1024 * 1024);
    const tooLarge = gate.enter(larger, 6 * 1024 * 1024) as Promise<void>;
    const behind = gate.enter(smaller, 1024 * 1024) as Promise<void>;
    await expect(tooLarge).rejects.toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    await behind;
    for (const one of [working, larger, smaller]) gate.leave(one);
    expect(gate.held).toBe(0);
  });
});

test("a request's logger names the request, and is made when it is needed", () => {
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const logger = createLogger({ name: 'test', level: 'info' }, stream);
  const lazy = new LazyLogger(logger as FastifyBaseLogger, { reqId: 'r1' }, {});
  lazy.debug('not told');
  lazy.error({ err: new Error('broken') }, 'request failed');
  lazy.child({ part: 'x' }).info('more');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { reqId: 'r1', msg: 'request failed', err: { message: 'broken' } },
    { reqId: 'r1', part: 'x', msg: 'more' },
  ]);
});
