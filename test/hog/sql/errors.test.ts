import { afterAll, describe, expect, test } from '@jest/globals';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { SourceError } from '../../../hog/errors.ts';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, type PrintOptions, printStatement, QUERY_LIMITS } from '../../../hog/sql/index.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { PROJECT } from './tables.ts';

const parser = createParser({ timeoutMs: PATIENCE });
afterAll(() => parser.close());
const OPTIONS: PrintOptions = { schema: createSchema('current'), projectId: PROJECT, timezone: 'UTC' };

async function print(source: string, options: Partial<PrintOptions> = {}) {
  return printStatement((await parser.select(source)) as SelectNode, { ...OPTIONS, ...options, source });
}

describe('errors name the place, and what was perhaps meant', () => {
  test.each([
    ['select evnt from events', "Unable to resolve field: 'evnt' (perhaps you meant 'event')", 8],
    ['select event from evnts', "Unknown table 'evnts' (perhaps you meant 'events')", 19],
    [
      'select person.propertis.x from events',
      "'person.propertis' (perhaps you meant 'person.properties')",
      8,
    ],
    [
      'select lowr(event) from events',
      "Unsupported function call 'lowr(...)' (perhaps you meant 'lower')",
      8,
    ],
    ['select zzzzzzzzzzzz() from events', "Unsupported function call 'zzzzzzzzzzzz(...)'", 8],
    ['select lower() from events', 'lower takes 1 arguments, not 0', 8],
    ['select person from events', "'person' is a table", 8],
    ['select event.x from events', "'event.x': a String has no fields", 8],
    ['select event, count() from events', "'event' must be in GROUP BY or inside of an aggregate", 8],
    ['select event + 1 from events where [1] = 1', 'cannot be compared', 36],
    ["select 'a' = [1] from events", 'cannot be compared', 8],
    ['select properties from events e join events f on e.uuid = f.uuid', 'in more than one table', 8],
    ['select event from events e join events e on 1 = 1', "Two tables are called 'e'", 33],
    ['select event from events e join persons p', 'A JOIN needs a condition', 33],
    ['select distinct event from events qualify 1 = 1', 'QUALIFY together with DISTINCT is not supported', 1],
    ['select event from events where exists(1)', 'exists takes a query: exists(select …)', 32],
    ['select event from events limit event', 'LIMIT takes a whole number', 32],
    ['select event from events order by 5', 'There is no column 5', 35],
    ['select match(event, properties.x) from events', 'must be a text literal', 8],
    ["select match(event, '(') from events", 'Invalid regular expression', 8],
    ["select match(event, '\\\\pL') from events", 'Unicode classes', 8],
    [
      "select toTimeZone(timestamp, 'Europe/Berln') from events",
      "Unknown time zone 'Europe/Berln' (perhaps you meant 'Europe/Berlin')",
      30,
    ],
    ["select toHour(timestamp, '+02:00') from events", "Unknown time zone '+02:00'", 26],
    ["select toTimeZone(timestamp, 'AST') from events", "Unknown time zone 'AST'", 30],
    ['select toDateTime(event, distinct_id) from events', 'The time zone must be a text literal', 26],
    ["select cast(event as DateTime('Mars')) from events", "Unknown time zone 'Mars'", 8],
    ["select toTimeZone('2024-01-01', 'UTC')", 'A String has no time zone', 8],
    ["select dateDiff('lightyear', timestamp, timestamp) from events", "Unknown unit 'lightyear'", 8],
    ['select cast(event as Planet) from events', 'Unknown type', 8],
    ['select sumState(1) from events', "The aggregate 'sumState' is not supported", 8],
    ['select [1, 2][0]', 'Array indexes start from 1', 15],
    ['select [[1]]', 'An array of arrays is not supported', 8],
    ['select row_number()', 'row_number needs a window', 8],
    ['select 1 union all select 1, 2', 'The queries select 1 and 2 columns', 20],
    ["select 1 union all select 'a'", 'Column 1 is Int64 in one query, String in another', 20],
    ['select (select 1, 2)', 'must select one column', 9],
    ['select {x}', 'A placeholder has no value here', 8],
    ['select event from events sample 0.1', 'SAMPLE is not supported', 19],
    ['select x from numbers(5) as x', 'A table function is not supported', 15],
    ['select event from events where person_id in cohort event', 'A cohort must be given by its number', 52],
    ['select event from events where count() > 1', 'count cannot be used in WHERE', 32],
    ['select sum(count()) from events', 'count cannot be used in an aggregate', 12],
    ['select event from events where row_number() over () = 1', 'A window cannot be used in WHERE', 32],
    ['with recursive t as (select 1) select * from t', 'RECURSIVE', null],
    [
      'select distinct event from events order by concat(event, distinct_id)',
      'ORDER BY of a DISTINCT query takes its columns, or expressions of them',
      44,
    ],
    ['select distinct event from events order by (select event from events)', 'takes its columns', 44],
    ["select arrayReduce('summ', [1]) from events", "the aggregate 'summ' (perhaps you meant 'sum')", 8],
    ["select arrayReduce('sum', 1) from events", 'An array is needed here', 8],
    ['select arrayReduce(event, [1]) from events', 'The aggregate must be a text literal', 8],
    ["select arrayReduce('sumState', [1]) from events", "The aggregate 'sumState' is not supported", 8],
    ['select sumArray([1]) from events', "The aggregate 'sumArray' is not supported", 8],
    ['select sum(1) within group (order by 1) from events', 'sum takes no WITHIN GROUP', 8],
    ['select percentile_cont(0.5) from events', 'WITHIN GROUP (ORDER BY', 8],
    ["select date_part('yaer', timestamp) from events", "Unknown part 'yaer' (perhaps you meant 'year')", 8],
    ['select tumble(timestamp, 5) from events', 'An interval is needed here', 8],
    ['select hopStart(timestamp, toIntervalDay(1)) from events', 'a window, or a time and two intervals', 8],
    ["select regexpExtract(event, 'a') from events", 'has no group', 8],
    ["select regexpExtract(event, '(a)', 2) from events", 'a whole number from 0 to 1', 8],
    ["select formatReadableTimeDelta(1, 'weeks') from events", 'must be one of years, months', 8],
  ])('%s', async (source, message, column) => {
    const error = await print(source).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(SourceError);
    expect((error as SourceError).reason).toContain(message);
    if (column !== null) expect((error as SourceError).column).toBe(column);
  });
});

