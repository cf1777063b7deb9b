// Weeks that are over are left out where their events have other times, and nothing is lost by it.
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { sealEventWeeks } from '../../db/event-weeks.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { queriesOf } from '../support/query-log.ts';
import { type EventFields, insertEvents, insertPerson } from '../support/rows.ts';

const api = apiForFile();
const uuid = (n: number) => `018f0000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const ADA = '00000000-0000-4000-8000-0000000000aa';
const MERGED = '00000000-0000-4000-8000-0000000000ab';
let anna: Tenant;
let otto: Tenant;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  otto = await api.createTenant('Otto');
  await insertPerson(api.pool, anna.projectId, { id: ADA, distinct_ids: ['ada', 'phone'] });
  const events: EventFields[] = [];
  for (let week = 0; week < 30; week += 1) {
    const inserted_at = new Date(Date.UTC(2025, 0, 8) + week * 7 * 86_400_000).toISOString();
    const of = (fields: Partial<EventFields>): EventFields => ({
      ...{ project_id: anna.projectId, uuid: uuid(events.length), timestamp: inserted_at, inserted_at },
      ...fields,
    });
    events.push(of({ event: 'weekly', distinct_id: 'bob' }));
    if (week === 20)
      events.push(of({ event: 'late', distinct_id: 'ada', timestamp: '2025-02-01T10:00:00Z' }));
    if (week === 5)
      events.push(
        of({ event: 'early', distinct_id: 'phone', person_id: MERGED, timestamp: '2026-01-01T00:00:00Z' }),
      );
    if (week === 10) events.push(of({ event: 'nobody', distinct_id: 'nobody', person_id: uuid(900) }));
    events.push(of({ project_id: otto.projectId, event: 'secret' }));
  }
  await insertEvents(api.pool, events);
  await api.pool.query('insert into event_ids select project_id, uuid, timestamp from events');
  await ensureEventPartitions(api.pool, new Date(), 2);
});

interface Answer {
  results: unknown[][];
  explain: string[] | null;
}

async function ask(query: string, explain = false): Promise<Answer> {
  const body = { query: { kind: 'HogQLQuery', query }, explain };
  const answer = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/query/`, body);
  expect({ query, status: answer.statusCode, ...(answer.statusCode !== 200 && answer.json()) }).toEqual({
    ...{ query, status: 200 },
  });
  return answer.json();
}

/** Reads page after page, as the links `next` say. */
async function pages(parameters: string): Promise<string[]> {
  const ids: string[] = [];
  for (let url = `/api/projects/${anna.projectId}/events/?${parameters}`; ; ) {
    const answer = await api.request(anna, 'GET', url);
    expect({ url, status: answer.statusCode }).toEqual({ url, status: 200 });
    const { results, next } = answer.json();
    ids.push(...results.map((one: { id: string }) => one.id));
    if (next === null) return ids;
    expect(results.length).toBeGreaterThan(0);
    const { pathname, search } = new URL(next);
    url = pathname + search;
  }
}

