import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { createIngest } from '../../capture/ingest.ts';
import { createPool } from '../../db/pool.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { asReader } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { heard, named, streamsForFile } from '../support/live.ts';
import { queriesOf } from '../support/query-log.ts';
import { insertPerson } from '../support/rows.ts';

const api = apiForFile({ SLUICE_REFUSALS_PER_MINUTE: '0' }, { liveBounds: { beat: 100 } });
const { Anna: anna, Otto: otto } = tenantsForFile(api, 'Anna', 'Otto');
const { listen, listeners, store, beside } = streamsForFile(api);

describe('a stream', () => {
  test('has each event once, as the list shows it, and what no proxy keeps', async () => {
    const stream = await listen(anna);
    expect([stream.status, stream.headers]).toMatchObject([
      200,
      {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      },
    ]);
    await store(anna, { event: 'one', properties: { text: 'a\nb\u2028', list: [1, { a: null }] } });
    await heard(stream, 1);
    await store(anna, ...named('two'));
    await heard(stream, 2);
    const { results } = (
      await api.request(anna, 'GET', `/api/projects/${anna.projectId}/events/?orderBy=["timestamp"]`)
    ).json();
    const shown = stream.messages.map(({ data }) => data as { id: string });
    expect(shown).toEqual(shown.map(({ id }) => results.find((one: { id: string }) => one.id === id)));
    expect(stream.messages.map(({ event }) => event)).toEqual(['message', 'message']);
    expect(stream.text()).toMatch(/^retry: 1000\nid: \S+\n\n/);
    await eventually(async () => /\n\n:\nid: \S+\n\n/.test(stream.text()));
  });

  test('begins at now, and knows nothing of other projects', async () => {
    await store(anna, ...named('old'));
    const stream = await listen(anna);
    const others = await listen(otto);
    await store(otto, ...named('secret'));
    await store(anna, ...named('new'));
    await heard(others, 1);
    await heard(stream, 1);
    expect([stream.events().at(-1), others.events()]).toEqual(['new', ['secret']]);
    expect(stream.text()).not.toContain('secret');
  });

  test('of several processes has everything that several writers store, once and in one order', async () => {
    await beside({}, async (there) => {
      const streams = [await listen(anna), await listen(anna), await listen(anna, {}, there)];
      const count = 300;
      await Promise.all(
        Array.from({ length: count / 10 }, (_, writer) =>
          store(anna, ...named(...Array.from({ length: 10 }, (__, index) => `${writer}-${index}`))),
        ),
      );
      for (const one of streams) await heard(one, count);
      const ids = streams.map((one) =>
        one.messages.filter(({ event }) => event === 'message').map(({ id }) => id),
      );
      // All have the same end. A stream begins up to a second in the past.
      const [first, second, third] = ids.map((list) => list.slice(-count));
      expect(new Set(first).size).toBe(count);
      expect(first).toEqual(first?.toSorted());
      expect([second, third]).toEqual([first, first]);
    });
  });

  test('that ends goes on behind its last message, with what was stored meanwhile, in another process too', async () => {
    const first = await listen(anna);
    await store(anna, ...named('before'));
    await eventually(async () => first.events().includes('before'));
    first.leave();
    const names = Array.from({ length: 700 }, (_, index) => `missed ${index}`);
    await store(anna, ...named(...names));
    await beside({}, async (there) => {
      const second = await listen(anna, { lastId: first.lastId() }, there);
      await store(anna, ...named('after'));
      await eventually(async () => second.events().includes('after'));
      expect(second.events().toSorted()).toEqual(['after', ...names].toSorted());
      // Half of the way, and while another one listens to the same.
      const third = await listen(anna, { lastId: second.messages[349]?.id }, there);
      await eventually(async () => third.events().includes('after'));
      expect(third.events()).toEqual(second.events().slice(350));
      const quiet = await listen(anna, { lastId: third.lastId() }, there);
      await store(anna, ...named('last'));
      await eventually(async () => quiet.events().includes('last'));
      expect(quiet.events()).toEqual(['last']);
    });
  });

  test('that is cut again and again, and goes on at one process or another, has each event exactly once', async () => {
    const pools = Array.from({ length: 3 }, () =>
      createPool({ url: api.config.DATABASE_URL as string, size: 2, name: 'writer' }),
    );
    const stored: string[] = [];
    const write = async (pool: (typeof pools)[number], writer: number) => {
      const ingest = createIngest({ pool });
      for (let batch = 0; batch < 40; batch += 1) {
        const events = Array.from({ length: 1 + ((batch * 7 + writer) % 20) }, (_, index) =>
          capturedEvent({ index, event: `cut ${writer} ${batch} ${index}` }),
        );
        await ingest.submit({ projectId: anna.projectId, events });
        stored.push(...events.map(({ event }) => event));
      }
      await ingest.close();
    };
    const query = { where: "event like 'cut %'" };
    // Streams of the other process end by themselves, too.
    await beside({ bounds: { longest: 1_500 } }, async (there) => {
      /** Listens until the last event. Each stream is cut when it has some more events. */
      const follow = async (first: Awaited<ReturnType<typeof listen>>, number: number) => {
        const seen: string[] = [];
        let stream = first;
        for (let turn = 1; ; turn += 1) {
          const most = 1 + ((turn * 37 + number * 11) % 90);
          await eventually(
            async () =>
              stream.isOver() || stream.events().length >= most || stream.events().includes('cut end'),
          );
          stream.leave();
          expect([stream.status, stream.skipped()]).toEqual([200, 0]);
          seen.push(...stream.events());
          if (seen.includes('cut end')) return { seen, turn };
          const host = (turn + number) % 2 === 0 ? there : undefined;
          stream = await listen(anna, { query, lastId: stream.lastId() }, host);
        }
      };
      const streams = [
        await listen(anna, { query }),
        await listen(anna, { query }),
        await listen(anna, { query }, there),
      ];
      const following = Promise.all(streams.map(follow));
      await Promise.all(pools.flatMap((pool, at) => [write(pool, 2 * at), write(pool, 2 * at + 1)]));
      await store(anna, ...named('cut end'));
      const all = await following;
      const [one, ...others] = all.map(({ seen }) => seen);
      expect(one?.toSorted()).toEqual(['cut end', ...stored].toSorted());
      expect(others).toEqual([one, one]);
      expect(Math.min(...all.map(({ turn }) => turn))).toBeGreaterThan(1);
    });
    for (const one of pools) await one.end();
  });

  test('has each event once, also if reading breaks in the middle of a span', async () => {
    const { pool } = api;
    const login = new URL(asReader(api.config.DATABASE_URL as string));
    const database = login.pathname.slice(1);
    const reader = createPool({ url: login.href, size: 2, name: 'live-reader' });
    const lines: string[] = [];
    const logger = createLogger({ name: 'test', level: 'warn' }, { write: (line) => void lines.push(line) });
    // The reader waits for the client, however long it takes nothing.
    const bounds = { bytes: 64 * 1024, patience: 600_000, stalled: 600_000 };
    const names = Array.from({ length: 1_000 }, (_, index) => `broken ${index}`);
    await beside({ reader, logger, bounds }, async (there, metric) => {
      const stream = await listen(anna, { query: { where: "event like 'broken %'" } }, there);
      stream.pause();
      const text = 'x'.repeat(30_000);
      await store(anna, ...names.map((event) => ({ event, properties: { text } })));
      const sent = () => metric('sluice_live_events_total');
      await eventually(async () => {
        const count = await sent();
        await pause(300);
        return count > 0 && count === (await sent());
      });
      expect(await sent()).toBeLessThan(names.length);
      // Its role gets no new connection; that of the pool may have as many as it wants.
      await pool.query(`alter database ${database} connection limit 0`);
      await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluice-live-reader' and datname = $1`,
        [database],
      );
      stream.resume();
      await eventually(async () => lines.some((line) => line.includes('live events could not be read')));
      expect(stream.events().length).toBeLessThan(names.length);
      await pool.query(`alter database ${database} connection limit -1`);
      await heard(stream, names.length);
      await store(anna, ...named('broken end'));
      await eventually(async () => stream.events().includes('broken end'));
      expect(stream.events().toSorted()).toEqual([...names, 'broken end'].toSorted());
    });
    await reader.end();
  });
});

