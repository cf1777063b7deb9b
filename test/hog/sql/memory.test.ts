// How much private memory a backend of Postgres takes for one statement, whatever the query asks for.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { build, type Expr, type SelectNode } from '../../../hog/ast/index.ts';
import { SourceError } from '../../../hog/errors.ts';
import { createParser } from '../../../hog/parser/index.ts';
import {
  createSchema,
  printStatement,
  SIZE_LIMITS,
  type Statement,
  selection,
} from '../../../hog/sql/index.ts';
import { refusesQuery } from '../../../models/index.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { rounds } from '../../support/rounds.ts';
import { eventsDatabase } from './database.ts';
import { insertEvents, PROJECT } from './tables.ts';

/** What docs/hogql.md says. It leaves room for what Postgres itself takes. */
const MOST_MEBIBYTES = 256;

const parser = createParser({ timeoutMs: PATIENCE });
const database = eventsDatabase();
let pid: number;

afterAll(() => parser.close());
beforeAll(async () => {
  const rows = Array.from({ length: 400 }, (_, index) => ({
    event: `event ${index}`,
    properties: { text: 'x'.repeat(500), list: [1, 2, 3] },
  }));
  await insertEvents(database.client(), rows);
  const { rows: found } = await database.client().query('select pg_backend_pid() as pid');
  pid = found[0].pid;
  // As in production, a statement also ends in time. Every day it ends sooner: most of what takes memory takes it at once.
  await database.client().query(`set statement_timeout = '${rounds(4, 8)}s'`);
});

const privateMebibytes = (): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const printed = async (source: string): Promise<Statement> =>
  printStatement((await parser.select(source)) as SelectNode, {
    schema: createSchema('current'),
    projectId: PROJECT,
    timezone: 'UTC',
    source,
  });

/** Runs a query. Returns what became of it, and the most memory that was seen. */
async function peakOf(source: string): Promise<{ outcome: string; mebibytes: number }> {
  let mebibytes = privateMebibytes();
  const timer = setInterval(() => {
    mebibytes = Math.max(mebibytes, privateMebibytes());
  }, 10);
  try {
    await database.query(await printed(source));
    return { outcome: 'answered', mebibytes };
  } catch (error) {
    const { message, code } = error as { message: string; code?: string };
    if (/^A value would have more than \d+ bytes/.test(message)) {
      // The API answers 400, and a run fails for good.
      return { outcome: refusesQuery(error) ? 'refused' : `wrong code ${code}`, mebibytes };
    }
    // Postgres ends what takes too long, and the printer refuses what is too large.
    if (code === '57014' || error instanceof SourceError) return { outcome: 'refused', mebibytes };
    return { outcome: message, mebibytes };
  } finally {
    clearInterval(timer);
    mebibytes = Math.max(mebibytes, privateMebibytes());
  }
}

const many = (count: number, column: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => column(index)).join(', ');
/** A text of about 15 megabytes, just below the largest one. */
const BIG = "repeat('a', 960000)";
const HUGE = "repeat(concat(event, repeat('a', 990)), 800000)";

