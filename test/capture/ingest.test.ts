import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createPersonRule, type PersonRule } from '../../capture/ingest/persons.ts';
import { createIngest, EventsRefusedError, type Ingest } from '../../capture/ingest.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { databaseForFile } from '../support/database.ts';
import { PATIENCE } from '../support/eventually.ts';
import { capturedEvent } from './support.ts';

let pool: Pool;
let ingest: Ingest;
// Hooks run in the order they are written: the connections go before the database.
afterAll(async () => {
  await ingest?.close();
  await pool?.end();
});
const database = databaseForFile();
beforeAll(() => {
  pool = createPool({ url: database.url, size: 2, name: 'ingest' });
  ingest = createIngest({ pool, limits: { patience: PATIENCE } });
});

/** An event whose row Postgres refuses: what stands for its person is no JSON. */
const POISON = capturedEvent({ event: 'poison' });
const personRule = createPersonRule();
const withPoison: PersonRule = {
  ...personRule,
  async resolve(client, events, ...more) {
    const resolved = await personRule.resolve(client, events, ...more);
    const persons = resolved.persons.map((person, index) =>
      events[index]?.event.event === POISON.event ? { ...person, properties: '{' } : person,
    );
    return { ...resolved, persons };
  },
};

let project = 100;
/** A project that no other test writes to. */
const nextProject = () => {
  project += 1;
  return project;
};

async function stored(projectId: number) {
  const { rows } = await database.pool.query(
    'select * from events where project_id = $1 order by inserted_at, ctid',
    [projectId],
  );
  return rows;
}

describe('what is stored', () => {
  test('every column of an event comes back as it went in', async () => {
    const projectId = nextProject();
    const event = capturedEvent({
      uuid: '01890af2-aaaa-7bbb-8ccc-0123456789AB',
      event: 'Ärger 🎉 gesehen',
      distinct_id: ' user with spaces ',
      historical: true,
      properties: {
        $session_id: 's-1',
        $window_id: 'w-1',
        $elements_chain: 'a:href="/x"',
        n: 1.5,
        deep: { ключ: ['値', null, true] },
        __proto__x: 1,
        long: 'ü'.repeat(40_000),
      },
      transformations: [{ id: 'f', properties: ['\u0000'] }],
    });
    const before = new Date();
    expect(await ingest.submit({ projectId, events: [event] })).toEqual({ stored: 1, duplicates: 0 });
    const { $elements_chain: _, ...properties } = event.properties;
    const [row, ...more] = await stored(projectId);
    expect(more).toEqual([]);
    expect(row).toEqual({
      project_id: projectId,
      uuid: '01890af2-aaaa-7bbb-8ccc-0123456789ab',
      timestamp: '2026-01-02T03:04:05.678000Z',
      created_at: '2026-01-02T03:04:06.789000Z',
      inserted_at: expect.any(String),
      historical: true,
      event: 'Ärger 🎉 gesehen',
      distinct_id: ' user with spaces ',
      properties,
      session_id: 's-1',
      window_id: 'w-1',
      elements_chain: 'a:href="/x"',
      transformations: [{ id: 'f', properties: ['\ufffd'] }],
      person_id: expect.any(String),
      person_mode: 'full',
      person_properties: {},
      group_0: null,
      group_1: null,
      group_2: null,
      group_3: null,
      group_4: null,
    });
    expect(Date.parse(row.inserted_at)).toBeGreaterThanOrEqual(before.getTime());
    expect(Date.parse(row.inserted_at)).toBeLessThanOrEqual(Date.now() + 1);
  });

  test('the person of an event without a person row has the id that follows from its distinct_id', async () => {
    await ingest.submit({ projectId: 1, events: [capturedEvent()] });
    const [row] = await stored(1);
    expect(row.person_id).toBe('6931a681-6e90-500d-8294-14582dcc2e3f');
  });

  test.each([
    ['the far past', -8.64e15, '0000-01-01T00:00:00Z'],
    ['before 1970', Date.UTC(1931, 4, 6, 7, 8, 9, 10), '1931-05-06T07:08:09.010000Z'],
    ['the year 2255 and a half', Date.UTC(2255, 6, 1), '2255-07-01T00:00:00Z'],
    ['the year 9999', Date.UTC(9999, 11, 31, 23, 59, 59, 999), '9999-12-31T23:59:59.999000Z'],
    ['no time at all', Number.NaN, '2026-01-02T03:04:06.789000Z'],
    ['beyond everything', Number.POSITIVE_INFINITY, '2026-01-02T03:04:06.789000Z'],
  ])('a timestamp in %s is stored', async (_name, timestamp, expected) => {
    const projectId = nextProject();
    await ingest.submit({ projectId, events: [capturedEvent({ timestamp })] });
    const [row] = await stored(projectId);
    expect(row.timestamp).toBe(expected);
  });

  test('events keep their order within a request', async () => {
    const projectId = nextProject();
    const events = Array.from({ length: 1_500 }, (_, index) =>
      capturedEvent({ event: `e${index}`, historical: true }),
    );
    await ingest.submit({ projectId, events: events.toReversed() });
    const rows = await stored(projectId);
    expect(rows.map((row) => row.event)).toEqual(events.map((event) => event.event).reverse());
  });
});

