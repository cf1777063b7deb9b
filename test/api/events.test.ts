import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventPage, pageTexts } from '../../api/events/event-schema.ts';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { createIngest, type Ingest } from '../../capture/ingest.ts';
import { type EventRow, listEvents } from '../../db/events.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { turnsDuring } from '../support/loop.ts';
import { queriesOf } from '../support/query-log.ts';
import { insertPerson } from '../support/rows.ts';

/** What node-postgres keeps of a connection. */
interface Connected {
  connection: { stream: { bytesRead: number } };
}

let pool: Pool;
let ingest: Ingest;
let anna: Tenant;
afterAll(async () => {
  await ingest?.close();
  await pool?.end();
});
const api = apiForFile();

beforeAll(async () => {
  pool = createPool({ url: api.config.DATABASE_URL as string, size: 2, name: 'ingest' });
  ingest = createIngest({ pool });
  anna = await api.createTenant('Anna');
});

const store = (tenant: Tenant, ...events: Partial<CapturedEvent>[]) =>
  ingest.submit({ projectId: tenant.projectId, events: events.map(capturedEvent) });
const list = async (tenant: Tenant, query = '') => {
  const answer = await api.request(tenant, 'GET', `/api/projects/${tenant.projectId}/events/${query}`);
  expect(answer.statusCode).toBe(200);
  return answer.json() as {
    next: string | null;
    results: { id: string; event: string; timestamp: string }[];
  };
};
const refused = async (query: string) => {
  const answer = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/events/${query}`);
  expect(answer.statusCode).toBe(400);
  return answer.json();
};
/** Follows `next` to the end. */
async function readAll(tenant: Tenant, query: string, between?: () => Promise<unknown>) {
  const pages: string[][] = [];
  let url: string | null = `/api/projects/${tenant.projectId}/events/${query}`;
  while (url) {
    const answer = await api.request(tenant, 'GET', url.replace('https://sluice.test', ''));
    expect(answer.statusCode).toBe(200);
    const { next, results } = answer.json();
    pages.push(results.map((one: { id: string }) => one.id));
    url = next;
    await between?.();
  }
  return pages;
}

describe('an event', () => {
  const uuid = '01890af2-aaaa-7bbb-8ccc-0123456789ab';
  const record = {
    id: uuid,
    event: '$autocapture',
    distinct_id: '42',
    timestamp: '2026-01-02T03:04:05.678000+00:00',
    properties: { n: 1, nested: { list: [null, 'é'] } },
    person: null,
    elements: [expect.objectContaining({ tag_name: 'a', text: 'Buy', order: 0 })],
    elements_chain: 'a:text="Buy"',
  };

  test('is listed and retrieved in the documented form', async () => {
    await store(anna, {
      uuid,
      event: '$autocapture',
      distinct_id: '42',
      properties: { n: 1, nested: { list: [null, 'é'] }, $elements_chain: 'a:text="Buy"' },
    });
    expect(await list(anna, '?distinct_id=42')).toEqual({ next: null, results: [record] });
    for (const id of [uuid, uuid.toUpperCase()]) {
      const one = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/events/${id}/`);
      expect(one.json()).toEqual(record);
    }
  });

  test('that is none, unknown or of another project is not found', async () => {
    const other = await api.createTenant('Other');
    const get = async (tenant: Tenant, id: string) => {
      const answer = await api.request(tenant, 'GET', `/api/projects/${tenant.projectId}/events/${id}/`);
      return { status: answer.statusCode, ...answer.json() };
    };
    expect(await get(anna, 'x')).toEqual({
      status: 400,
      type: 'validation_error',
      code: 'invalid',
      detail: 'Invalid UUID',
      attr: null,
    });
    const missing = { status: 404, code: 'not_found', detail: `No events exist for event UUID ${uuid}` };
    expect(await get(other, uuid)).toMatchObject(missing);
    expect((await list(other)).results).toEqual([]);
  });

  test('is read by keys with query:read only', async () => {
    const reader = await api.createTenant('Reader', { scopes: ['query:read'] });
    const writer = await api.createTenant('Writer', { scopes: ['organization:write'] });
    expect((await list(reader)).results).toEqual([]);
    const answer = await api.request(writer, 'GET', `/api/projects/${writer.projectId}/events/`);
    expect(answer.statusCode).toBe(403);
  });
});

