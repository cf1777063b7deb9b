import { beforeAll, describe, expect, test } from '@jest/globals';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { queriesOf } from '../support/query-log.ts';
import { insertPerson } from '../support/rows.ts';

const api = apiForFile();
const { Anna: anna, Otto: otto } = tenantsForFile(api, 'Anna', 'Otto');
const NOON = Date.UTC(2026, 2, 10, 12);
const uuid = (n: number) => `018f0000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const ADA = '00000000-0000-4000-8000-0000000000aa';

const store = (tenant: Tenant, ...events: Partial<CapturedEvent>[]) =>
  api.ingest.submit({
    projectId: tenant.projectId,
    events: events.map((one, index) => capturedEvent({ index, ...one })),
  });

beforeAll(async () => {
  await insertPerson(api.pool, anna.projectId, {
    ...{ id: ADA, created_at: '2026-01-02T03:04:05Z', distinct_ids: ['ada', 'ada-phone'] },
    properties: { email: 'ada@example.com', plan: 'paid' },
  });
  const fields: Partial<CapturedEvent>[] = [
    { event: 'buy', distinct_id: 'ada', properties: { price: 10, note: '=1+1', tags: ['a', { b: 1 }] } },
    { event: 'buy', distinct_id: 'ada-phone', properties: { price: 2.5, note: 'say "hi", please\n' } },
    { event: 'look', distinct_id: 'bob', properties: { price: 'x', gone: null, on: true, empty: {} } },
  ];
  const events = fields.map((one, index) => ({
    ...{ uuid: uuid(index + 1), timestamp: NOON + index * 60_000 },
    ...one,
  }));
  await store(anna, ...events);
  await store(otto, { event: 'secret', distinct_id: 'otto', timestamp: NOON });
});

type Parameters = Record<string, string | object>;

function read(parameters: Parameters, { tenant = anna, rest = 'events/', headers = {} } = {}) {
  const texts = Object.entries(parameters).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const url = `/api/projects/${tenant.projectId}/${rest}?${new URLSearchParams(texts)}`;
  return api.request(tenant, 'GET', url, undefined, headers);
}
async function list(parameters: Parameters, tenant = anna) {
  const answer = await read(parameters, { tenant });
  expect({ status: answer.statusCode, ...(answer.statusCode !== 200 && answer.json()) }).toEqual({
    status: 200,
  });
  return answer.json();
}
const numbers = async (parameters: Parameters) => {
  const { results } = await list(parameters);
  return results.map(({ id }: { id: string }) => Number(id.slice(-2)));
};

describe('filters', () => {
  test.each<[string, Parameters, number[]]>([
    ['a condition', { properties: [{ key: 'price', value: 5, operator: 'gt' }] }, [1]],
    ['of a person', { properties: [{ key: 'plan', value: 'paid', type: 'person' }] }, [2, 1]],
    [
      'a group',
      {
        properties: {
          type: 'OR',
          values: [
            { key: 'price', value: 'x' },
            { key: 'price', value: 10 },
          ],
        },
      },
      [3, 1],
    ],
    ['an old dictionary', { properties: { note__icontains: 'HI' } }, [2]],
    ['with a number of many digits', { properties: '[{"key":"price","value":2.50000}]' }, [2]],
    ['nothing', { properties: [] }, [3, 2, 1]],
    ['an empty text', { properties: '' }, [3, 2, 1]],
    ['a condition in HogQL', { where: ['properties.price > 5'] }, [1]],
    ['one that is no JSON', { where: "event = 'look'" }, [3]],
    ['several', { where: ["event = 'buy'", "person.properties.plan = 'paid'", "distinct_id != 'ada'"] }, [2]],
    ['with others', { where: ["event = 'buy'"], distinct_id: 'ada' }, [1]],
    ['with a name', { where: ['true'], event: 'look' }, [3]],
    ['with a person', { where: ['true'], person_id: ADA }, [2, 1]],
    ['with times', { where: ['true'], after: '2026-03-10T12:00:00Z', before: '2026-03-10T12:02:00Z' }, [2]],
    ['oldest first', { where: ['true'], orderBy: ['timestamp'] }, [1, 2, 3]],
    ['with an offset', { where: ['true'], offset: '1', limit: '1' }, [2]],
    ['an unknown action', { action_id: '999' }, []],
  ])('%s', async (_name, parameters, expected) => {
    expect(await numbers(parameters)).toEqual(expected);
  });

  test('an action', async () => {
    const steps = [{ event: 'buy', properties: [{ key: 'price', value: 10 }] }];
    const made = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/actions/`, {
      name: 'Dear',
      steps,
    });
    expect(made.statusCode).toBe(201);
    expect(await numbers({ action_id: String(made.json().id) })).toEqual([1]);
  });

  test('conditions can be repeated', async () => {
    const answer = await api.request(
      anna,
      'GET',
      `/api/projects/${anna.projectId}/events/?where=event%3D'buy'&where=properties.price%3E5`,
    );
    expect(answer.json().results.map(({ id }: { id: string }) => id)).toEqual([uuid(1)]);
  });

  test.each<[string, Parameters, string | null, RegExp]>([
    ['what is no JSON', { properties: '[{' }, 'properties', /^Properties are unparsable!$/],
    ['a text', { properties: '"a"' }, 'properties', /^Properties are unparsable!$/],
    ['a type that is none', { properties: [{ key: 'a', value: 1, type: 'x' }] }, 'properties__0__type', /x/],
    [
      'a field that is none',
      { where: ['true', 'evnt = 1'] },
      'where__1',
      /'evnt' \(perhaps you meant 'event'\)/,
    ],
    ['what is no HogQL', { where: ['1 +'] }, 'where__0', /line 1, column 4/],
    ['what Postgres cannot compute', { where: ["toInt(event) / 0 > 1 and match(event, '(')"] }, null, /./],
    ['an aggregate', { where: ['count() > 1'] }, 'where__0', /needs `select`/],
    ['a table', { select: ['(select 1 from pg_class)'] }, 'select__0', /pg_class/],
    ['an order in HogQL', { orderBy: ['event'] }, 'orderBy', /^"event" is not a valid choice/],
    ['a time of storing', { stored_before: '2026-01-01' }, 'stored_before', /select/],
    ['too large an offset', { offset: '50001' }, 'offset', /Max supported offset value is 50000/],
  ])('refuses %s', async (_name, parameters, attr, detail) => {
    const answer = await read(parameters);
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({ type: 'validation_error', detail: expect.stringMatching(detail) });
    if (attr) expect(answer.json().attr).toBe(attr);
  });

  test('show nothing of another project', async () => {
    expect((await list({ where: ['true'] }, otto)).results).toHaveLength(1);
    const { results } = await list({ select: ['event'], where: ["event = 'secret' or true"] });
    expect(results).toHaveLength(3);
    const answer = await read({ where: ['team_id > 0'] });
    expect(answer.json().results ?? []).not.toContainEqual(expect.objectContaining({ event: 'secret' }));
  });

  test('are tested along the index by time, without sorting', async () => {
    const parameters = { where: ["properties.plan = 'x'"], properties: [{ key: 'price', value: 1 }] };
    const { queries, values } = await queriesOf(() => list(parameters));
    const at = queries.findIndex((one) => one.includes('as found'));
    const { rows } = await api.pool.query(`explain (costs off) ${queries[at]}`, values[at]);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toMatch(/Index Scan Backward using events_/);
    expect(plan).not.toMatch(/->\s+Sort$/m);
  });

  test('pages have each event once, in both orders, while more come in', async () => {
    for (const orderBy of [['-timestamp'], ['timestamp']]) {
      const tenant = await api.createTenant('Paging');
      const events = Array.from({ length: 450 }, (_, index) => ({
        ...{ uuid: uuidv7(), event: index % 3 ? 'a' : 'b', distinct_id: 'p' },
        timestamp: NOON + Math.floor(index / 200),
      }));
      await store(tenant, ...events);
      const seen: string[] = [];
      let page = await list({ where: ["event = 'a'"], limit: '130', orderBy }, tenant);
      for (;;) {
        seen.push(...page.results.map((one: { id: string }) => one.id));
        if (page.next === null) break;
        await store(tenant, ...Array.from({ length: 5 }, () => ({ event: 'b', timestamp: NOON + 1 })));
        page = await list(Object.fromEntries(new URL(page.next).searchParams), tenant);
      }
      expect(seen).toHaveLength(300);
      expect(new Set(seen)).toEqual(
        new Set(events.filter((one) => one.event === 'a').map((one) => one.uuid)),
      );
    }
  });
});

