import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MODEL_NAMES, ModelError, type ModelOptions, readSelection } from '../../models/index.ts';
import { parserForFile, queryOf } from './support.ts';

const parser = parserForFile();

async function refusal(
  options: Partial<ModelOptions>,
): Promise<Pick<ModelError, 'field' | 'message' | 'detail'>> {
  const refused = await queryOf(parser, options).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(refused instanceof ModelError)) throw new Error(`not refused: ${String(refused)}`);
  return { field: refused.field, message: refused.message, detail: refused.detail };
}

const event = (given: object) => [{ type: 'event', key: 'a', operator: 'exact', value: 'b', ...given }];

describe('filters that are refused', () => {
  test.each<[unknown, string]>([
    ['x', "'filters' should be an array of filters"],
    [{}, "'filters' should be an array of filters"],
    [['x'], 'Each filter must be an object'],
    [[[]], 'Each filter must be an object'],
    [[null], 'Each filter must be an object'],
    [[{ key: 'a' }], "Each filter must have a 'type' of one of: 'cohort', 'event', 'hogql', 'person'"],
    [
      event({ type: 'group' }),
      "Each filter must have a 'type' of one of: 'cohort', 'event', 'hogql', 'person'",
    ],
    [event({ type: 'cohort', value: 'x', operator: 'in' }), 'One or more provided filters are invalid: '],
    [
      [{ data_interval_start: 'x' }],
      "'data_interval_start' and 'data_interval_end' are run attributes and not 'filters'. Trigger a backfill if you wish to manually control which periods to batch export.",
    ],
    [
      event({ operator: 'nope' }),
      'One or more provided filters are invalid: 0.operator: Unknown operator "nope"',
    ],
    [event({ key: '' }), 'One or more provided filters are invalid: 0.key: This field is required.'],
    [event({ value: null }), 'One or more provided filters are invalid: 0.value: This field is required.'],
    [event({ operator: 'regex', value: '(' }), 'One or more provided filters are invalid: '],
    [[{ type: 'hogql', key: 'event =' }], 'One or more provided filters are invalid: '],
    [
      [{ type: 'hogql', key: 'nope = 1' }],
      "One or more provided filters are invalid: Unable to resolve field: 'nope'",
    ],
    [
      [{ type: 'hogql', key: 'session.$entry_gclid = 1' }],
      'One or more provided filters are invalid: Unable to resolve field',
    ],
    [[{ type: 'hogql', key: 'count() > 1' }], 'One or more provided filters are invalid: '],
    [
      [{ type: 'hogql', key: 'event in (select event from events)' }],
      'One or more provided filters are invalid: a filter must not contain a subquery',
    ],
    [
      [{ type: 'hogql', key: 'timestamp > now()' }],
      'One or more provided filters are invalid: a filter must not contain now(): the same interval must give the same rows whenever it is exported',
    ],
  ])('%j', async (filters, message) => {
    const refused = await refusal({ filters });
    expect(refused.field).toBe('filters');
    expect(refused.message.slice(0, message.length)).toBe(message);
  });

  test('with other models', async () => {
    for (const model of ['persons', 'sessions'] as const) {
      expect(await refusal({ model, filters: event({}) })).toMatchObject({
        field: 'filters',
        message: `'filters' is only supported for 'events' not '${model}' model`,
      });
      await queryOf(parser, { model, filters: [] });
      await queryOf(parser, { model, filters: null });
    }
  });
});