describe('filters', () => {
  const hour = 3_600_000;
  const now = Date.now();
  let ben: Tenant;
  const names = async (query: string) => (await list(ben, query)).results.map((one) => one.event);
  const iso = (milliseconds: number) => encodeURIComponent(new Date(milliseconds).toISOString());

  beforeAll(async () => {
    ben = await api.createTenant('Ben');
    await store(
      ben,
      { event: 'old', timestamp: now - 100 * 24 * hour, distinct_id: '007' },
      { event: 'b', timestamp: now - 3 * hour },
      { event: 'a & b', timestamp: now - 2 * hour },
      { event: 'c', timestamp: now - hour, distinct_id: '7' },
      { event: 'tomorrow', timestamp: now + 24 * hour },
    );
  });

  test.each([
    ['', ['c', 'a & b', 'b', 'old']],
    ['?orderBy=["timestamp"]', ['old', 'b', 'a & b', 'c']],
    ['?orderBy=["-timestamp"]&limit=2', ['c', 'a & b']],
    ['?offset=1&limit=2', ['a & b', 'b']],
    ['?event=a%20%26%20b', ['a & b']],
    ['?event=A%20%26%20b', []],
    ['?distinct_id=7', ['c']],
    ['?distinct_id=007', ['old']],
    ['?person_id=17', []],
    [`?after=${iso(now - 3 * hour)}`, ['c', 'a & b']],
    [`?before=${iso(now - 2 * hour)}`, ['b', 'old']],
    [`?before=${iso(now + 48 * hour)}&limit=1`, ['tomorrow']],
    ['?after=-90m', undefined],
    ['?after=-1d', ['c', 'a & b', 'b']],
    ['?after=-7d&before=-90d', []],
    ['?after=0001-01-01', ['c', 'a & b', 'b', 'old']],
  ])('%s', async (query, expected) => {
    if (expected) expect(await names(query)).toEqual(expected);
    else expect((await refused(query)).attr).toBe('after');
  });

  test('a person is found by the id of its events', async () => {
    const { rows } = await api.pool.query(
      `select person_id from events where project_id = $1 and distinct_id = '007'`,
      [ben.projectId],
    );
    expect(await names(`?person_id=${rows[0].person_id}`)).toEqual(['old']);
    expect(await names(`?person_id=${uuidv7()}`)).toEqual([]);
  });

  test.each([
    ['?limit=abc', 'limit', 'A valid integer is required.'],
    ['?limit=-1', 'limit', 'A valid integer is required.'],
    ['?offset=50001', 'offset', 'Offset is deprecated. Max supported offset value is 50000.'],
    ['?after=yesterday', 'after', 'Must be an ISO 8601 time, or relative as -7d or -1h.'],
    ['?before=2026-13-01', 'before', 'Must be an ISO 8601 time, or relative as -7d or -1h.'],
    ['?after=0000-02-30', 'after', 'Must be an ISO 8601 time, or relative as -7d or -1h.'],
    ['?before=2026-02-30', 'before', 'Must be an ISO 8601 time, or relative as -7d or -1h.'],
    [
      `?before_uuid=${uuidv7()}`,
      'before_uuid',
      '`before_uuid` needs `before`, the time of the event that it names.',
    ],
    [
      `?after_uuid=${uuidv7()}`,
      'after_uuid',
      '`after_uuid` needs `after`, the time of the event that it names.',
    ],
    ['?orderBy=event', 'orderBy', '"event" is not a valid choice.'],
    ['?selects=["event"]', 'selects', 'There is no field or parameter "selects" here.'],
    ['?format=xml', 'format', '"xml" is not a valid choice.'],
  ])('%s is refused', async (query, attr, detail) => {
    expect(await refused(query)).toEqual({
      type: 'validation_error',
      code: expect.any(String),
      attr,
      detail,
    });
  });
});

