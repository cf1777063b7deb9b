// `{filters}` in the text of a query, and what stands beside it.
import { beforeAll, describe, expect, test } from '@jest/globals';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { insertGroup } from '../support/rows.ts';

const api = apiForFile();
const { anna } = tenantsForFile(api, 'anna');
/** Sessions of two days, each with a page and a click. */
const DAYS = ['2026-03-10', '2026-03-12'] as const;
const PAGES = ['https://example.com/1', 'https://example.com/2'] as const;

beforeAll(async () => {
  const events = DAYS.flatMap((day, index) =>
    ['$pageview', 'click'].map((event, minutes) =>
      capturedEvent({
        ...{ index: index * 2 + minutes, event, distinct_id: `user-${index}` },
        timestamp: Date.parse(`${day}T12:0${minutes}:00Z`),
        properties: { $session_id: `session-${index}`, $current_url: PAGES[index] as string, n: minutes },
      }),
    ),
  );
  await api.ingest.submit({ projectId: anna.projectId, events });
  for (const [index, key] of ['acme', 'initech'].entries()) {
    await insertGroup(api.pool, anna.projectId, {
      ...{ id: `018f0000-0000-7000-8000-00000000000${index}`, group_type_index: 0, group_key: key },
      properties: { plan: index === 0 ? 'paid' : 'free' },
    });
  }
});

const post = (body: object) => api.request(anna, 'POST', `/api/projects/${anna.projectId}/query/`, body);
const ask = (query: string, more: object = {}) => post({ query: { kind: 'HogQLQuery', query, ...more } });
async function rows(query: string, filters?: object): Promise<unknown[]> {
  const answer = await ask(query, filters && { filters });
  expect({ status: answer.statusCode, ...(answer.statusCode !== 200 && answer.json()) }).toEqual({
    status: 200,
  });
  return answer.json().results.flat();
}
async function refusal(query: string, more: object = {}): Promise<[number, string, string]> {
  const answer = await ask(query, more);
  return [answer.statusCode, answer.json().attr, answer.json().detail];
}

const later = { dateRange: { date_from: '2026-03-11' } };
const earlier = { dateRange: { date_to: '2026-03-11' } };

describe('{filters} are conditions', () => {
  const EVENTS = 'select distinct_id from events where {filters} and n = 0';
  const ofEvents = EVENTS.replace('n = 0', 'properties.n = 0 order by timestamp');
  const SESSIONS = 'select session_id from sessions as s where {filters} order by session_id';
  const GROUPS = 'select key from groups where {filters} order by key';
  const ofPage = { properties: [{ key: '$entry_current_url', value: PAGES[1], type: 'session' }] };
  const ofPlan = { properties: [{ key: 'plan', value: 'paid', type: 'group', group_type_index: 0 }] };

  test.each<[string, object | undefined, string[]]>([
    [ofEvents, undefined, ['user-0', 'user-1']],
    [ofEvents, later, ['user-1']],
    [ofEvents, { ...earlier, ...ofPage }, []],
    [ofEvents, ofPage, ['user-1']],
    [SESSIONS, undefined, ['session-0', 'session-1']],
    [SESSIONS, later, ['session-1']],
    [SESSIONS, earlier, ['session-0']],
    [SESSIONS, ofPage, ['session-1']],
    [GROUPS, undefined, ['acme', 'initech']],
    [GROUPS, { dateRange: { date_from: '2026-01-01', date_to: '2026-01-03' } }, ['acme', 'initech']],
    [GROUPS, later, []],
    [GROUPS, ofPlan, ['acme']],
  ])('%s with %j', async (query, filters, expected) => {
    expect(await rows(query, filters)).toEqual(expected);
  });

  test('on the table of the query around them', async () => {
    const query = `select distinct_id from events as e where properties.n = 0 and e.$session_id in
      (select session_id from sessions where {filters}) and {filters}`;
    expect(await rows(query, later)).toEqual(['user-1']);
    const joined =
      'select e.distinct_id from sessions s join events e on e.$session_id = s.session_id where {filters} and e.properties.n = 0';
    expect(await rows(joined, earlier)).toEqual(['user-0']);
  });

  test.each([
    ['select id from persons where {filters}', {}, 'query', /events, sessions or groups/],
    ['select id from persons where {filters}', { filters: later }, 'query', /events, sessions or groups/],
    ['select 1 where {filters}', {}, 'query', /events, sessions or groups/],
    [
      SESSIONS,
      { filters: { properties: [{ key: 'n', value: 0 }] } },
      'query__filters__properties__0',
      /'event' .* 'session'/,
    ],
    [
      'select 1 from events',
      { filters: { properties: [{ key: 'n', type: 'x' }] } },
      'query__filters__properties__0__type',
      /./,
    ],
    [ofEvents, { filters: {}, values: { filters: true } }, 'query__values', /one of both/],
  ])('%s with %j is refused', async (query, more, attr, detail) => {
    expect(await refusal(query, more)).toEqual([400, attr, expect.stringMatching(detail)]);
  });
});