async function list(parameters: string): Promise<string[]> {
  const answer = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/events/?${parameters}`);
  expect({ parameters, status: answer.statusCode }).toEqual({ parameters, status: 200 });
  return answer.json().results.map((one: { id: string }) => one.id);
}

const QUERIES = [
  'select uuid from events order by timestamp, uuid',
  "select uuid from events where timestamp > '2025-02-01' and timestamp < '2025-02-02'",
  "select uuid from events where timestamp >= '2025-03-01' and timestamp < '2025-04-01' order by timestamp desc, uuid",
  "select count() from events where timestamp > '2026-01-01' or event = 'late'",
  "select uuid from events where toDate(timestamp) = '2025-02-01'",
  "select uuid from events where toStartOfMonth(timestamp) = '2025-05-01' order by timestamp, uuid",
  'select uuid from events where timestamp > now() - interval 3000 day and timestamp < now() order by timestamp, uuid',
  "select e.uuid, o.uuid from events e left join events o on e.event = o.event and o.timestamp < '2025-02-01' where e.timestamp > '2025-07-01' and o.timestamp > '2025-01-10' order by e.uuid, o.uuid",
  "select '2030-01-01' as timestamp, uuid from events where timestamp > '2029-01-01' order by uuid",
  `select uuid from events where person_id = '${ADA}' order by uuid`,
  `select uuid from events where person_id = '${MERGED}'`,
  `select uuid from events where person_id = '${uuid(900)}'`,
  `select uuid from events where person_id in ('${ADA}', '${uuid(900)}') order by uuid`,
  `select count() from events where not (person_id = '${ADA}')`,
  `select countIf(person_id = '${ADA}') from events`,
];
const LISTS = [
  '',
  'after=2025-02-01&before=2025-02-02',
  'after=2025-03-01&before=2025-04-01&event=weekly',
  'before=2025-01-20',
  'event=early&after=2025-12-31',
  `person_id=${ADA}&after=2020-01-01`,
  `where=["event != 'weekly'"]&after=2020-01-01`,
  `where=["event != 'weekly'"]&after=2025-01-31&before=2025-02-03`,
];

/** Pages that end within the weeks that are read first, at their ends, and behind them. */
const PAGES = [2, 4, 33, 100].flatMap((limit) => [
  `limit=${limit}`,
  `limit=${limit}&orderBy=["timestamp"]`,
  `limit=${limit}&before=2025-07-01`,
  `limit=${limit}&after=2025-02-03&orderBy=["timestamp"]`,
  `limit=${limit}&distinct_id=bob`,
  `limit=${limit}&distinct_id=bob&orderBy=["timestamp"]`,
  `limit=${limit}&distinct_id=bob&after=2025-02-03`,
  `limit=${limit}&distinct_id=bob&event=weekly`,
  `limit=${limit}&person_id=${ADA}`,
  `limit=${limit}&person_id=${ADA}&orderBy=["timestamp"]`,
  `limit=${limit}&person_id=${uuid(900)}`,
  `limit=${limit}&where=["event != 'late'"]`,
]);

describe('a query that leaves out weeks', () => {
  let before: unknown;
  const allPages = async () => {
    const found: Record<string, string[]> = {};
    for (const one of PAGES) found[one] = await pages(one);
    return found;
  };
  const all = async () => ({
    pages: await allPages(),
    queries: await Promise.all(QUERIES.map(async (one) => ({ [one]: (await ask(one)).results }))),
    lists: await Promise.all(LISTS.map(async (one) => ({ [one]: await list(one) }))),
  });

  test('answers as one that reads all of them', async () => {
    before = await all();
    expect(
      await sealEventWeeks(api.pool, { signal: new AbortController().signal, beat: () => undefined }),
    ).toBe(30);
    expect(await all()).toEqual(before);
    // Some find something.
    expect((await ask(QUERIES[1] as string)).results).toHaveLength(1);
    expect((await ask(QUERIES[9] as string)).results).toHaveLength(2);
    expect(await list(LISTS[1] as string)).toHaveLength(1);
    expect(await list('event=early&after=2025-12-31')).toHaveLength(1);
  });

  test('reads the weeks at the end of a page first, and the others if it needs them', async () => {
    const statements = async (parameters: string) => {
      const { queries, values } = await queriesOf(() => list(parameters));
      return values.filter((_, index) => /\bfrom events\b/.test(queries[index] as string));
    };
    const [newest, ...others] = await statements('limit=2');
    expect(others).toEqual([]);
    expect(newest).toEqual(expect.arrayContaining([expect.stringMatching(/^2025-0[67]-/)]));
    const [oldest, ...none] = await statements('limit=2&orderBy=["timestamp"]');
    expect(none).toEqual([]);
    expect(oldest).toEqual(expect.arrayContaining([expect.stringMatching(/^2025-0[12]-/)]));
    expect(await statements('limit=10')).toHaveLength(2);
    expect(await statements('limit=100')).toHaveLength(3);
    expect(await statements('limit=2&offset=8')).toHaveLength(1);
    expect(await statements(`limit=2&where=["event = 'nobody'"]`)).toHaveLength(3);
  });

  test('reads the other weeks of a person or a distinct id at once, by a plan that Postgres keeps', async () => {
    const keeps = 'set local plan_cache_mode = force_generic_plan';
    const statements = async (parameters: string) => {
      const { queries } = await queriesOf(() => list(parameters));
      return queries
        .filter((text) => text === keeps || /\bfrom events\b/.test(text))
        .map((text) => text === keeps);
    };
    for (const one of ['distinct_id=bob', `person_id=${ADA}`, `person_id=${ADA}&orderBy=["timestamp"]`]) {
      expect([one, await statements(`limit=50&${one}`)]).toEqual([one, [false, true, false]]);
    }
    // Texts that differ more are not kept, nor those that few weeks are planned for.
    for (const one of ['event=weekly', 'after=2025-01-01', 'before=2025-02-20']) {
      expect(await statements(`limit=100&distinct_id=bob&${one}`)).not.toContain(true);
    }
    expect(await statements('limit=100')).not.toContain(true);
  });

  const weeksOf = ({ explain }: Answer) =>
    [...new Set((explain ?? []).flatMap((line) => line.match(/\bevents_\d{8}\b/g) ?? []))].sort();

  test('reads those of its times, and those that are open', async () => {
    const plan = await ask(
      "select uuid from events where timestamp > '2025-03-04' and timestamp < '2025-03-06'",
      true,
    );
    const weeks = weeksOf(plan);
    expect(weeks.filter((one) => one < 'events_2026')).toEqual(['events_20250303', 'events_20250310']);
    const late = await ask(
      "select uuid from events where timestamp > '2025-01-30' and timestamp < '2025-02-03'",
      true,
    );
    // What came in late, and what was ahead of its time.
    expect(weeksOf(late)).toEqual(expect.arrayContaining(['events_20250526']));
    expect(weeksOf(late)).not.toContain('events_20250210');
  });

  test('finds a person by the indexes of the weeks', async () => {
    const { explain } = await ask(
      `select uuid from events where person_id = '${ADA}' and timestamp > '2025-05-27' and timestamp < '2025-05-29'`,
      true,
    );
    expect(explain?.join('\n')).toMatch(/distinct_id = ANY/);
  });

  test('finds one event by its id', async () => {
    for (const id of (before as { lists: Record<string, string[]>[] }).lists[0]?.[''] ?? []) {
      const answer = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/events/${id}/`);
      expect(answer.statusCode).toBe(200);
    }
  });
});