describe('limits', () => {
  test('rows', async () => {
    const limitOf = async (source: string) => (await print(source)).values.at(-1);
    expect(await limitOf('select event from events')).toBe('100');
    expect(await limitOf('select event from events limit 7')).toBe('7');
    expect(await limitOf('select event from events limit 1000000')).toBe('50000');
    const free = await print('select event from events', { limits: { defaultRows: null, maxRows: null } });
    expect(free.text).not.toContain('limit');
  });

  test('parts: aliases that repeat each other do not grow without end', async () => {
    const steps = Array.from({ length: 30 }, (_, i) => `a${i} + a${i} as a${i + 1}`);
    await expect(print(`select 1 as a0, ${steps.join(', ')}`)).rejects.toMatchObject({ code: 'too_large' });
  });

  test('depth', async () => {
    const deep = Array.from({ length: 60 }, () => '1').join(' + ');
    await expect(print(`select ${deep}`, { limits: { maxDepth: 50 } })).rejects.toMatchObject({
      code: 'too_deep',
    });
  });

  const { maxEventReads, maxReads, maxJoinedEvents, maxJoined } = QUERY_LIMITS;
  const united = (count: number, query: string) =>
    Array.from({ length: count }, () => query).join(' union all ');

  test.each([
    [
      'tables',
      united(maxEventReads + 1, 'select 1 from events'),
      united(maxEventReads, 'select 1 from events'),
    ],
    [
      'a query in WITH wherever it is named',
      `with t as (select 1 from events) ${united(maxEventReads + 1, 'select * from t')}`,
      `with t as (select 1 from events) ${united(maxEventReads, 'select * from t')}`,
    ],
    [
      'a value of WITH wherever it is named',
      `with (select count() from events) as n select ${united(maxEventReads + 1, 'n').replaceAll('union all', '+')}`,
      `with (select count() from events) as n select ${united(maxEventReads, 'n').replaceAll('union all', '+')}`,
    ],
    [
      'a column of a subquery wherever it is named',
      `select ${united(maxEventReads, 'n').replaceAll('union all', '+')} from (select (select count() from events) as n)`,
      `select ${united(maxEventReads - 1, 'n').replaceAll('union all', '+')} from (select (select count() from events) as n)`,
    ],
  ])('events are read in a bounded number of places: %s', async (_what, refused, allowed) => {
    const error = (await print(refused).catch((one: unknown) => one)) as SourceError;
    expect(error).toMatchObject({ code: 'too_large', line: 1 });
    expect(error.reason).toContain(`in ${maxEventReads + 1} places, of at most ${maxEventReads}`);
    // The last place that is one too many, or what is read there.
    expect(refused.slice(error.column! - 1)).toMatch(/^(events|n\b)/);
    expect((await print(allowed)).text).toContain('from events');
  });

  test('events are read in a bounded number of places: an argument that a function prints twice', async () => {
    const nested = (depth: number): string =>
      depth === 0
        ? '(select count() from events)'
        : `nullIf(greatest(1.5, roundBankers(1, ${nested(depth - 1)})), 1)`;
    expect((await print(`select ${nested(1)}`)).text.split('from events').length).toBeGreaterThan(2);
    await expect(print(`select ${nested(8)}`)).rejects.toMatchObject({ code: 'too_large' });
  });

  test('sessions are read from events, and other tables have limits of their own', async () => {
    const sessions = maxEventReads / 4;
    await expect(print(united(sessions + 1, 'select 1 from sessions'))).rejects.toThrow(
      `reads events in ${maxEventReads + 4} places`,
    );
    expect((await print(united(sessions, 'select 1 from sessions'))).text).toContain('from sessions');
    await expect(print(united(maxReads + 1, 'select 1 from persons'))).rejects.toThrow(
      `reads tables in ${maxReads + 1} places, of at most ${maxReads}`,
    );
    expect((await print(united(maxReads, 'select 1 from persons'))).text).toContain('from persons');
  });

  const joinOf = (count: number, table: string) =>
    `select count() from ${table} e0 ${Array.from({ length: count - 1 }, (_, i) => `cross join ${table} e${i + 1}`).join(' ')}`;

  test.each([
    [
      'events',
      joinOf(maxJoinedEvents + 1, 'events'),
      'tables of events or sessions',
      joinOf(maxJoinedEvents, 'events'),
    ],
    [
      'subqueries that Postgres puts into the query around',
      joinOf(maxJoinedEvents / 2 + 1, '(select a.event from events a cross join events b)'),
      'tables of events or sessions',
      joinOf(maxJoinedEvents / 2, '(select a.event from events a cross join events b)'),
    ],
    [
      'subqueries that Postgres runs by themselves',
      joinOf(maxJoined + 1, '(select id from persons limit 1)'),
      `joins ${maxJoined + 1} tables`,
      joinOf(2 * maxJoinedEvents, '(select event, count() from events group by event)'),
    ],
    [
      'other tables',
      joinOf(maxJoined + 1, 'persons'),
      `joins ${maxJoined + 1} tables`,
      joinOf(maxJoined, 'persons'),
    ],
  ])('a join has a bounded number of tables: %s', async (_what, refused, reason, allowed) => {
    const error = (await print(refused).catch((one: unknown) => one)) as SourceError;
    expect(error).toMatchObject({ code: 'too_large', line: 1, column: 21 });
    expect(error.reason).toContain(reason);
    expect((await print(allowed)).text).toContain('cross join');
  });

  test('what fields join counts too', async () => {
    const joined = Array.from({ length: 6 }, (_, i) => `join events e${i + 1} on e${i + 1}.uuid = e0.uuid`);
    const fields = Array.from({ length: 6 }, (_, i) => `e${i}.session.$session_duration`);
    await expect(print(`select ${fields} from events e0 ${joined.join(' ')}`)).rejects.toThrow(
      'joins 13 tables',
    );
  });

  test('an alias that means itself means the column', async () => {
    expect(
      (await print('select lower(event) as event from events where event = 1 = 1')).columns,
    ).toHaveLength(1);
  });

  test('texts', async () => {
    await expect(print(`select '${'x'.repeat(200)}'`, { limits: { maxTextLength: 100 } })).rejects.toThrow(
      '100 characters',
    );
  });
});