describe('hostile values', () => {
  test('NUL and halves of surrogate pairs are replaced, in texts, keys and values', async () => {
    const projectId = nextProject();
    const event = capturedEvent({
      event: 'a\u0000b',
      distinct_id: 'x\ud800y',
      properties: { 'k\u0000': 'v\udfff', list: ['\u0000', { deep: '\ud83d' }], $session_id: '\u0000s' },
    });
    await ingest.submit({ projectId, events: [event] });
    const { rows } = await database.pool.query(
      `select event, distinct_id, session_id, properties, properties ->> 'k\ufffd' as k from events where project_id = $1`,
      [projectId],
    );
    expect(rows).toEqual([
      {
        event: 'a\ufffdb',
        distinct_id: 'x\ufffdy',
        session_id: '\ufffds',
        k: 'v\ufffd',
        properties: { 'k\ufffd': 'v\ufffd', list: ['\ufffd', { deep: '\ufffd' }], $session_id: '\ufffds' },
      },
    ]);
  });

  test('text that only looks like an escape is kept as it is', async () => {
    const projectId = nextProject();
    const properties = { path: 'C:\\users\\u0000\\ud800', real: '\\\\u0000' };
    await ingest.submit({ projectId, events: [capturedEvent({ properties })] });
    const [row] = await stored(projectId);
    expect(row.properties).toEqual(properties);
  });

  test('a value of 8 MB, a thousand keys and numbers beyond all bounds are stored', async () => {
    const projectId = nextProject();
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`key ${index}`, index]));
    const huge = '€'.repeat((8 * 1024 * 1024) / 3);
    const events = [
      capturedEvent({ properties: { huge } }),
      capturedEvent({ properties: { ...many, infinite: Number.POSITIVE_INFINITY } }),
    ];
    expect(await ingest.submit({ projectId, events })).toEqual({ stored: 2, duplicates: 0 });
    const rows = await stored(projectId);
    expect(rows[0].properties.huge === huge).toBe(true);
    expect(rows[1].properties).toEqual({ ...many, infinite: null });
  });

  test('what Postgres refuses fails its own request only, and the requests that shared its transaction are stored', async () => {
    const projectId = nextProject();
    const picky = createIngest({ pool, persons: withPoison });
    const requests = Array.from({ length: 9 }, (_, index) =>
      picky.submit({ projectId, events: index === 4 ? [capturedEvent(), POISON] : [capturedEvent()] }),
    );
    const results = await Promise.allSettled(requests);
    expect(results.map((result) => result.status)).toEqual(
      results.map((_, index) => (index === 4 ? 'rejected' : 'fulfilled')),
    );
    await expect(requests[4]).rejects.toBeInstanceOf(EventsRefusedError);
    expect(await stored(projectId)).toHaveLength(8);
    await picky.close();
  });

  test('properties too deep for JSON itself and ids that are no uuid are refused before anything is stored', async () => {
    const projectId = nextProject();
    let deep: unknown = 1;
    for (let depth = 0; depth < 100_000; depth += 1) deep = { deep };
    const refused = (fields: object) =>
      expect(
        ingest.submit({ projectId, events: [capturedEvent(), capturedEvent(fields)] }),
      ).rejects.toBeInstanceOf(EventsRefusedError);
    await refused({ properties: { deep } });
    await refused({ uuid: 'not-a-uuid' });
    await refused({ uuid: '01890af2-aaaa-7bbb-8ccc-0123456789ag' });
    expect(await stored(projectId)).toEqual([]);
  });
});