test('ids of no known version are ids: in links to the next page too', async () => {
  const tenant = await api.createTenant('Made by hand');
  const ids = ['11111111-1111-1111-1111-111111111111', 'f457c545-a9de-d88f-18ec-ee47145a72c0', uuid(9)];
  await store(
    tenant,
    ...ids.map((id, at) => ({ uuid: id, event: 'e', distinct_id: 'p', timestamp: NOON + at })),
  );
  for (const orderBy of [['-timestamp'], ['timestamp']]) {
    const seen: string[] = [];
    for (let page = await list({ limit: '1', orderBy }, tenant); ; ) {
      seen.push(...page.results.map((one: { id: string }) => one.id));
      if (page.next === null) break;
      page = await list(Object.fromEntries(new URL(page.next).searchParams), tenant);
    }
    expect(seen.toSorted()).toEqual(ids.toSorted());
  }
  for (const id of ids) {
    for (const rest of [`events/${id}/`, `events/${id}/trace/`]) {
      expect((await read({}, { tenant, rest })).statusCode).toBe(200);
    }
  }
});

describe('select', () => {
  test('gives columns, types and rows', async () => {
    expect(await list({ select: ['event', 'properties.price', 'timestamp'] })).toEqual({
      columns: ['event', 'properties.price', 'timestamp'],
      types: ['String', 'String', expect.stringContaining('DateTime')],
      ...{ next: null, hasMore: false },
      results: [
        ['look', 'x', '2026-03-10T12:02:00Z'],
        ['buy', '2.5', '2026-03-10T12:01:00Z'],
        ['buy', '10', '2026-03-10T12:00:00Z'],
      ],
    });
  });

  test('has the event and its person; of nothing, the event', async () => {
    const { columns, results } = await list({ select: [], limit: '1' });
    expect(columns).toEqual(['*']);
    expect(results).toEqual([[expect.objectContaining({ event: 'look', distinct_id: 'bob' })]]);
    const { results: persons } = await list({ select: ['person'], event: 'buy', limit: '1' });
    expect(persons[0][0]).toMatchObject({ uuid: ADA, distinct_id: 'ada-phone' });
  });

  test('groups, most first, with conditions on groups', async () => {
    const { columns, results } = await list({ select: ['event', 'count()'], where: ['count() > 1'] });
    expect([columns, results]).toEqual([['event', 'count()'], [['buy', 2]]]);
  });

  test.each<[string, Parameters]>([
    ['by time', { select: ['properties.n', 'timestamp'] }],
    ['by time, oldest first', { select: ['event', 'properties.n'], orderBy: ['timestamp'] }],
    ['by the first column', { select: ['event', 'properties.n'] }],
    ['by a value', { select: ['event', 'properties.n'], orderBy: ['event', '-properties.n'] }],
    ['of groups', { select: ['properties.n', 'count()'] }],
    ['of groups in an order of theirs', { select: ['properties.n', 'count()'], orderBy: ['count()'] }],
  ])('pages %s have each row once, while more come in', async (_name, parameters) => {
    const tenant = await api.createTenant('Columns');
    const soon = Date.now() - 60_000;
    const events = Array.from({ length: 250 }, (_, n) => ({
      ...{ uuid: uuidv7(), event: `e${n % 7}`, distinct_id: 'p', properties: { n: `n${n}` } },
      timestamp: soon + Math.floor(n / 40),
    }));
    await store(tenant, ...events);
    const seen: string[] = [];
    let page = await list({ ...parameters, limit: '60' }, tenant);
    for (let pages = 1; ; pages += 1) {
      const at = page.columns.indexOf('properties.n');
      seen.push(...page.results.map((row: string[]) => row[at]));
      if (page.next === null) {
        expect(pages).toBe(5);
        break;
      }
      // They would move what comes behind them, and the numbers of groups.
      await store(
        tenant,
        ...Array.from({ length: 30 }, (_, n) => ({
          ...{ event: 'e0', distinct_id: 'p', properties: { n: `n${n * 7}` }, timestamp: soon + (n % 6) },
        })),
      );
      page = await list(Object.fromEntries(new URL(page.next).searchParams), tenant);
    }
    expect(seen).toHaveLength(250);
    expect(new Set(seen).size).toBe(250);
  });
});