describe('persons of events', () => {
  const id = '01890af2-aaaa-7bbb-8ccc-00000000aaaa';
  let ben: Tenant;
  const names = async (query: string) => (await list(ben, query)).results.map((one) => one.event);

  beforeAll(async () => {
    ben = await api.createTenant('Ben of the persons');
    // Events that make nobody; the persons are put there by hand.
    const properties = { $process_person_profile: false };
    await store(
      ben,
      { event: 'anonymous', distinct_id: 'anon', timestamp: 1, properties },
      { event: 'known', distinct_id: 'ada', timestamp: 2, properties },
      { event: 'known again', distinct_id: 'ada', timestamp: 3, properties },
      { event: 'of nobody', distinct_id: 'nobody', timestamp: 4, properties },
      { event: 'plain', distinct_id: 'zed', timestamp: 5, properties },
    );
    await insertPerson(api.pool, ben.projectId, {
      id,
      distinct_ids: ['anon', 'ada'],
      is_identified: true,
      properties: { email: 'ada@example.com', name: null, plan: 'pro' },
    });
    await insertPerson(api.pool, ben.projectId, { id: uuidv7(), distinct_ids: ['zed'] });
    const other = await api.createTenant('Other of the persons');
    await insertPerson(api.pool, other.projectId, { id: uuidv7(), distinct_ids: ['nobody'] });
  });

  test('a person has the events of all their distinct ids, whatever id stands in them', async () => {
    expect(await names(`?person_id=${id}`)).toEqual(['known again', 'known', 'anonymous']);
    expect(await names(`?person_id=${id.toUpperCase()}&limit=1`)).toEqual(['known again']);
    expect(await names(`?person_id=${id}&distinct_id=anon`)).toEqual(['anonymous']);
    const { rows } = await api.pool.query(
      `select person_id from events where project_id = $1 and distinct_id = 'nobody'`,
      [ben.projectId],
    );
    expect(await names(`?person_id=${rows[0].person_id}`)).toEqual(['of nobody']);
    expect(await readAll(ben, `?person_id=${id}&limit=2`)).toEqual([
      [expect.any(String), expect.any(String)],
      [expect.any(String)],
    ]);
  });

  test('are shown when they are asked for, by one query for a page', async () => {
    const ada = {
      is_identified: true,
      distinct_ids: ['ada'],
      properties: { email: 'ada@example.com', name: null },
    };
    const expected = [{ is_identified: false, distinct_ids: ['zed'], properties: {} }, null, ada, ada, ada];
    const persons = async (query: string) => {
      const { result, queries } = await queriesOf(() => list(ben, query));
      return {
        persons: result.results.map((one) => (one as unknown as { person: unknown }).person),
        queries: queries.filter((text) => /\bpersons\b/.test(text)).length,
      };
    };
    expect(await persons('?include_person=true')).toEqual({ persons: expected, queries: 1 });
    expect(await persons('?include_person=True&event=known')).toEqual({ persons: [ada], queries: 1 });
    for (const query of ['', '?include_person=false']) {
      expect(await persons(query)).toEqual({ persons: expected.map(() => null), queries: 0 });
    }
    const { results } = await list(ben, '?event=known');
    const one = `/api/projects/${ben.projectId}/events/${results[0]?.id}/`;
    expect((await api.request(ben, 'GET', `${one}?include_person=true`)).json().person).toEqual(ada);
    expect((await api.request(ben, 'GET', one)).json().person).toBeNull();
    const refusal = await api.request(ben, 'GET', `${one}?include_person=yes`);
    expect([refusal.statusCode, refusal.json().attr]).toEqual([400, 'include_person']);
  });
});