describe('columns that are refused', () => {
  test.each([
    ['SELECT', 'Failed to parse query'],
    ['SELECT event,, FROM events', 'Failed to parse query'],
    ['SELECT unknown_field FROM events', "Invalid HogQL query: Unable to resolve field: 'unknown_field'"],
    ['SELECT event FROM events UNION ALL SELECT event FROM events', 'UNIONs are not supported'],
    ['SELECT 1', 'Query must SELECT FROM events'],
    ['SELECT event FROM (SELECT event FROM events)', 'Subqueries or CTEs are not supported'],
    ['WITH cte AS (SELECT event FROM events) SELECT event FROM cte', 'Subqueries or CTEs are not supported'],
    ['SELECT (SELECT 1) AS one FROM events', 'Subqueries or CTEs are not supported'],
    [
      'SELECT event IN (SELECT event FROM events) AS known FROM events',
      'Subqueries or CTEs are not supported',
    ],
    ['SELECT key FROM groups', 'Query must only SELECT FROM events'],
    ['SELECT event FROM events.persons', 'Query must only SELECT FROM events'],
    ['SELECT event FROM numbers(5)', 'Query must only SELECT FROM events'],
    [
      'SELECT event, persons.id FROM events LEFT JOIN persons ON events.person_id = persons.id',
      'JOINs are not supported',
    ],
    [
      'SELECT event FROM events WHERE event IN (SELECT event FROM events)',
      'Subqueries or CTEs are not supported',
    ],
    [
      'SELECT event FROM events WHERE count() > 1',
      'Unsupported HogQL query: it contains an aggregate, but an export has one row for each event',
    ],
    [
      'SELECT event FROM events PREWHERE timestamp > now()',
      'Unsupported HogQL query: it contains now(): the same interval must give the same rows',
    ],
    [
      'SELECT event FROM events WHERE arrayJoin([true, false])',
      'Unsupported HogQL query: it contains arrayJoin',
    ],
    ['SELECT event FROM events WHERE nope = 1', "Invalid HogQL query: Unable to resolve field: 'nope'"],
    ["SELECT event FROM events WHERE pg_read_file('x') = ''", 'Invalid HogQL query: '],
    ['SELECT event FROM events WHERE {condition}', 'Invalid HogQL query: '],
    [
      'SELECT DISTINCT event FROM events',
      'Unsupported HogQL query: it can only list columns and choose rows by WHERE, without DISTINCT',
    ],
    [
      'SELECT event FROM events ORDER BY event',
      'Unsupported HogQL query: it can only list columns and choose rows by WHERE, without ORDER BY',
    ],
    [
      'SELECT event FROM events LIMIT 5',
      'Unsupported HogQL query: it can only list columns and choose rows by WHERE, without LIMIT',
    ],
    ['SELECT event FROM events AS e WHERE f.event = 1', "Invalid HogQL query: Unable to resolve field: 'f'"],
    [
      'SELECT event, count() FROM events GROUP BY event',
      'Unsupported HogQL query: it can only list columns and choose rows by WHERE, without GROUP BY',
    ],
    [
      'SELECT count() FROM events',
      'Unsupported HogQL query: it contains an aggregate, but an export has one row for each event',
    ],
    [
      'SELECT row_number() OVER () AS n FROM events',
      'Unsupported HogQL query: it contains a window function',
    ],
    [
      'SELECT arrayJoin([1, 2]) AS n FROM events',
      'Unsupported HogQL query: it contains arrayJoin, which turns one row into several',
    ],
    [
      'SELECT NOW() AS n FROM events',
      'Unsupported HogQL query: it contains NOW(): the same interval must give the same rows',
    ],
    [
      'SELECT event, upper(event) AS event FROM events',
      "Invalid HogQL query: two columns are called 'event'",
    ],
    ['SELECT session.$entry_gclid FROM events', 'Invalid HogQL query: Unable to resolve field'],
    ['SELECT event AS `` FROM events', 'Invalid HogQL query: a column has no name'],
    ['SELECT pg_sleep(1) AS x FROM events', 'Invalid HogQL query: '],
  ])('%s', async (hogqlQuery, message) => {
    const refused = await refusal({ hogqlQuery });
    expect(refused.field).toBe('hogql_query');
    expect(refused.message.slice(0, message.length)).toBe(message);
  });

  test('with other models, and for HTTP', async () => {
    const hogqlQuery = 'SELECT event FROM events';
    expect((await refusal({ hogqlQuery, model: 'persons' })).message).toBe(
      'Query must only SELECT FROM persons',
    );
    expect((await refusal({ hogqlQuery: 'SELECT 1', model: 'sessions' })).message).toBe(
      'Query must SELECT FROM sessions',
    );
    expect(
      await refusal({ hogqlQuery: 'SELECT id FROM persons', model: null, filters: event({}) }),
    ).toMatchObject({
      field: 'filters',
      message: "'filters' is only supported for 'events' not 'persons' model",
    });
    expect((await refusal({ hogqlQuery: 'SELECT uniq(id) FROM persons', model: null })).message).toBe(
      'Unsupported HogQL query: it contains an aggregate, but an export has one row for each distinct id of a person',
    );
    expect((await refusal({ hogqlQuery: 'SELECT key FROM cohorts', model: null })).message).toBe(
      'Query must only SELECT FROM events, persons, sessions or groups',
    );
    expect(await refusal({ model: 'sessions', columnSet: 'capture' })).toMatchObject({
      field: 'model',
      message: 'The destination takes no rows of the model sessions',
    });
  });
});

test.each([
  ['SELECT event FROM events UNION ALL SELECT event FROM events', 1, 1],
  ['SELECT event\nFROM (SELECT event FROM events)', 2, 7],
  ['SELECT event,\n  (SELECT 1) AS one FROM events', 2, 4],
  ['SELECT event FROM events AS e (a)', 1, 19],
  ['SELECT event FROM events LIMIT 5', 1, 32],
  ['SELECT event FROM events\nGROUP BY event', 2, 10],
  ['SELECT event, nope FROM events', 1, 15],
  ["SELECT event FROM events WHERE event = 'a' AND nope = 1", 1, 48],
  ['SELECT event, upper(event) AS event FROM events', 1, 15],
  ['SELECT event FROM events WHERE timestamp > now()', 1, 44],
  ['SELECT count() FROM events', 1, 8],
])('the place of the fault in %j is told', async (hogqlQuery, line, column) => {
  const { detail } = await refusal({ hogqlQuery });
  expect(detail?.split('\n')[0]).toBe(`Line ${line}, column ${column}:`);
});