describe('exactly once', () => {
  test('within a request, the first of the same uuid wins', async () => {
    const projectId = nextProject();
    const uuid = uuidv7();
    const events = ['first', 'second', 'third'].map((event) => capturedEvent({ uuid, event }));
    expect(await ingest.submit({ projectId, events: [...events, capturedEvent()] })).toEqual({
      stored: 2,
      duplicates: 2,
    });
    expect((await stored(projectId)).map((row) => row.event).sort()).toEqual(['first', 'page viewed']);
  });

  test('across requests: one after the other, at once, and in other writings of the same id', async () => {
    const projectId = nextProject();
    const events = Array.from({ length: 20 }, () => capturedEvent());
    await ingest.submit({ projectId, events });
    expect(await ingest.submit({ projectId, events })).toEqual({ stored: 0, duplicates: 20 });
    const upper = events.map((event) => ({ ...event, uuid: event.uuid.toUpperCase() }));
    expect(await ingest.submit({ projectId, events: [...upper, capturedEvent()] })).toEqual({
      stored: 1,
      duplicates: 20,
    });
    const again = capturedEvent();
    const results = await Promise.all(
      Array.from({ length: 50 }, () => ingest.submit({ projectId, events: [again] })),
    );
    expect(results.reduce((sum, result) => sum + result.stored, 0)).toBe(1);
    expect(results.reduce((sum, result) => sum + result.duplicates, 0)).toBe(49);
    expect(await stored(projectId)).toHaveLength(22);
  });

  test('of very many events, those that are known are left out', async () => {
    const projectId = nextProject();
    const events = Array.from({ length: 12_000 }, () => capturedEvent({ uuid: uuidv7() }));
    const known = events.filter((_, index) => index % 3 === 0);
    expect(await ingest.submit({ projectId, events: known })).toEqual({ stored: 4_000, duplicates: 0 });
    expect(await ingest.submit({ projectId, events })).toEqual({ stored: 8_000, duplicates: 4_000 });
    const { rows } = await database.pool.query(
      'select count(*)::int as events, count(distinct uuid)::int as uuids from events where project_id = $1',
      [projectId],
    );
    expect(rows).toEqual([{ events: 12_000, uuids: 12_000 }]);
  });

  test('the same uuid in two projects is two events', async () => {
    const event = capturedEvent();
    const [a, b] = [nextProject(), nextProject()];
    await Promise.all([a, b].map((projectId) => ingest.submit({ projectId, events: [event] })));
    expect(await stored(a)).toHaveLength(1);
    expect(await stored(b)).toHaveLength(1);
  });

  test('two ingests that store the same events in opposite orders at once store each once', async () => {
    const projectId = nextProject();
    const other = createPool({ url: database.url, size: 2, name: 'ingest' });
    const second = createIngest({ pool: other });
    const events = Array.from({ length: 3_000 }, () => capturedEvent());
    const submitted: Promise<{ stored: number }>[] = [];
    for (let from = 0; from < events.length; from += 300) {
      const slice = events.slice(from, from + 300);
      submitted.push(ingest.submit({ projectId, events: slice }));
      submitted.push(second.submit({ projectId, events: slice.toReversed() }));
    }
    const results = await Promise.all(submitted);
    await second.close();
    await other.end();
    expect(results.reduce((sum, result) => sum + result.stored, 0)).toBe(3_000);
    expect(await stored(projectId)).toHaveLength(3_000);
    const { rows } = await database.pool.query(
      'select count(*)::int as ids from event_ids where project_id = $1',
      [projectId],
    );
    expect(rows).toEqual([{ ids: 3_000 }]);
  });
});