describe('paging', () => {
  const at = Date.UTC(2026, 4, 6, 7, 8, 9, 123);

  test.each([
    ['newest first', '["-timestamp"]'],
    ['oldest first', '["timestamp"]'],
  ])(
    '%s shows each event once, also 3000 of one instant, while a writer adds more',
    async (_name, orderBy) => {
      const carl = await api.createTenant('Carl');
      const events = Array.from({ length: 3_600 }, (_, index) => ({
        uuid: uuidv7(),
        timestamp: index < 3_000 ? at : at + (index - 3_300),
      }));
      await store(carl, ...events);
      const added = new Set<string>();
      const pages = await readAll(
        carl,
        `?limit=700&orderBy=${orderBy}&personal_api_key=${carl.key}`,
        async () => {
          const more = Array.from({ length: 50 }, (_, index) => ({
            uuid: uuidv7(),
            timestamp: at + (index % 5) - 2,
          }));
          for (const { uuid } of more) added.add(uuid);
          await store(carl, ...more);
        },
      );
      const seen = pages.flat();
      expect(new Set(seen).size).toBe(seen.length);
      const original = seen.filter((id) => !added.has(id));
      expect(original.length).toBe(3_600);
      expect(new Set(original)).toEqual(new Set(events.map((event) => event.uuid)));
      expect(pages.slice(0, -1).every((page) => page.length === 700)).toBe(true);
    },
  );

  test.each([
    ['["timestamp"]', ['first', 'second', 'third']],
    ['["-timestamp"]', ['third', 'second', 'first']],
  ])('reaches events of the year 0, in the order %s', async (orderBy, expected) => {
    const zoe = await api.createTenant('Zoe');
    await store(
      zoe,
      { event: 'first', timestamp: Date.parse('0000-02-29T00:00:00Z') },
      { event: 'second', timestamp: Date.parse('0000-02-29T00:00:00.001Z') },
      { event: 'third', timestamp: Date.parse('0001-01-01T00:00:00Z') },
    );
    const seen: { event: string; timestamp: string }[] = [];
    let query: string | undefined = `?limit=1&orderBy=${orderBy}`;
    while (query !== undefined) {
      const { results, next } = await list(zoe, query);
      seen.push(...results);
      query = next === null ? undefined : new URL(next).search;
    }
    expect(seen.map(({ event }) => event)).toEqual(expected);
    expect(seen.find(({ event }) => event === 'second')?.timestamp).toBe('0000-02-29T00:00:00.001000+00:00');
    const [after] = (await list(zoe, '?after=0000-02-29&orderBy=["timestamp"]')).results;
    expect(after?.event).toBe('second');
  });

  test('the link keeps the filters, holds no key, and is absent on the last page', async () => {
    const dora = await api.createTenant('Dora');
    await store(dora, ...Array.from({ length: 3 }, (_, index) => ({ timestamp: at + index })));
    const { next, results } = await list(dora, `?limit=2&event=page%20viewed&personal_api_key=x&offset=0`);
    const link = new URL(next as string);
    expect(link.origin + link.pathname).toBe(`https://sluice.test/api/projects/${dora.projectId}/events/`);
    expect(Object.fromEntries(link.searchParams)).toEqual({
      limit: '2',
      event: 'page viewed',
      before: '2026-05-06T07:08:09.124000+00:00',
      before_uuid: results[1]?.id,
    });
    expect((await list(dora, '?limit=3')).next).toBeNull();
    expect((await list(dora, link.search)).results).toHaveLength(1);
    // The same, by somebody who does not encode the plus sign.
    expect((await list(dora, '?limit=3&before=2026-05-06T07:08:09.124+00:00')).results).toHaveLength(1);
  });

  test('a page of very large events ends early and says so', async () => {
    const emil = await api.createTenant('Emil');
    const text = 'x'.repeat(3_000_000);
    for (let index = 0; index < 8; index += 1) {
      await store(emil, { timestamp: at + index, properties: { text } });
    }
    const { result: pages, queries, rows } = await queriesOf(() => readAll(emil, '?limit=50'));
    expect(pages.map((page) => page.length)).toEqual([6, 2]);
    // Postgres sends no more than is shown: with the largest events, the rest would not fit into memory.
    expect(rows.filter((_, at) => queries[at]?.includes('from events'))).toEqual([6, 2]);
  });

  test('reads no more of very large events than a page holds', async () => {
    const fred = await api.createTenant('Fred');
    const text = 'x'.repeat(3_000_000);
    for (let index = 0; index < 20; index += 1) {
      await store(fred, { timestamp: at + index, properties: { text } });
    }
    const reading = createPool({ url: api.config.DATABASE_URL as string, size: 1, name: 'reading' });
    const sockets: { bytesRead: number }[] = [];
    reading.on('connect', (client) => sockets.push((client as unknown as Connected).connection.stream));
    const { projectId } = fred;
    const page = await listEvents(reading, { projectId, ascending: false, limit: 50, offset: 0 });
    expect([page.rows.length, page.next?.uuid]).toEqual([6, page.rows.at(-1)?.uuid]);
    expect(sockets.reduce((sum, one) => sum + one.bytesRead, 0)).toBeLessThan(20_000_000);
    await reading.end();
  });

  test('shows only the first elements of an endless chain', async () => {
    const gina = await api.createTenant('Gina');
    const chain = 'a;'.repeat(500_000);
    await store(gina, { timestamp: at, properties: { $elements_chain: chain } });
    const answer = await list(gina);
    const [shown] = answer.results as unknown as { elements: unknown[]; elements_chain: string }[];
    expect([shown?.elements.length, shown?.elements_chain.length]).toEqual([1_000, 1_000_000]);
  });

  test('is written in pieces, between which others have their turn', async () => {
    const row: EventRow = {
      ...{ uuid: uuidv7(), event: 'e', distinct_id: 'u', timestamp: '2026-05-06T07:08:09.123Z' },
      ...{ properties: JSON.stringify({ text: 'x'.repeat(1_000) }), elements_chain: '' },
    };
    const pieces: string[] = [];
    const turns = await turnsDuring(async () => {
      for await (const piece of pageTexts(Array(2_000).fill(row), new Map(), null)) pieces.push(piece);
    });
    expect(eventPage.parse(JSON.parse(pieces.join(''))).results).toHaveLength(2_000);
    expect(pieces.length).toBeGreaterThan(10);
    expect(Math.max(...pieces.map((one) => one.length))).toBeLessThan(200_000);
    expect(turns).toBeGreaterThanOrEqual(pieces.length - 1);
  });
});