describe('on Linux', () => {
  test.each<[what: string, source: string]>([
    ['repeat', `select length(${HUGE}) from events`],
    ['repeat in three columns', `select ${many(3, () => `length(${HUGE})`)} from events`],
    ['space', `select ${many(60, (n) => `length(space(${990_000 + n}))`)} from events`],
    ['lpad', `select ${many(60, (n) => `length(lpad(event, ${990_000 + n}, 'é'))`)} from events`],
    ['rpad', `select ${many(60, (n) => `length(rpad(event, ${990_000 + n}, 'é'))`)} from events`],
    ['replace', `select length(replace(${BIG}, 'a', '${'b'.repeat(900)}')) from events`],
    [
      'replaceRegexpAll',
      `select length(replaceRegexpAll(${BIG}, 'a+', '${'\\\\0'.repeat(900)}')) from events`,
    ],
    [
      'arrayStringConcat',
      `select length(arrayStringConcat(range(900000), '${'b'.repeat(900)}')) from events`,
    ],
    ['range', `select ${many(100, (n) => `length(range(${900_000 + n}))`)} from events`],
    ['arrayMap', `select length(arrayMap(x -> repeat('a', 90000), range(50000))) from events`],
    [
      'arrayMap in arrayMap',
      `select length(arrayMap(x -> arrayStringConcat(arrayMap(y -> repeat('b', 900), range(900)), ','), range(50000))) from events`,
    ],
    ['splitByChar', `select length(splitByChar('a', ${BIG})) from events`],
    ['splitByString into characters', `select length(splitByString('', ${BIG})) from events`],
    ['extractAll', `select length(extractAll(${BIG}, 'a')) from events`],
    ['splitByRegexp', `select length(splitByRegexp('a', ${BIG})) from events`],
    [
      'extractURLParameters',
      `select length(extractURLParameters(concat('?', repeat('a&', 900000)))) from events`,
    ],
    ['encodeURLComponent', `select length(encodeURLComponent(repeat('é', 900000))) from events`],
    ['decodeURLComponent', `select length(decodeURLComponent(repeat('%41', 900000))) from events`],
    ['hex of hex', `select length(${'hex('.repeat(8)}repeat('a', 90000)${')'.repeat(8)}) from events`],
    ['texts of lists of texts', `select length(${'toString(['.repeat(10)}'"'${'])'.repeat(10)}) from events`],
    ['a JSON text of many numbers', `select JSONLength(concat('[', repeat('1,', 990000), '1]')) from events`],
    ['format', `select length(format('${'{0}'.repeat(900)}', repeat('a', 900000))) from events`],
    [
      'concatWithSeparator',
      `select length(concatWithSeparator(${BIG}, ${many(60, (n) => `'${n}'`)})) from events`,
    ],
    ['concat of itself', `select length(concat(${many(60, () => BIG)})) from events`],
    [
      'a long sum',
      `select ${Array.from({ length: 60 }, (_, n) => `length(repeat('a', ${900_000 + n}))`).join(' + ')} from events`,
    ],
    ['a chain of functions', `select length(${'lower(upper('.repeat(2)}${BIG}${'))'.repeat(2)}) from events`],
    [
      'an argument that is printed again',
      `select length(least(least(${BIG}, event), least(${BIG}, event))) from events`,
    ],
    ['groupArray', `select length(groupArray(repeat(event, 90000))) from events`],
    [
      'groupArray of groups',
      `select event, length(groupArray(repeat(event, 90000))) from events group by event`,
    ],
    ['string_agg', `select length(string_agg(repeat(event, 90000), ',')) from events`],
    ['json_agg', `select length(toString(json_agg(repeat(event, 90000)))) from events`],
    ['topK', `select length(topK(10)(repeat(event, 90000))) from events`],
    ['argMax', `select length(argMax(repeat(event, 90000), timestamp)) from events`],
    ['anyLast', `select length(anyLast(repeat(event, 90000))) from events`],
    [
      'groupArray over a window',
      `select length(groupArray(repeat(event, 9000)) over (order by event)) from events`,
    ],
    ['a sort of large rows', `select repeat(event, 90000) as x, event from events order by x limit 1`],
    [
      'a join of large rows',
      `select count() from (select repeat(event, 9000) as x from events) a join (select repeat(event, 9000) as y from events) b on a.x = b.y`,
    ],
  ])('%s', async (_what, source) => {
    const { outcome, mebibytes } = await peakOf(source);
    expect(['answered', 'refused']).toContain(outcome);
    expect(mebibytes).toBeLessThan(MOST_MEBIBYTES);
  });
});

describe('a query that builds too much is refused while it is printed', () => {
  const doubled = (levels: number) =>
    Array.from({ length: levels }).reduce<string>(
      (inner, _level, index) => `select concat(x${index}, x${index}) as x${index + 1} from (${inner})`,
      'select event as x0 from events',
    );

  test('columns that name each other twice', async () => {
    await expect(printed(doubled(30))).rejects.toThrow(/more than 5000 parts/);
    expect((await peakOf(doubled(5))).outcome).toBe('answered');
  });

  test('an argument that is printed several times at each level', async () => {
    const text = build.constant('a');
    const nested = Array.from({ length: 40 }).reduce<Expr>(
      (inner) => build.call('least', inner, text),
      build.field('properties', 'a'),
    );
    const query = selection({ table: 'events', select: [nested] });
    const options = { schema: createSchema('current'), projectId: PROJECT, timezone: 'UTC' };
    expect(() => printStatement(query, options)).toThrow(/too long for Postgres/);
  });

  test('more large values than there is room for', async () => {
    const chain = Array.from({ length: 60 }).reduce<Expr>(
      (inner) => build.call('concat', inner, build.call('repeat', build.constant('a'), build.integer(9))),
      build.constant('a'),
    );
    const query = selection({ table: 'events', select: Array.from({ length: 20 }, () => chain) });
    const options = { schema: createSchema('current'), projectId: PROJECT, timezone: 'UTC' };
    expect(() => printStatement(query, options)).toThrow(/too many large values/);
  });
});

test('the limits leave room for what queries usually build', async () => {
  expect(SIZE_LIMITS.value).toBe(16 * 1024 * 1024);
  for (const source of [
    `select ${many(50, (n) => `replaceAll(properties.text, 'x', 'y${n}')`)} from events`,
    "select groupArray(event), topK(3)(event), string_agg(event, ',') from events",
    'select event, groupUniqArray(properties.text) from events group by event order by event',
    "select arrayMap(x -> concat(x, '!'), splitByChar(',', properties.text)) from events",
    "select length(repeat('a', 16000)), range(1000) from events",
  ]) {
    expect((await peakOf(source)).outcome).toBe('answered');
  }
});