describe('CSV', () => {
  const csv = async (parameters: Parameters, options = {}) => {
    const answer = await read(parameters, options);
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/csv; charset=utf-8']);
    return { text: answer.body, link: answer.headers.link };
  };
  const LINES = [
    'distinct_id,elements_chain,event,id,properties.note,properties.on,properties.price,properties.tags.0,properties.tags.1.b,timestamp',
    `bob,,look,${uuid(3)},,true,x,,,2026-03-10T12:02:00+00:00`,
    `ada-phone,,buy,${uuid(2)},"say ""hi"", please\n",,2.5,,,2026-03-10T12:01:00+00:00`,
    `ada,,buy,${uuid(1)},=1+1,,10,a,1,2026-03-10T12:00:00+00:00`,
    '',
  ];

  test('has a column for each value that an event has', async () => {
    expect((await csv({ format: 'csv' })).text.split('\r\n')).toEqual(LINES);
    expect((await csv({}, { headers: { accept: 'text/csv' } })).text.split('\r\n')).toEqual(LINES);
    expect((await csv({}, { rest: 'events.csv' })).text.split('\r\n')).toEqual(LINES);
    expect((await csv({ format: 'csv', where: ['true'] })).text.split('\r\n')).toEqual(LINES);
  });

  test('of one event', async () => {
    const { text } = await csv({ format: 'csv' }, { rest: `events/${uuid(3)}/` });
    const [names, cells] = text.split('\r\n');
    expect(names).toBe('distinct_id,elements_chain,event,id,properties.on,properties.price,timestamp');
    expect(cells).toBe(`bob,,look,${uuid(3)},true,x,2026-03-10T12:02:00+00:00`);
  });

  test('hides formulas from spreadsheets, if it is asked to', async () => {
    expect((await csv({ format: 'csv', escape_formulas: 'true' })).text).toContain(",'=1+1,");
  });

  test('of nothing is empty', async () => {
    expect(await csv({ format: 'csv', event: 'none' })).toEqual({ text: '', link: undefined });
    expect((await csv({ format: 'csv', action_id: '999' })).text).toBe('');
  });

  test('says in a header where it goes on', async () => {
    const { text, link } = await csv({ format: 'csv', limit: '2' });
    expect(text.split('\r\n')).toHaveLength(4);
    const url = new URL(/^<(.*)>; rel="next"$/.exec(link as string)?.[1] as string);
    const rest = await csv(Object.fromEntries(url.searchParams));
    expect(rest.text).toContain(uuid(1));
    expect(rest.link).toBeUndefined();
  });

  test('of columns', async () => {
    const parameters = {
      format: 'csv',
      select: ['event', 'properties.note', 'properties', '[1, 2]'],
      event: 'look',
    };
    expect((await csv(parameters)).text.split('\r\n').slice(0, 1)).toEqual([
      'event,properties.note,properties,"[1, 2]"',
    ]);
    expect((await csv({ format: 'csv', select: ['count()', 'event'] })).text).toBe(
      'count(),event\r\n2,buy\r\n1,look\r\n',
    );
  });

  test('ends where its columns have no room, and goes on behind it', async () => {
    const tenant = await api.createTenant('Wide');
    const wide = (n: number) =>
      Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`key-${n}-${index}`, 1]));
    // Each event has keys of its own, so 300 of them make 600,000 columns of 300 lines.
    await store(
      tenant,
      ...Array.from({ length: 300 }, (_, n) => ({
        properties: wide(n),
        timestamp: NOON + n,
        distinct_id: 'w',
      })),
    );
    const lines: number[] = [];
    let parameters: Parameters = { format: 'csv' };
    for (;;) {
      const { text, link } = await csv(parameters, { tenant });
      expect(text.length).toBeLessThan(33 * 1024 * 1024);
      lines.push(text.split('\r\n').length - 2);
      if (!link) break;
      parameters = Object.fromEntries(new URL(/^<(.*)>/.exec(link as string)?.[1] as string).searchParams);
    }
    expect(lines.length).toBeGreaterThan(1);
    expect(lines.reduce((sum, one) => sum + one, 0)).toBe(300);
  });
});