test('the numbers for operators count events by what became of them, and transactions', async () => {
  const registry = createRegistry('test');
  const counted = createIngest({ pool, registry, persons: withPoison });
  const projectId = nextProject();
  const event = capturedEvent();
  await counted.submit({ projectId, events: [event, capturedEvent()] });
  await counted.submit({ projectId, events: [event] });
  await expect(counted.submit({ projectId, events: [POISON] })).rejects.toThrow(
    'The events cannot be stored: invalid input syntax for type json.',
  );
  await expect(counted.submit({ projectId, events: [capturedEvent({ uuid: 'none' })] })).rejects.toThrow(
    'The event at index 0 has a uuid that is none.',
  );
  await counted.close();
  await expect(counted.submit({ projectId, events: [event] })).rejects.toThrow('This process is stopping.');
  const lines = (await registry.metrics()).split('\n');
  const value = (name: string, label = '') =>
    lines
      .find((line) => line.startsWith(`${name}{`) && line.includes(label))
      ?.split(' ')
      .at(-1);
  expect(value('sluice_ingest_events_total', 'result="stored"')).toBe('2');
  expect(value('sluice_ingest_events_total', 'result="duplicate"')).toBe('1');
  expect(value('sluice_ingest_events_total', 'result="refused"')).toBe('2');
  expect(value('sluice_ingest_unavailable_total', 'reason="stopping"')).toBe('1');
  expect(value('sluice_ingest_commit_seconds_count')).toBe('2');
  expect(value('sluice_ingest_batch_events_sum')).toBe('3');
  expect(value('sluice_ingest_queue_events')).toBe('0');
  expect(value('sluice_ingest_queue_bytes')).toBe('0');
});

describe('a project that sends more than can be stored', () => {
  const text = 'x'.repeat(1_000);
  const one = () => [capturedEvent({ properties: { text } })];

  test('is refused when half of the room is its own, and others are not', async () => {
    const narrow = createIngest({ pool, limits: { queueBytes: 40_000 } });
    const [flooding, quiet] = [nextProject(), nextProject()];
    const flood = Array.from({ length: 100 }, () => narrow.submit({ projectId: flooding, events: one() }));
    const settled = Promise.allSettled(flood);
    expect(await narrow.submit({ projectId: quiet, events: one() })).toEqual({ stored: 1, duplicates: 0 });
    const accepted = (await settled).filter(({ status }) => status === 'fulfilled').length;
    expect([accepted > 10, accepted < 20]).toEqual([true, true]);
    expect(await stored(flooding)).toHaveLength(accepted);
    expect(await stored(quiet)).toHaveLength(1);
    await narrow.close();
  });

  test('has no others wait behind its events', async () => {
    const slow = createIngest({ pool, limits: { batchEvents: 10, connections: 1 } });
    const [flooding, quiet] = [nextProject(), nextProject()];
    const order: string[] = [];
    const flood = Array.from({ length: 100 }, () =>
      slow.submit({ projectId: flooding, events: one() }).then(() => order.push('flood')),
    );
    const other = slow.submit({ projectId: quiet, events: one() }).then(() => order.push('other'));
    await Promise.all([...flood, other]);
    expect(order.indexOf('other')).toBeLessThan(20);
    await slow.close();
  });
});