describe('the schema of selected columns', () => {
  test('lists them, and makes the same query again', async () => {
    const source =
      'select event, properties.$browser as `the "browser`, upper( event ) as `a``b\\\\c`, 1 + 1 two, person.properties.x from events';
    const { schema } = await readSelection(source, parser);
    expect(schema).toEqual({
      fields: [
        { expression: 'event', alias: 'event' },
        { expression: 'properties.$browser', alias: 'the "browser' },
        { expression: 'upper( event )', alias: 'a`b\\c' },
        { expression: '1 + 1', alias: 'two' },
        { expression: 'person.properties.x', alias: 'person.properties.x' },
      ],
      values: {},
      hogql_query:
        'SELECT event, properties.$browser AS `the "browser`, upper( event ) AS `a``b\\\\c`, 1 + 1 AS two, person.properties.x FROM events',
    });
    const again = await readSelection(schema.hogql_query, parser);
    expect(again.schema).toEqual(schema);
    const [first, second] = [source, schema.hogql_query].map((hogqlQuery) => queryOf(parser, { hogqlQuery }));
    expect(await first).toEqual(await second);
  });

  test('is the same again whatever columns are called', async () => {
    const name = fc
      .oneof(
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom('`', '\\', '\\`', '{a}', '"', "'", 'select', 'a b', '\\n', '--'),
      )
      .filter((one) => one !== '' && !one.includes('\0') && one.isWellFormed());
    await fc.assert(
      fc.asyncProperty(fc.array(name, { minLength: 2, maxLength: 2 }), async ([one, other]) => {
        const quoted = `${one}${other}`.replaceAll('\\', '\\\\').replaceAll('"', '""');
        const { schema } = await readSelection(`select event as "${quoted}" from events`, parser);
        expect(schema.fields).toEqual([{ expression: 'event', alias: `${one}${other}` }]);
        expect((await readSelection(schema.hogql_query, parser)).schema).toEqual(schema);
      }),
    );
  });

  test('has the conditions as they were written', async () => {
    const source = "select event e from events prewhere event <> 'b' where ( e = 'a' ) or e = 'c'";
    const { schema } = await readSelection(source, parser);
    expect(schema.hogql_query).toBe(
      "SELECT event AS e FROM events PREWHERE event <> 'b' WHERE ( e = 'a' ) or e = 'c'",
    );
    const again = await readSelection(schema.hogql_query, parser);
    expect(again.schema).toEqual(schema);
    const [first, second] = [source, schema.hogql_query].map((hogqlQuery) => queryOf(parser, { hogqlQuery }));
    expect(await first).toEqual(await second);
  });

  test('may name its table', async () => {
    const written = (table: string, alias: string) =>
      `select ${table}.event as name, ${table}.properties.a as a, arrayMap(e -> concat(e, 'x'), ['y']) as own
       from events ${alias} prewhere ${table}.event <> 'b' where ${table}.person.properties.x = 'c'`;
    const [named, plain] = await Promise.all(
      [written('e', 'as e'), written('events', '')].map((hogqlQuery) => queryOf(parser, { hogqlQuery })),
    );
    expect({ ...named, schema: null }).toEqual({ ...plain, schema: null });
    const { schema } = await readSelection(written('e', 'e'), parser);
    expect(schema.hogql_query).toContain('e.event AS name');
    expect(schema.hogql_query).toContain(" FROM events AS e PREWHERE e.event <> 'b'");
    expect((await readSelection(schema.hogql_query, parser)).schema).toEqual(schema);
    // Filters go beside a query whatever it calls its table.
    const filters = [{ type: 'event', key: 'a', value: '1' }];
    const filtered = await queryOf(parser, { hogqlQuery: 'select event from events as properties', filters });
    const other = await queryOf(parser, { hogqlQuery: 'select event from events', filters });
    expect(filtered.text).toBe(other.text);
  });

  test.each(MODEL_NAMES)('of a star has the columns of files: %s', async (model) => {
    const { schema } = await readSelection(`select * from ${model}`, parser);
    const files = await queryOf(parser, { model });
    expect(schema.fields.map((one) => one.alias)).toEqual(files.columns.map((one) => one.name));
    const selected = await queryOf(parser, { model: null, hogqlQuery: schema.hogql_query });
    expect([selected.model, selected.columns]).toEqual([model, files.columns]);
  });
});
