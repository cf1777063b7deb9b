// An event can have 20 megabytes. However often a query reads it, the query takes only so much memory, and can be stopped.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, printStatement, SIZE_LIMITS, type Statement } from '../../../hog/sql/index.ts';
import { refusesQuery } from '../../../models/index.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { eventsDatabase } from './database.ts';
import { insertEvents, PROJECT } from './tables.ts';

const parser = createParser({ timeoutMs: PATIENCE });
const database = eventsDatabase();
let pid: number;

afterAll(() => parser.close());
beforeAll(async () => {
  await insertEvents(database.client(), [
    { event: 'text', properties: { a: 'x'.repeat(8_000_000), b: { c: [7, { d: 'é"' }] }, n: null } },
    { event: 'list', properties: { l: Array(3_000_000).fill(1), b: { c: [7, { d: 'é"' }] } } },
    { event: 'numbers', properties: { l: Array(1_000_000).fill(1e300) } },
    { event: 'small', properties: { a: 'x', b: { c: [7, { d: 'é"' }] }, n: null } },
  ]);
  const { rows } = await database.client().query('select pg_backend_pid() as pid');
  pid = rows[0].pid;
});

/** What docs/hogql.md says of memory for documents, and room for what Postgres itself takes. */
const MOST_MEBIBYTES = 700;

const privateMebibytes = (): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const printed = async (source: string): Promise<Statement> =>
  printStatement((await parser.select(source)) as SelectNode, {
    schema: createSchema('current'),
    projectId: PROJECT,
    timezone: 'UTC',
    source,
  });

async function peakOf(source: string): Promise<{ outcome: string; mebibytes: number }> {
  let mebibytes = privateMebibytes();
  const timer = setInterval(() => {
    mebibytes = Math.max(mebibytes, privateMebibytes());
  }, 2);
  try {
    await database.query(await printed(source));
    return { outcome: 'answered', mebibytes };
  } catch (error) {
    const known =
      refusesQuery(error) && /may have .* at most|would have more than/.test((error as Error).message);
    return { outcome: known ? 'refused' : (error as Error).message, mebibytes };
  } finally {
    clearInterval(timer);
    mebibytes = Math.max(mebibytes, privateMebibytes());
  }
}

const many = (count: number, part: string) => Array(count).fill(part).join(', ');

describe('on Linux', () => {
  test.each<[what: string, event: string, expression: string]>([
    ['a property in many places', 'text', `length(concat(${many(60, 'properties.a')}))`],
    ['a list of properties', 'text', `length([${many(60, 'properties.a')}])`],
    ['functions of properties', 'text', `length(${'lower(upper('.repeat(30)}properties.a${'))'.repeat(30)})`],
    ['a document in many places', 'text', `length(concat(${many(60, 'toString(properties)')}))`],
    ['a document as jsonb', 'list', Array(60).fill('JSONLength(properties)').join(' + ')],
    ['a list of elements', 'list', "length(JSONExtractArrayRaw(properties, 'l'))"],
    ['a list of numbers', 'list', "length(JSONExtract(properties, 'l', 'Array(Int64)'))"],
    ['numbers with many digits', 'numbers', "length(JSONExtractArrayRaw(properties, 'l'))"],
    [
      'such numbers in a text',
      'small',
      "length(JSONExtractArrayRaw(concat('[', repeat('1e131000,', 9000), '1]')))",
    ],
  ])('%s', async (_what, event, expression) => {
    const { outcome, mebibytes } = await peakOf(`select ${expression} from events where event = '${event}'`);
    expect(outcome).toBe('refused');
    expect(mebibytes).toBeLessThan(MOST_MEBIBYTES);
  });

  test('what else the document has can be read in many places', async () => {
    const { outcome, mebibytes } = await peakOf(
      `select length(concat(${many(60, 'properties.b.c')})) from events where event in ('text', 'list')`,
    );
    expect(outcome).toBe('answered');
    expect(mebibytes).toBeLessThan(MOST_MEBIBYTES);
  });
});

test('a large document gives what a small one gives', async () => {
  const paths = [
    ...['properties.b', 'properties.b.c', 'properties.b.c[1]', 'properties.b.c[-1]', 'properties.b.c[2].d'],
    ...[
      'properties.b.x',
      'properties.n',
      'properties.n.m',
      "JSONExtractString(properties, 'b', 'c', 2, 'd')",
    ],
    ...['properties[event]', "properties['b']['c'][2]['d']", 'isNull(properties.n)', 'properties.b.c.d'],
  ];
  // So many places that the document is large.
  const columns = `${paths.join(', ')}, ${many(40, "coalesce(properties.b.c, '')")}`;
  const [large, small] = await Promise.all(
    ['text', 'small'].map(async (event) =>
      database.query(await printed(`select ${columns} from events where event = '${event}'`)),
    ),
  );
  expect(large).toEqual(small);
  expect(large?.[0]?.slice(0, 5)).toEqual([
    '{"c":[7,{"d":"é\\""}]}',
    '[7,{"d":"é\\""}]',
    '7',
    '{"d":"é\\""}',
    'é"',
  ]);
});

test('all columns of an export read documents of any size', async () => {
  const { outcome } = await peakOf(
    'select properties, person_properties, elements_chain, set, set_once, ip from events',
  );
  expect(outcome).toBe('answered');
  expect(SIZE_LIMITS.documents / 14).toBeGreaterThan(20_971_520);
});
