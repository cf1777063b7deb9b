import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { copyOut } from '../../db/copy-out.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { ModelError, type ModelOptions } from '../../models/index.ts';
import { databaseForFile } from '../support/database.ts';
import { insertEvents } from '../support/rows.ts';
import { END, parserForFile, queryOf, rowsOf, START } from './support.ts';

const database = databaseForFile();
const parser = parserForFile();
const at = (milliseconds: number) => new Date(START + milliseconds).toISOString();

const NAMES: Record<string, string> = {};
async function insert(name: string, fields: Partial<Parameters<typeof insertEvents>[1][number]>) {
  const uuid = uuidv7();
  NAMES[uuid] = name;
  await insertEvents(database.pool, [{ project_id: 1, timestamp: at(1000), uuid, ...fields }]);
}

/** Names of the events that are exported, in their order. */
async function exported(options: Partial<ModelOptions> = {}): Promise<string[]> {
  const rows = await rowsOf(database.pool, await queryOf(parser, options));
  return rows.map((row) => NAMES[row.uuid as string] ?? 'unknown');
}

beforeAll(async () => {
  await insert('first', {
    inserted_at: at(0),
    timestamp: '2020-01-01T00:00:00Z',
    event: 'signup',
    properties: { plan: 'pro', seats: 5, $ip: '10.0.0.1', $set: { a: 1 }, when: '2026-03-01T00:00:00Z' },
    person_properties: { email: 'a@example.com' },
  });
  await insert('second', {
    event: "it's",
    properties: { plan: 'free', $ip: '' },
    inserted_at: '2026-03-02T10:30:00.123456Z',
  });
  await insert('before', { inserted_at: '2026-03-02T09:59:59.999999Z' });
  await insert('last', {
    inserted_at: '2026-03-02T10:59:59.999999Z',
    properties: { when: '2026-01-01T00:00:00Z' },
  });
  await insert('after', { inserted_at: at(END - START) });
  await insert('other project', { project_id: 2, inserted_at: at(1) });
});