describe('filters', () => {
  const ADA = '00000000-0000-4000-8000-0000000000aa';
  const EVENTS: Partial<CapturedEvent>[] = [
    { event: 'buy', distinct_id: 'ada', properties: { price: 10 } },
    { event: 'buy', distinct_id: 'bob', properties: { price: 2 } },
    { event: 'look', distinct_id: 'ada', properties: {} },
    { event: 'end', distinct_id: 'eve', properties: {} },
  ];
  const END = ['end eve'];
  beforeAll(async () => {
    await insertPerson(api.pool, anna.projectId, {
      ...{ id: ADA, created_at: '2026-01-02T03:04:05Z', distinct_ids: ['ada'] },
      properties: { plan: 'paid' },
    });
  });

  test.each<[string, Record<string, string | string[]>, string[]]>([
    ['a name', { event: 'look' }, ['look ada']],
    ['names', { event: ['look', 'end'] }, ['look ada', ...END]],
    ['a distinct id', { distinct_id: 'bob' }, ['buy bob']],
    ['a person', { person_id: ADA }, ['buy ada', 'look ada']],
    ['properties', { properties: '[{"key":"price","value":5,"operator":"gt"}]' }, ['buy ada']],
    [
      'properties of a person',
      { properties: '[{"key":"plan","value":"paid","type":"person"}]' },
      ['buy ada', 'look ada'],
    ],
    ['HogQL', { where: "properties.price < 5 or event = 'end'" }, ['buy bob', ...END]],
    ['nothing', {}, ['buy ada', 'buy bob', 'look ada', ...END]],
  ])('by %s', async (_, query, expected) => {
    const stream = await listen(anna, { query });
    await store(anna, ...EVENTS);
    await heard(stream, expected.length);
    // A later one proves that no more came in between.
    const all = await listen(anna);
    await store(anna, { event: 'mark', distinct_id: 'eve' });
    await eventually(async () => all.events().includes('mark'));
    const shown = stream.messages.map(({ data }) => data as { event: string; distinct_id: string });
    const kept = shown
      .map((one) => `${one.event} ${one.distinct_id}`)
      .filter((one) => !one.startsWith('mark'));
    expect(kept.toSorted()).toEqual(expected.toSorted());
  });

  test.each<[string, Record<string, string | string[]>, Record<string, string>, string | null]>([
    ['an unknown parameter', { nothing: '1' }, {}, 'nothing'],
    ['properties that are no JSON', { properties: '[' }, {}, 'properties'],
    [
      'an operator that is none',
      { properties: '[{"key":"a","operator":"x"}]' },
      {},
      'properties__0__operator',
    ],
    ['HogQL that is none', { where: 'event =' }, {}, 'where__0'],
    ['a person that is none', { person_id: 'x' }, {}, 'person_id'],
    ['a place that is none', {}, { 'last-event-id': 'x' }, 'Last-Event-ID'],
    ['a place in the future', {}, { 'last-event-id': `2999-01-01T00:00:00Z/${ADA}` }, 'Last-Event-ID'],
  ])('refuse %s', async (_, query, headers, attr) => {
    const url = `/api/projects/${anna.projectId}/events/live/?${new URLSearchParams(query as Record<string, string>)}`;
    const answer = await api.request(anna, 'GET', url, undefined, headers);
    expect([answer.statusCode, answer.json()]).toMatchObject([400, { type: 'validation_error', attr }]);
    expect(await listeners()).toBe(0);
  });
});