describe('the bounds of a range', () => {
  const FROM = 'select count() from events where timestamp >= {filters.dateRange.from}';
  const TO = 'select count() from events where timestamp < {filters.dateRange.to}';

  test.each<[string, object | undefined, number]>([
    [FROM, later, 2],
    [TO, earlier, 2],
    [
      `${FROM} and timestamp < {filters.dateRange.to}`,
      { dateRange: { date_from: '2026-03-11', date_to: '2026-03-12' } },
      0,
    ],
    // Without a bound, what compares with it is true.
    [FROM, undefined, 4],
    [FROM, earlier, 4],
    [`${FROM} and properties.n = 1`, undefined, 2],
    [`select count() from events where not (timestamp >= {filters.dateRange.from})`, undefined, 0],
  ])('%s with %j', async (query, filters, expected) => {
    expect(await rows(query, filters)).toEqual([expected]);
  });

  test('stand anywhere if there are any', async () => {
    const query = 'select toStartOfMonth({filters.dateRange.from}) from events limit 1';
    expect(await rows(query, later)).toEqual(['2026-03-01']);
    expect(await refusal(query)).toEqual([400, 'query', expect.stringContaining('{filters.dateRange.from}')]);
    const unknown = 'select dateTrunc({filters.interval}, timestamp) from events';
    expect(await refusal(unknown)).toEqual([
      400,
      'query',
      expect.stringMatching(/no \{filters\.interval\}.*\{filters\.dateRange\.to\}/),
    ]);
  });
});

describe('a field that does not exist', () => {
  test.each([
    [{ kind: 'EventsQuery', select: ['event'], propertys: [] }, 'query__propertys'],
    [{ kind: 'EventsQuery', select: ['event'], actionSteps: [{ event: 'click' }] }, 'query__actionSteps'],
    [{ kind: 'HogQLQuery', query: 'select 1', limit: 3 }, 'query__limit'],
    [{ kind: 'HogQLQuery', query: 'select 1', filters: { date_from: '-1d' } }, 'query__filters__date_from'],
    [
      { kind: 'HogQLQuery', query: 'select 1', filters: { dateRange: { from: '-1d' } } },
      'query__filters__dateRange__from',
    ],
    [{ kind: 'ActorsQuery', filter: 'ada' }, 'query__filter'],
  ])('%j is refused', async (query, attr) => {
    const answer = await post({ query });
    expect([answer.statusCode, answer.json().attr]).toEqual([400, attr]);
  });

  test('may be one that clients of PostHog send', async () => {
    const besides = { name: 'mine', tags: { scene: 'SQLEditor' }, version: 1, modifiers: {}, response: null };
    for (const query of [
      { kind: 'HogQLQuery', query: 'select 1', variables: {} },
      { kind: 'EventsQuery', select: ['event'] },
      { kind: 'ActorsQuery' },
    ]) {
      expect((await post({ query: { ...query, ...besides } })).statusCode).toBe(200);
    }
  });

  test('a SELECT may ask itself how it is run', async () => {
    const { explain } = (await ask('select count() from events', { explain: true })).json();
    expect(explain.join('\n')).toMatch(/Aggregate/);
    expect((await ask('select count() from events', { explain: false })).json()).not.toHaveProperty(
      'explain',
    );
  });
});
