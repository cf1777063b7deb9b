import { beforeAll, describe, expect, test } from '@jest/globals';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { insertPerson } from '../support/rows.ts';

const api = apiForFile();
const NOON = Date.UTC(2026, 2, 10, 12);
const uuid = (n: number) => `018f0000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const ADA = '00000000-0000-4000-8000-0000000000aa';
const ADA_BEFORE = '00000000-0000-4000-8000-0000000000ab';
const BOB = '00000000-0000-4000-8000-0000000000bb';
const CHAIN = 'button.primary:nth-child="1"nth-of-type="1"text="Buy"';

let anna: Tenant;
let otto: Tenant;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  otto = await api.createTenant('Otto');
  await insertPerson(api.pool, anna.projectId, {
    ...{ id: ADA, created_at: '2026-01-02T03:04:05Z', distinct_ids: ['ada', 'ada-phone'] },
    properties: { email: 'ada@example.com', plan: 'paid' },
  });
  await insertPerson(api.pool, anna.projectId, {
    ...{ id: BOB, created_at: '2026-01-01T00:00:00Z', distinct_ids: ['bob'], properties: { name: 'Bob' } },
  });
  const fields: Partial<CapturedEvent>[] = [
    {
      ...{ event: 'buy', distinct_id: 'ada' },
      properties: { price: 10, plan: 'paid', note: 'ü', $elements_chain: CHAIN },
    },
    { event: 'buy', distinct_id: 'ada-phone', properties: { price: 2.5 } },
    { event: 'look', distinct_id: 'bob', properties: { price: 'x', tags: ['a', 'b'] } },
    { event: 'look', distinct_id: 'nobody', properties: { $process_person_profile: false } },
  ];
  await api.ingest.submit({
    projectId: anna.projectId,
    events: fields.map((one, index) =>
      capturedEvent({ index, uuid: uuid(index + 1), timestamp: NOON + index * 60_000, ...one }),
    ),
  });
  // What these events told when they came in: the phone belonged to another person, who was merged since.
  await api.pool.query(
    `update events set person_id = case distinct_id when 'ada-phone' then $2::uuid else person_id end,
       person_properties = case distinct_id when 'ada' then '{"plan":"free"}'::json else '{}'::json end
     where project_id = $1`,
    [anna.projectId, ADA_BEFORE],
  );
  await api.ingest.submit({
    projectId: otto.projectId,
    events: [capturedEvent({ event: 'secret', distinct_id: 'otto', timestamp: NOON })],
  });
});

interface Answer {
  columns: string[];
  types: unknown[];
  results: unknown[][];
  hogql: string;
  hasMore?: boolean;
  limit?: number;
  offset?: number;
  explain?: string[];
  timings: { k: string; t: number }[];
}

const post = (body: unknown, tenant = anna) =>
  api.request(tenant, 'POST', `/api/projects/${anna.projectId}/query/`, body);
async function ask(query: object, more: object = {}): Promise<Answer> {
  const answer = await post({ query, ...more });
  expect({ status: answer.statusCode, ...(answer.statusCode !== 200 && answer.json()) }).toEqual({
    status: 200,
  });
  return answer.json();
}
const select = (query: string, more: object = {}) => ask({ kind: 'HogQLQuery', query, ...more });
const events = (query: object) => ask({ kind: 'EventsQuery', after: 'all', ...query });

describe('a SELECT', () => {
  test('gives columns, types, rows and the query as it was run', async () => {
    const source = `select event, count() as n, uniq(person_id), sum(properties.price), max(timestamp), min(timestamp) + toIntervalSecond(1.5)
      from events group by event order by n desc, event`;
    const { columns, types, results, hogql, timings, ...page } = await select(source);
    expect(columns.slice(0, 4)).toEqual(['event', 'n', 'uniq(person_id)', 'sum(properties.price)']);
    expect(types.slice(0, 5)).toEqual([
      ['event', 'String'],
      ['n', 'Int64'],
      ['uniq(person_id)', 'Int64'],
      ['sum(properties.price)', 'Float64'],
      ['max(timestamp)', "DateTime64(6, 'UTC')"],
    ]);
    expect(results.map((row) => row.slice(0, 5))).toEqual([
      ['buy', 2, 1, 12.5, '2026-03-10T12:01:00Z'],
      ['look', 2, 2, 0, '2026-03-10T12:03:00Z'],
    ]);
    expect(page).toEqual({ hasMore: false, limit: 100, offset: 0 });
    expect(hogql).toMatch(
      /^SELECT event, count\(\) AS n, .* FROM events GROUP BY event ORDER BY n DESC, event ASC LIMIT 100$/,
    );
    expect(timings.map(({ k, t }) => [k, t >= 0])).toEqual([
      ['compile', true],
      ['wait', true],
      ['run', true],
    ]);
  });

  test('writes every kind of value as JSON', async () => {
    const { results, types } = await select(
      `select 1, 2.5, 1.0 / 3 > 0, null, 'a"b', toDate('2026-03-10'), toDateTime64('2026-03-10 12:00:00.25', 6), uuid,
         [1, 2], ['a', null], (1, 'x'), properties, properties.tags, 7, inf, toIntervalDay(1)
       from events where event = 'look' order by timestamp limit 1`,
    );
    const [row] = results as [unknown[]];
    expect(row.slice(0, 13)).toEqual([
      ...[1, 2.5, true, null, 'a"b', '2026-03-10', '2026-03-10T12:00:00.250000Z', uuid(3)],
      ...[[1, 2], ['a', null], [1, 'x'], '{"price":"x","tags":["a","b"]}', '["a","b"]'],
    ]);
    expect(row[14]).toBeNull();
    expect(types[11]).toEqual(['properties', 'String']);
    // The text of the answer has all digits.
    const text = await post({
      query: { kind: 'HogQLQuery', query: "select toInt('9007199254740993') from events limit 1" },
    });
    expect(text.body).toContain('[9007199254740993]');
  });

  test('shows a time with a zone of its own by the clock of that zone', async () => {
    const { results, types } = await select(
      `select toTimeZone(toDateTime64('2026-07-01 12:00:00.25', 6), 'Asia/Kolkata') as there,
         toTimeZone(toDateTime('2026-07-01 12:00:00'), 'America/St_Johns'), toTimeZone(toDateTime('2026-07-01 12:00:00'), 'UTC')
       from events limit 1`,
    );
    expect(types[0]).toEqual(['there', "DateTime64(6, 'Asia/Kolkata')"]);
    expect(results).toEqual([
      ['2026-07-01T17:30:00.250000+05:30', '2026-07-01T09:30:00-02:30', '2026-07-01T12:00:00Z'],
    ]);
  });

  test('writes times in arrays and tuples as it writes other times', async () => {
    const there = "toTimeZone(toDateTime64('2026-07-01 12:00:00.25', 6), 'Asia/Kolkata')";
    const { results } = await select(
      `select [toDateTime('2026-07-01 12:00:00'), null], [${there}], (${there}, [toDateTime('2026-07-01')], 'x'),
         arrayZip([${there}], ['a']), arrayFilter(x -> x > '2027-01-01', [${there}]), nullIf([${there}], [${there}])
       from events limit 1`,
    );
    const shown = '2026-07-01T17:30:00.250000+05:30';
    expect(results).toEqual([
      [
        ['2026-07-01T12:00:00Z', null],
        ...[[shown], [shown, ['2026-07-01T00:00:00Z'], 'x'], [[shown, 'a']], [], null],
      ],
    ]);
  });

  test('writes numbers that JSON does not have as null, wherever they are', async () => {
    const { results } = await select(
      `select inf, nan, [1.5, inf, -inf, nan], (1, 2.5, nan, [nan, 3]), arrayZip([nan, 0.5], ['a', 'NaN']),
         nullIf([1.5], [1.5]), ['NaN'], map('a', 1), (nan, toDateTime('2026-07-01 12:00:00')), arrayMap(x -> x / 2, [1, 2])
       from events limit 1`,
    );
    expect(results).toEqual([
      [
        ...[
          null,
          null,
          [1.5, null, null, null],
          [1, 2.5, null, [null, 3]],
          [
            [null, 'a'],
            [0.5, 'NaN'],
          ],
        ],
        ...[null, ['NaN'], '{"a": 1}', [null, '2026-07-01T12:00:00Z'], [0.5, 1]],
      ],
    ]);
  });

  test('without a LIMIT ends after 100 rows, and says that there are more', async () => {
    const numbers = 'select arrayJoin(range(1, 51)) as n, uuid from events';
    const all = await select(`${numbers} order by n, uuid`);
    expect([all.results.length, all.hasMore]).toEqual([100, true]);
    const some = await select(`${numbers} order by n, uuid limit 150`);
    expect([some.results.length, some.hasMore, some.limit]).toEqual([150, undefined, undefined]);
    const whole = await select('select uuid from events limit 4');
    expect([whole.results.length, whole.hasMore]).toEqual([4, undefined]);
    const most = await select('select arrayJoin(range(30000)) from events limit 1000000');
    expect(most.results.length).toBe(50_000);
  });

  test('takes values and filters for its placeholders', async () => {
    const query =
      'select event, {x} from events as e where {filters} and event in {names} order by timestamp';
    const filters = {
      dateRange: { date_from: '2026-03-10T12:00:00Z', date_to: '2026-03-10T12:02:00Z' },
      properties: [{ key: 'price', value: 5, operator: 'lt' }],
    };
    const values = { x: "it's", names: ['buy', 'look'] };
    const { results, hogql } = await select(query, { values, filters });
    expect(results).toEqual([['buy', "it's"]]);
    expect(hogql).toContain('e.timestamp');
    expect((await select(query, { values })).results).toHaveLength(4);
    expect(
      (await select('select count() from events where {filters.a}', { values: { filters: { a: true } } }))
        .results,
    ).toEqual([[4]]);
  });

  test('joins, with a CTE, a subquery, a window and LIMIT BY', async () => {
    const { results } = await select(
      `with buyers as (select distinct person_id from events where event = 'buy')
       select p.properties.email, e.event, row_number() over (partition by e.event order by e.timestamp) as n
       from events e join persons p on p.id = e.person_id
       where e.person_id in (select person_id from buyers) order by e.timestamp limit 1 by e.event limit 10`,
    );
    expect(results).toEqual([['ada@example.com', 'buy', 1]]);
  });

  test('counts merged persons once; the person of the event has a name of its own', async () => {
    const { results } = await select(
      `select distinct_id, person_id, poe.id, person.properties.plan, poe.properties.plan from events
       where event = 'buy' order by timestamp`,
    );
    expect(results).toEqual([
      ['ada', ADA, ADA, 'paid', 'free'],
      ['ada-phone', ADA, ADA_BEFORE, 'paid', null],
    ]);
  });

  test('says how Postgres runs it, without what that tells about the rows of others', async () => {
    const { explain, results } = await ask(
      { kind: 'HogQLQuery', query: 'select count() from events' },
      { explain: true },
    );
    expect(results).toEqual([[4]]);
    expect(explain?.join('\n')).toMatch(/Aggregate[\s\S]*events/);
    expect(explain?.join('\n')).not.toMatch(/cost=|rows=\d/);
  });
});

describe('a query that is wrong', () => {
  test.each([
    [
      'select evnt from events',
      /^Unable to resolve field: 'evnt' \(perhaps you meant 'event'\) \(line 1, column 8\)$/,
    ],
    ['select 1 from', /Unexpected end/],
    ['select event from events where {x}', /There is no value for the placeholder \{x\}/],
    ['{filters}', /placeholder/],
    ['select 1 from pg_class', /Unknown table 'pg_class'/],
    ['select toInt(1) / pg_sleep(10) from events', /pg_sleep/],
    ['select count(), event from events', /must be in GROUP BY/],
    ['(select event from events) order by event', /ORDER BY after a query in parentheses/],
    ['select * from events limit -1', /LIMIT takes a whole number|Unexpected/],
  ])('%s names what is wrong', async (query, message) => {
    const answer = await post({ query: { kind: 'HogQLQuery', query } });
    expect(answer.statusCode).toBe(400);
    const { type, attr, detail } = answer.json();
    expect([type, attr]).toEqual(['validation_error', 'query']);
    expect(detail).toMatch(message);
  });

  test('shows the place in the line', async () => {
    const answer = await post({ query: { kind: 'HogQLQuery', query: 'select\n  evnt\nfrom events' } });
    expect(answer.json().reason).toBe('  evnt\n  ^');
  });

  test.each([
    [{ kind: 'Unknown' }, 'query__kind'],
    [{ kind: 'HogQLQuery' }, 'query__query'],
    [{ kind: 'EventsQuery', select: [] }, 'query__select'],
    [{ kind: 'EventsQuery', select: ['event', 'evnt('] }, 'query__select__1'],
    [{ kind: 'EventsQuery', select: ['event', 'evnt'] }, 'query__select__1'],
    [{ kind: 'EventsQuery', select: ['*'], where: ["event = 'a'", 'evnt = 1'] }, 'query__where__1'],
    [{ kind: 'EventsQuery', select: ['*'], orderBy: ['-evnt'] }, 'query__orderBy__0'],
    [{ kind: 'ActorsQuery', select: ['person', 'event'] }, 'query__select__1'],
    [{ kind: 'EventsQuery', select: ['event'], where: ['1 +'] }, 'query__where__0'],
    [{ kind: 'EventsQuery', select: ['event'], orderBy: ['-('] }, 'query__orderBy__0'],
    [{ kind: 'EventsQuery', select: ['event'], after: 'soon' }, 'query__after'],
    [{ kind: 'EventsQuery', select: ['event'], actionId: 77 }, 'query__actionId'],
    [
      { kind: 'EventsQuery', select: ['event'], properties: [{ key: 'a', type: 'nothing', value: 1 }] },
      'query__properties__0__type',
    ],
    [{ kind: 'ActorsQuery', source: { kind: 'EventsQuery' } }, 'query__source'],
    [{ kind: 'ActorsQuery', properties: [{ key: 'a', type: 'event', value: 1 }] }, 'query__properties__0'],
  ])('%j names the field', async (query, attr) => {
    const answer = await post({ query });
    expect([answer.statusCode, answer.json().attr]).toEqual([400, attr]);
  });

  test('says so where Postgres cannot compute it, in no words of Postgres', async () => {
    const tooLarge = await post({
      query: { kind: 'HogQLQuery', query: "select toInt('9223372036854775807') + 1 from events" },
    });
    expect([tooLarge.statusCode, tooLarge.json().detail]).toEqual([400, 'A number is too large.']);
    const heavy = await post({
      query: {
        kind: 'HogQLQuery',
        query: "select repeat('x', 3000000), arrayJoin(range(10)) from events limit 40",
      },
    });
    expect(heavy.statusCode).toBe(400);
    expect(heavy.json().detail).toMatch(/larger than 16 MiB/);
  });

  test('belongs to its project, and needs the scope', async () => {
    expect((await post({ query: { kind: 'HogQLQuery', query: 'select 1' } }, otto)).statusCode).toBe(404);
    const { value } = await api.createKey(anna, { scopes: ['person:read'] });
    const url = `/api/projects/${anna.projectId}/query/`;
    const answer = await api.request(value, 'POST', url, {
      query: { kind: 'HogQLQuery', query: 'select 1' },
    });
    expect([answer.statusCode, answer.json().detail]).toEqual([403, expect.stringContaining('query:read')]);
    expect((await select('select distinct event from events order by event')).results).toEqual([
      ['buy'],
      ['look'],
    ]);
  });
});

test.each([
  [
    { query: { kind: 'TrendsQuery' } },
    'query__kind',
    'The kind of a query is HogQLQuery, EventsQuery or ActorsQuery.',
  ],
  [
    { query: { kind: 'HogQLQuery', query: 'select 1' }, async: true, client_query_id: 'a b' },
    'client_query_id',
    'An id has 1 to 200 letters, digits, and characters of "_.:@-", if the query is answered in the background.',
  ],
])('%j is told what there is', async (body, attr, detail) => {
  const answer = await post(body);
  expect([answer.statusCode, answer.json().attr, answer.json().detail]).toEqual([400, attr, detail]);
});

describe('a list of events', () => {
  test('is put in the order of the names of persons', async () => {
    const named = async (orderBy: string[], more: object = {}) =>
      (await events({ select: ['person_display_name'], orderBy, ...more })).results.map(
        ([name]) => (name as { display_name: string }).display_name,
      );
    const names = ['Bob', 'ada@example.com', 'ada@example.com', 'nobody'];
    expect(await named(['person_display_name'])).toEqual(names);
    expect(await named(['-person_display_name'])).toEqual(names.toReversed());
    expect(await named(['person_display_name desc'], { limit: 1 })).toEqual(['nobody']);
    expect(await named(['person_display_name -- Person  DESC'])).toEqual(names.toReversed());
    const counted = await events({
      select: ['count()', 'person_display_name'],
      orderBy: ['person_display_name'],
    });
    expect(counted.results.map((row) => (row[1] as { display_name: string }).display_name)).toEqual(names);
    // The columns that are put together of several have no order.
    const refused = await post({ query: { kind: 'EventsQuery', select: ['event'], orderBy: ['person'] } });
    expect([refused.statusCode, refused.json().attr]).toEqual([400, 'query__orderBy__0']);
  });

  test('has the whole event, its person and its name', async () => {
    const { columns, types, results, hogql } = await events({
      select: ['*', 'person', 'person_display_name', 'properties.price -- Price'],
    });
    expect(columns).toEqual(['*', 'person', 'person_display_name', 'properties.price -- Price']);
    expect(types).toEqual(['Tuple', 'Tuple', 'Tuple', 'String']);
    expect(hogql).toMatch(
      /^SELECT uuid, event, .* FROM events WHERE .* ORDER BY timestamp DESC, uuid DESC LIMIT 100$/,
    );
    expect(results.map((row) => (row[0] as { uuid: string }).uuid)).toEqual([4, 3, 2, 1].map(uuid));
    const [whole, person, name, price] = results[3] as unknown[];
    expect(whole).toEqual({
      ...{ uuid: uuid(1), event: 'buy', distinct_id: 'ada', team_id: anna.projectId },
      ...{ timestamp: '2026-03-10T12:00:00Z', created_at: expect.any(String), elements_chain: CHAIN },
      properties: { price: 10, plan: 'paid', note: 'ü' },
      elements: [expect.objectContaining({ tag_name: 'button', text: 'Buy' })],
    });
    expect(person).toEqual({
      ...{ uuid: ADA, distinct_id: 'ada', created_at: '2026-01-02T03:04:05Z' },
      properties: { email: 'ada@example.com', plan: 'paid' },
    });
    expect(name).toEqual({ display_name: 'ada@example.com', id: ADA, distinct_id: 'ada' });
    expect(price).toBe('10');
    expect(results[0]?.slice(1)).toEqual([
      { distinct_id: 'nobody' },
      { display_name: 'nobody', id: expect.any(String), distinct_id: 'nobody' },
      null,
    ]);
    expect((results[0] as [object])[0]).not.toHaveProperty('elements');
  });

  test.each<[object, number[]]>([
    [{ event: 'buy' }, [2, 1]],
    [{ events: ['buy', 'look'] }, [4, 3, 2, 1]],
    [{ personId: ADA }, [2, 1]],
    [{ where: ["event = 'look'", "distinct_id != 'bob'"] }, [4]],
    [{ properties: [{ key: 'email', value: 'ada@example.com', type: 'person' }] }, [2, 1]],
    [{ fixedProperties: [{ key: 'plan', operator: 'is_set', value: 'is_set' }] }, [1]],
    [{ after: '2026-03-10T12:00:00Z' }, [4, 3, 2]],
    [{ before: '2026-03-10T12:02:00Z' }, [2, 1]],
    [{ orderBy: ['timestamp ASC'], limit: 2, offset: 1 }, [2, 3]],
    [{ orderBy: ['event', '-timestamp'] }, [2, 1, 4, 3]],
    [{ orderBy: ['timestamp ASC -- Time', 'uuid'], limit: 2 }, [1, 2]],
    [{ orderBy: ['timestamp -- Time ASC'], limit: 2 }, [1, 2]],
  ])('%j chooses', async (query, expected) => {
    const { results } = await events({ select: ['uuid', 'timestamp'], ...query });
    expect(results.map((row) => row[0])).toEqual(expected.map(uuid));
  });

  test('newest first comes from an index, without sorting', async () => {
    const { explain } = await ask(
      { kind: 'EventsQuery', select: ['*'], after: 'all', limit: 1 },
      { explain: true },
    );
    expect(explain?.join('\n')).toMatch(/Merge Append|Index Scan Backward/);
    expect(explain?.join('\n')).not.toMatch(/->\s+Sort$/m);
  });

  test('is of the last day unless it says otherwise, and knows whether there are more', async () => {
    expect((await ask({ kind: 'EventsQuery', select: ['*'] })).results).toEqual([]);
    const page = await events({ select: ['uuid'], limit: 3 });
    expect([page.results.length, page.hasMore, page.limit, page.offset]).toEqual([3, true, 3, 0]);
    const rest = await events({ select: ['uuid'], limit: 3, offset: 3 });
    expect([rest.results.length, rest.hasMore, rest.offset]).toEqual([1, false, 3]);
  });

  test('with aggregates has a row for each group, most first', async () => {
    const { results } = await events({
      select: ['event', 'count()', 'max(properties.price)'],
      where: ['count() > 1'],
    });
    expect(results.map((row) => row.slice(0, 2)).sort()).toEqual([
      ['buy', 2],
      ['look', 2],
    ]);
    const counted = await events({ select: ['distinct_id', 'count()'], where: ['count() > 5'] });
    expect(counted.results).toEqual([]);
    const named = await events({
      select: ["concat(event, '!') as event", 'count()'],
      orderBy: ["concat(event, '!')"],
    });
    expect(named.results).toEqual([
      ['buy!', 2],
      ['look!', 2],
    ]);
    const byPerson = await events({ select: ['person_id', 'count()'] });
    expect(byPerson.results[0]).toEqual([ADA, 2]);
  });

  test('leaves out the people of the project itself, and takes an action', async () => {
    const path = `/api/projects/${anna.projectId}/`;
    await api.request(anna, 'PATCH', path, {
      test_account_filters: [
        { key: 'email', operator: 'not_icontains', value: '@example.com', type: 'person' },
      ],
    });
    const { results } = await events({ select: ['uuid', 'timestamp'], filterTestAccounts: true });
    expect(results.map((row) => row[0])).toEqual([4, 3].map(uuid));
    await api.request(anna, 'PATCH', path, { test_account_filters: [] });
    const action = await api.request(anna, 'POST', `${path}actions/`, {
      name: 'Look',
      steps: [{ event: 'look' }],
    });
    const found = await events({ select: ['uuid', 'timestamp'], actionId: action.json().id });
    expect(found.results.map((row) => row[0])).toEqual([4, 3].map(uuid));
  });
});

describe('a list of persons', () => {
  test('in groups has the largest first', async () => {
    const { results } = await ask({ kind: 'ActorsQuery', select: ['is_identified', 'count()'] });
    const counts = results.map((row) => Number(row[1]));
    expect(counts.length).toBeGreaterThan(0);
    expect(counts).toEqual(counts.toSorted((one: number, other: number) => other - one));
  });

  test('has the persons, newest first', async () => {
    const { columns, results, hasMore } = await ask({ kind: 'ActorsQuery' });
    expect(columns).toEqual(['person', 'id', 'created_at', 'person.$delete']);
    expect(hasMore).toBe(false);
    expect(results).toEqual([
      [
        {
          ...{ id: ADA, created_at: '2026-01-02T03:04:05Z', is_identified: expect.any(Boolean) },
          distinct_ids: ['ada', 'ada-phone'],
          properties: { email: 'ada@example.com', plan: 'paid' },
        },
        ...[ADA, '2026-01-02T03:04:05Z', ADA],
      ],
      [expect.objectContaining({ id: BOB, distinct_ids: ['bob'] }), BOB, '2026-01-01T00:00:00Z', BOB],
    ]);
  });

  test.each<[object, string[]]>([
    [{ search: 'ADA@' }, [ADA]],
    [{ search: 'phone' }, [ADA]],
    [{ search: 'bo%' }, []],
    [{ search: '0000bb' }, [BOB]],
    [{ properties: [{ key: 'plan', value: 'paid', type: 'person' }] }, [ADA]],
    [{ orderBy: ['created_at ASC'] }, [BOB, ADA]],
    [{ orderBy: ['person_display_name'] }, [BOB, ADA]],
    [{ orderBy: ['person_display_name DESC'] }, [ADA, BOB]],
    [{ select: ['id'], orderBy: ['-person_display_name'] }, [ADA, BOB]],
    [{ limit: 1, offset: 1 }, [BOB]],
  ])('%j chooses', async (query, expected) => {
    const { results } = await ask({ kind: 'ActorsQuery', select: ['id', 'person_display_name'], ...query });
    expect(results.map((row) => row[0])).toEqual(expected);
  });
});