describe('events', () => {
  test('are those that came in within the interval, whenever they happened', async () => {
    expect(await exported()).toEqual(['first', 'second', 'last']);
    expect(await exported({ interval: { start: null, end: START } })).toEqual(['before']);
    expect(await exported({ projectId: 2 })).toEqual(['other project']);
    expect(await exported({ projectId: 3 })).toEqual([]);
  });

  test('intervals that meet give every event once', async () => {
    const edges = [START - 3_600_000, START, START + 1, START + 1_800_124, END - 1, END, END + 3_600_000];
    const all: string[] = [];
    for (const [index, start] of edges.slice(0, -1).entries()) {
      all.push(...(await exported({ interval: { start, end: edges[index + 1] as number } })));
    }
    expect(all.sort()).toEqual(['after', 'before', 'first', 'last', 'second']);
  });

  test('have the values of their columns', async () => {
    const [files] = await rowsOf(database.pool, await queryOf(parser));
    expect(files).toMatchObject({
      ...{ event: 'signup', distinct_id: 'user-1', elements_chain: '', timestamp: '2020-01-01T00:00:00Z' },
      ...{ _inserted_at: '2026-03-02T10:00:00Z', person_properties: { email: 'a@example.com' } },
    });
    const [first, second] = await rowsOf(database.pool, await queryOf(parser, { columnSet: 'tables' }));
    expect(first).toMatchObject({
      set: { a: 1 },
      set_once: null,
      ip: '10.0.0.1',
      site_url: null,
      team_id: 1,
      elements: '""',
    });
    expect(second).toMatchObject({ set: null, ip: null });
    const [sent] = await rowsOf(database.pool, await queryOf(parser, { columnSet: 'capture' }));
    expect(Object.keys(sent!)).toEqual([
      'uuid',
      'event',
      'distinct_id',
      'timestamp',
      'properties',
      'elements_chain',
    ]);
  });

  test.each<[string, Partial<ModelOptions>, string[]]>([
    ['included names', { includeEvents: ['signup', 'nope'] }, ['first']],
    ['names with quotes', { includeEvents: ["it's"] }, ['second']],
    ['excluded names', { excludeEvents: ['signup', "it's"] }, ['last']],
    ['both', { includeEvents: ['signup', "it's"], excludeEvents: ['signup'] }, ['second']],
    ['thousands of names', { includeEvents: [...Array(20_000).keys(), 'signup'].map(String) }, ['first']],
    ['empty lists', { includeEvents: [], excludeEvents: [] }, ['first', 'second', 'last']],
    ['no filters', { filters: [] }, ['first', 'second', 'last']],
    [
      'a property',
      { filters: [{ type: 'event', key: 'plan', operator: 'exact', value: ['pro', 'x'] }] },
      ['first'],
    ],
    ['a missing property', { filters: [{ type: 'event', key: 'plan', operator: 'is_not_set' }] }, ['last']],
    ['a number', { filters: [{ type: 'event', key: 'seats', operator: 'gt', value: 4 }] }, ['first']],
    [
      'a person',
      { filters: [{ type: 'person', key: 'email', operator: 'icontains', value: '@EXAMPLE' }] },
      ['first'],
    ],
    [
      'an expression',
      { filters: [{ type: 'hogql', key: "properties.plan = 'pro' or event = 'it\\'s'" }] },
      ['first', 'second'],
    ],
    [
      'a lambda',
      { filters: [{ type: 'hogql', key: "arrayExists(event -> event = properties.plan, ['pro'])" }] },
      ['first'],
    ],
    [
      'all of several',
      {
        filters: [
          { type: 'event', key: 'plan', operator: 'is_set' },
          { type: 'hogql', key: "event != 'signup'" },
        ],
      },
      ['second'],
    ],
    [
      'the condition of a query',
      { hogqlQuery: "select uuid from events where properties.plan = 'pro'" },
      ['first'],
    ],
    [
      'conditions of a query, with a name for a column',
      {
        hogqlQuery:
          "select uuid, lower(event) as e from events prewhere e <> 'x' where e = 'signup' or e = 'it\\'s'",
      },
      ['first', 'second'],
    ],
    [
      'a condition of a query that lets everything pass',
      { hogqlQuery: "select uuid, '' as inserted_at, 5 as event from events where true or team_id = 2" },
      ['first', 'second', 'last'],
    ],
    [
      'a query, names and filters together',
      {
        hogqlQuery: "select uuid, 'x' as event from events where properties.seats is null",
        excludeEvents: ['signup'],
        filters: [{ type: 'event', key: 'plan', operator: 'is_set' }],
      },
      ['second'],
    ],
    // Relative to the interval, not to today: the same interval always gives the same rows.
    [
      'a relative date',
      { filters: [{ type: 'event', key: 'when', operator: 'is_date_after', value: '-7d' }] },
      ['first'],
    ],
  ])('filtered by %s', async (_name, options, expected) => {
    expect(await exported(options)).toEqual(expected);
  });

  test('a selected column of the name of another does not stand in for it in conditions', async () => {
    const hogqlQuery = `select uuid, 'signup' as event, concat('x', distinct_id) as distinct_id, '{"plan":"pro"}' as properties,
      toDateTime('2026-03-02 10:15:00') as inserted_at, toDateTime('2026-03-02 10:15:00') as timestamp, 'x' as events from events`;
    expect(await exported({ hogqlQuery })).toEqual(['first', 'second', 'last']);
    expect(await exported({ hogqlQuery, includeEvents: ["it's"] })).toEqual(['second']);
    const filters = [
      { type: 'event', key: 'plan', operator: 'exact', value: 'free' },
      { type: 'hogql', key: "distinct_id = 'user-1' and event = 'it\\'s'" },
    ];
    expect(await exported({ hogqlQuery, filters })).toEqual(['second']);
  });

  test('hostile texts in filters, names and columns are texts', async () => {
    const hostile = fc.oneof(
      fc.constantFrom(
        "'",
        '\\',
        "\\'",
        "'; drop table events; --",
        '$1::text',
        '%',
        '_',
        "') or true --",
        '{x}',
        '\n',
        '"',
      ),
      fc.string({ unit: 'binary' }).map((one) => one.replaceAll('\0', '').toWellFormed()),
    );
    await fc.assert(
      fc.asyncProperty(hostile, hostile, async (one, other) => {
        const value = `${one}${other}`;
        const filter = (operator: string) => ({
          filters: [{ type: 'event', key: `k${one}`, operator, value: `v${value}` }],
        });
        expect(await exported(filter('exact'))).toEqual([]);
        expect(await exported(filter('is_not'))).toHaveLength(3);
        expect(await exported({ includeEvents: [`e${value}`] })).toEqual([]);
        expect(await exported({ excludeEvents: [`e${value}`] })).toHaveLength(3);
        const text = value.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n');
        if (/[\r\u2028\u2029{}]/.test(text)) return;
        const query = await queryOf(parser, { hogqlQuery: `select uuid, '${text}' as x from events` }).catch(
          (error) => error,
        );
        if (query instanceof ModelError) return;
        const rows = await rowsOf(database.pool, query);
        expect(rows.map((row) => row.x)).toEqual([value, value, value]);
      }),
      { numRuns: 60 },
    );
  });

  test('the statement runs as it is, as a COPY', async () => {
    const query = await queryOf(parser, { filters: [{ type: 'hogql', key: "event != 'x\\\\'" }] });
    const read = copyOut(database.pool, query.text, { settings: query.settings });
    let bytes = 0;
    for await (const chunk of read) bytes += chunk.length;
    expect(read.rows).toBe(3);
    expect(bytes).toBeGreaterThan(300);
  });
});
