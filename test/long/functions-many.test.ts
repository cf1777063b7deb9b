import { expect, test } from '@jest/globals';
import { Dispatcher } from '../../functions/dispatch/dispatcher.ts';
import { claim } from '../../functions/rows/queue.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { runtimeForFile, sender } from '../functions/runtime/world.ts';
import { LONG } from '../support/rounds.ts';

const world = runtimeForFile({ starts: false });
const long = LONG ? test : test.skip;
const on = (event: string) => ({ filters: { events: [{ id: event, type: 'events' }] } });

function dispatcher(): Dispatcher {
  const { pool, config } = world.api;
  const logger = createLogger({ name: 'test', level: 'silent' });
  const site = config.SLUICE_PUBLIC_URL;
  return new Dispatcher({ pool, readPool: pool, logger, site, queued: () => undefined });
}

long(
  'with 5,000 functions each event reaches those that want it, and no other',
  async () => {
    const first = await world.create(sender(world.url('0'), on('wanted 0')));
    const { projectId } = world.anna;
    // Copies of it that want other events.
    await world.api.pool.query(
      `insert into functions select (jsonb_populate_record(f, jsonb_build_object('id', gen_random_uuid(), 'name', 'Copy ' || n,
         'filters', replace(f.filters::text, 'wanted 0', 'wanted ' || n)::jsonb))).*
       from functions f, generate_series(1, 4999) n where f.id = $1`,
      [first],
    );
    await world.api.pool.query("update functions set enabled_at = now() - interval '1 minute'");
    const numbers = [0, 1, 2_500, 4_999, 5_000];
    await world.capture(numbers.map((n) => ({ event: `wanted ${n}` })));
    const one = dispatcher();
    while ((await one.turn()) > 0 || (await one.heavyTurn()) > 0 || (await one.lateTurn()) > 0);
    await one.close();
    const { rows } = await world.api.pool.query(
      `select f.name, count(*)::int as count from function_queue q join functions f on f.id = q.function_id
       where q.project_id = $1 group by 1 order by 1 nulls first`,
      [projectId],
    );
    expect(rows.map(({ count }) => count)).toEqual([1, 1, 1, 1]);
    expect(rows.map(({ name }) => name).slice(1)).toEqual(['Copy 1', 'Copy 2500', 'Copy 4999']);
    await world.api.pool.query('delete from functions; delete from function_queue');
  },
  300_000,
);

long(
  'a request of 100,000 events is matched event by event, each once',
  async () => {
    const id = await world.create(sender(world.url(), on('paid')));
    const batch = Array.from({ length: 100_000 }, (_, n) => ({
      ...{ event: n % 2 ? 'paid' : 'seen', distinct_id: `d-${n % 100}`, properties: { id: n } },
    }));
    await world.capture(batch);
    const one = dispatcher();
    while ((await one.turn()) > 0 || (await one.heavyTurn()) > 0 || (await one.lateTurn()) > 0);
    await one.close();
    const { rows } = await world.api.pool.query(
      'select count(*)::int as all, count(distinct event_uuid)::int as events from function_queue where function_id = $1',
      [id],
    );
    expect(rows[0]).toEqual({ all: 50_000, events: 50_000 });
    await world.api.pool.query('truncate function_queue');
    await world.change(id, { enabled: false });
  },
  300_000,
);

long(
  'a snapshot that stays open does not make claims read what has been claimed',
  async () => {
    const { pool } = world.api;
    const { projectId } = world.anna;
    const functionId = await world.create(sender(world.url()));
    await pool.query(
      `insert into function_queue (id, project_id, function_id, version, globals, clock, seed, due_at)
       select gen_random_uuid(), $1, $2, 1, '{}', now(), 1, now() - interval '1 hour' + n * interval '1 millisecond'
       from generate_series(1, 60000) n`,
      [projectId, functionId],
    );
    const reader = await pool.connect();
    await reader.query('begin isolation level repeatable read');
    await reader.query('select count(*) from function_queue');
    const pages = async () => {
      const { rows } = await pool.query(
        `select heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read as pages from pg_statio_user_tables
         where relname = 'function_queue'`,
      );
      return Number(rows[0].pages);
    };
    const settled = async () => {
      await pool.query('select pg_stat_force_next_flush()');
      return pages();
    };
    let since = new Date(0).toISOString();
    const costs: number[] = [];
    for (let turn = 0; turn < 100; turn += 1) {
      const before = await settled();
      const rows = await claim(pool, [{ projectId, functionId, count: 500, since }], {
        ...{ lease: functionId, seconds: 3_600 },
      });
      expect(rows).toHaveLength(500);
      // What the deliverer knows: everything that was due before is taken.
      const { rows: next } = await pool.query(
        'select due_at from function_queue where project_id = $1 and function_id = $2 and lease is null order by due_at limit 1',
        [projectId, functionId],
      );
      since = next[0]?.due_at ?? since;
      costs.push((await settled()) - before);
    }
    await reader.query('rollback');
    reader.release();
    const sum = (some: number[]) => some.reduce((a, b) => a + b, 0);
    // The last claims read about as many pages as the first ones.
    expect(sum(costs.slice(-20))).toBeLessThan(2 * sum(costs.slice(0, 20)) + 20 * 500);
    await pool.query('truncate function_queue');
  },
  300_000,
);
