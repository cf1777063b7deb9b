import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { transaction } from '../../../db/pool.ts';
import { DefinitionCache } from '../../../functions/dispatch/definitions.ts';
import { KEY_BYTES } from '../../../functions/dispatch/event-rows.ts';
import type { MatchEventsJob, MatchedEvents } from '../../../functions/dispatch/match.ts';
import { ALONE, COMMON, type MatchThreads, Turn } from '../../../functions/dispatch/turn.ts';
import { batchKeys, takeBatches } from '../../../functions/rows/batches.ts';
import { ThreadError, ThreadPool } from '../../../hog/threads/pool.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const logger = createLogger({ name: 'test', level: 'silent' });
const threads = new ThreadPool<MatchEventsJob, MatchedEvents>({
  entry: new URL('../../../functions/dispatch/match-thread.ts', import.meta.url),
  ...{ threads: 2, maxWaiting: 100 },
});
afterAll(() => threads.close());

const NUMBER = 6;
/** Each is nearly a piece of its own. */
const padding = 'x'.repeat(400_000);

/** Threads of which the first piece is lost at once, and what becomes of the others is known later. */
function losing(): { threads: MatchThreads; answers: Promise<unknown>[] } {
  const answers: Promise<unknown>[] = [];
  let calls = 0;
  return {
    answers,
    threads: {
      run(...request) {
        calls += 1;
        if (calls === 1) return Promise.reject(new ThreadError('lost', 'the thread ended'));
        const late = threads.run(...request).then(async (answer) => {
          await pause(200);
          return answer;
        });
        answers.push(late);
        return late;
      },
    },
  };
}

test('a thread that ends while another one still works leaves nothing that counts twice, and loses nothing', async () => {
  const { pool, config } = world.api;
  await world.create(sender(world.url()));
  await world.capture(Array.from({ length: NUMBER }, (_, id) => ({ properties: { id, padding } })));
  const cache = new DefinitionCache(pool, config.SLUICE_PUBLIC_URL);
  const deps = { readPool: pool, logger };
  await transaction(pool, async (client) => {
    const batches = await takeBatches(client, 10);
    // Afterwards the threads know the definitions.
    const before = new Turn(deps, cache, threads, client, COMMON);
    await before.batches(batches);
    expect(before.found.matched).toHaveLength(NUMBER);
    const first = losing();
    const turn = new Turn(deps, cache, first.threads, client, COMMON);
    await turn.batches(batches);
    await Promise.all(first.answers);
    const late = Buffer.concat([...turn.found.late.values()].flat());
    expect([late.length / KEY_BYTES, turn.found.matched.length]).toEqual([NUMBER, 0]);

    // Alone, each event is asked about again.
    const alone = new Turn(deps, cache, losing().threads, client, ALONE);
    await alone.keys(world.anna.projectId, late);
    expect(alone.found.matched.map(({ uuid }) => uuid).sort()).toEqual(
      before.found.matched.map(({ uuid }) => uuid).sort(),
    );
    expect(alone.found.missing).toBe(0);
  });
});

/** Threads that fail at events with a text. */
const failingAt = (text: string): MatchThreads => ({
  run(...request) {
    if (!Buffer.from(request[0].bytes).includes(text)) return threads.run(...request);
    const failure = { name: 'TypeError', message: 'a fault' };
    return Promise.reject(new ThreadError('failed', 'a fault', failure));
  },
});

/** Has Postgres fail where it reads some events, alone or with others. */
function unreadable(uuids: ReadonlySet<string>): () => void {
  const { query } = pg.Connection.prototype;
  pg.Connection.prototype.query = function (this: pg.Connection, text: string) {
    const isCopy = text.includes('; copy (');
    const isMeant = isCopy && (text.includes('e.ctid') || [...uuids].some((one) => text.includes(one)));
    return query.call(this, isMeant ? 'begin; copy (select 1 / 0) to stdout (format binary); commit' : text);
  };
  return () => {
    pg.Connection.prototype.query = query;
  };
}

test.each(['a thread', 'Postgres'])(
  'events at which nobody can look stay for later, behind the others, and delay nobody: %s',
  async (who) => {
    const { pool, config } = world.api;
    const event = `poisoned for ${who}`;
    const text = `poison for ${who}`;
    await world.capture(
      Array.from({ length: 15 }, (_, id) => ({ event, properties: { id, text: id < 12 ? text : '' } })),
    );
    const { rows } = await pool.query(
      'select uuid from events where event = $1 order by (properties->>$2)::int',
      [event, 'id'],
    );
    const uuids = rows.map(({ uuid }) => uuid as string);
    const failing = who === 'Postgres' ? threads : failingAt(text);
    const mend = who === 'Postgres' ? unreadable(new Set(uuids.slice(0, 12))) : () => undefined;
    const cache = new DefinitionCache(pool, config.SLUICE_PUBLIC_URL);
    const deps = { readPool: pool, logger };
    const lateOf = ({ found }: Turn) => Buffer.concat(found.late.get(world.anna.projectId) ?? []);
    try {
      await transaction(pool, async (client) => {
        const batches = (await takeBatches(client, 10)).slice(-1);
        const turn = new Turn(deps, cache, failing, client, COMMON);
        await turn.batches(batches);
        expect(turn.found.matched).toEqual([]);
        const keys = lateOf(turn);
        expect(keys.length / KEY_BYTES).toBe(15);

        const all = Array.from({ length: 15 }, (_, at) =>
          keys.subarray(at * KEY_BYTES, (at + 1) * KEY_BYTES),
        );
        const ordered = uuids.map(
          (uuid) => all.find((one) => one.toString('hex').includes(uuid.replaceAll('-', ''))) as Buffer,
        );
        const alone = new Turn(deps, cache, failing, client, ALONE);
        await alone.keys(world.anna.projectId, Buffer.concat(ordered));
        // Ten of them were tried.
        const expected = Buffer.concat([...ordered.slice(10), ...ordered.slice(0, 10)]);
        expect(lateOf(alone).equals(expected)).toBe(true);

        const next = new Turn(deps, cache, failing, client, ALONE);
        await next.keys(world.anna.projectId, expected);
        expect(next.found.matched).toHaveLength(3);
        expect(next.found.missing).toBe(0);
        expect(lateOf(next).length / KEY_BYTES).toBe(12);
      });
    } finally {
      mend();
    }
  },
);

test('turns for one project leave a thread to those for all', async () => {
  const { pool, config } = world.api;
  const cache = new DefinitionCache(pool, config.SLUICE_PUBLIC_URL);
  const owners: (string | undefined)[] = [];
  const noting: MatchThreads = {
    run(...request) {
      owners.push(request[2]);
      return threads.run(...request);
    },
  };
  await transaction(pool, async (client) => {
    const batches = await takeBatches(client, 10);
    const keys = [
      ...(
        await batchKeys(
          client,
          batches.map(({ id }) => id),
        )
      ).values(),
    ];
    const common = new Turn({ readPool: pool, logger }, cache, noting, client, COMMON);
    await common.batches(batches);
    expect(new Set(owners.splice(0))).toEqual(new Set([undefined]));
    const alone = new Turn({ readPool: pool, logger }, cache, noting, client, ALONE);
    await alone.keys(world.anna.projectId, Buffer.concat(keys));
    // Whoever has a name never has all threads.
    expect(new Set(owners)).toEqual(new Set(['alone']));
  });
});