describe('nobody', () => {
  test('costs nothing: no query is made without a listener', async () => {
    const stream = await listen(anna);
    await store(anna, ...named('last'));
    await eventually(async () => stream.events().includes('last'));
    stream.leave();
    await eventually(async () => (await listeners()) === 0);
    const ofLive = async () => {
      const { queries } = await queriesOf(() => new Promise((resolve) => setTimeout(resolve, 2_000)));
      return queries.filter((one) => one.includes('event_horizon'));
    };
    // What was under way may still end.
    await eventually(async () => (await ofLive()).length === 0);
  });
});

describe('each wall between tenants holds alone', () => {
  const isAlone = async (host: string) => {
    const streams = [
      await listen(anna, {}, host),
      await listen(anna, { query: { where: "event != 'nothing'" } }, host),
    ];
    await store(otto, ...named('secret'));
    await store(anna, ...named('own'));
    for (const one of streams) {
      await eventually(async () => one.events().includes('own'));
      expect(one.text()).not.toContain('secret');
    }
  };

  test('the condition of the statement, when its role sees everything', () =>
    beside({ reader: api.pool }, isAlone));

  test('the rows that the role sees, when the statement has no condition', async () => {
    let changed = 0;
    const reader = createPool({ url: asReader(api.config.DATABASE_URL as string), size: 2, name: 'walls' });
    reader.on('connect', (client) => {
      const query = client.query.bind(client) as (...all: unknown[]) => unknown;
      const without = (text: string) =>
        text.replaceAll(/(?:\w+\.)?project_id = (\$\d+)/g, (_, value) => {
          changed += 1;
          return `${value}::bigint > 0`;
        });
      client.query = ((...[first, ...rest]: unknown[]) =>
        query(typeof first === 'string' ? without(first) : first, ...rest)) as typeof client.query;
    });
    await beside({ reader }, isAlone);
    expect(changed).toBeGreaterThan(0);
    await reader.end();
  });
});
