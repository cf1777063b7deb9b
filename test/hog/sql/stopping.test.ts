// Some functions of Postgres cannot be stopped: a search that takes minutes goes on after its timeout, and after its client
// has gone. So each call of one is refused before it begins, if it would take long.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createParser } from '../../../hog/parser/index.ts';
import { createSchema, printStatement, type Statement, selection } from '../../../hog/sql/index.ts';
import { refusesQuery } from '../../../models/index.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { eventsDatabase } from './database.ts';
import { insertEvents, PROJECT } from './tables.ts';

const parser = createParser({ timeoutMs: PATIENCE });
const database = eventsDatabase();

afterAll(() => parser.close());
beforeAll(async () => {
  await insertEvents(database.client(), [{ event: 'one', properties: { long: 'a'.repeat(1_000_000) } }]);
});

const printed = async (source: string): Promise<Statement> =>
  printStatement(selection({ table: 'events', select: [await parser.expression(source)] }), {
    schema: createSchema('current'),
    projectId: PROJECT,
    timezone: 'UTC',
    source,
  });

async function refusalOf(source: string): Promise<string> {
  const statement = await printed(source);
  try {
    await database.query(statement);
    return 'answered';
  } catch (error) {
    return refusesQuery(error) ? (error as Error).message : `wrong: ${(error as Error).message}`;
  }
}

/** At each place in the text, it only differs at its beginning, where a search looks last. */
const LITERAL = `'b${'a'.repeat(1_500)}'`;
const COMPUTED = "concat('b', repeat('a', 1500))";
const TEXT = 'properties.long';

/** Each function that searches, with `N` for what is searched for. */
const SEARCHES: Record<string, string> = {
  position: `position(${TEXT}, N)`,
  positionUTF8: `positionUTF8(${TEXT}, N)`,
  strpos: `strpos(${TEXT}, N, 2)`,
  positionCaseInsensitive: `positionCaseInsensitive(${TEXT}, N)`,
  positionCaseInsensitiveUTF8: `positionCaseInsensitiveUTF8(${TEXT}, N)`,
  locate: `locate(N, ${TEXT})`,
  replace: `length(replace(${TEXT}, N, ''))`,
  replaceAll: `length(replaceAll(${TEXT}, N, ''))`,
  replaceOne: `length(replaceOne(${TEXT}, N, ''))`,
  countSubstrings: `countSubstrings(${TEXT}, N)`,
  countSubstringsCaseInsensitive: `countSubstringsCaseInsensitive(${TEXT}, N)`,
  splitByString: `length(splitByString(N, ${TEXT}))`,
  splitByChar: `length(splitByChar(N, ${TEXT}, 3))`,
  split_part: `length(split_part(${TEXT}, N, 1))`,
  translate: `length(translate(${TEXT}, N, 'c'))`,
  translateUTF8: `length(translateUTF8(${TEXT}, N, 'c'))`,
  trim: `length(trim(${TEXT}, N))`,
  trimBoth: `length(trimBoth(${TEXT}, N))`,
  btrim: `length(btrim(${TEXT}, N))`,
  trimLeft: `length(trimLeft(${TEXT}, N))`,
  ltrim: `length(ltrim(${TEXT}, N))`,
  trimRight: `length(trimRight(${TEXT}, N))`,
  rtrim: `length(rtrim(${TEXT}, N))`,
  like: `like(${TEXT}, N)`,
  ilike: `ilike(${TEXT}, N)`,
  notLike: `notLike(${TEXT}, N)`,
  notILike: `notILike(${TEXT}, N)`,
  multiSearchAny: `multiSearchAny(${TEXT}, ['x', N])`,
  multiSearchAnyUTF8: `multiSearchAnyUTF8(${TEXT}, ['x', N])`,
  multiSearchAnyCaseInsensitive: `multiSearchAnyCaseInsensitive(${TEXT}, ['x', N])`,
  multiSearchAnyCaseInsensitiveUTF8: `multiSearchAnyCaseInsensitiveUTF8(${TEXT}, ['x', N])`,
  multiSearchFirstPosition: `multiSearchFirstPosition(${TEXT}, ['x', N])`,
  multiSearchFirstIndex: `multiSearchFirstIndex(${TEXT}, ['x', N])`,
  multiSearchFirstPositionUTF8: `multiSearchFirstPositionUTF8(${TEXT}, ['x', N])`,
  multiSearchFirstPositionCaseInsensitive: `multiSearchFirstPositionCaseInsensitive(${TEXT}, ['x', N])`,
  multiSearchFirstIndexUTF8: `multiSearchFirstIndexUTF8(${TEXT}, ['x', N])`,
  multiSearchFirstIndexCaseInsensitive: `multiSearchFirstIndexCaseInsensitive(${TEXT}, ['x', N])`,
  multiSearchAllPositions: `length(multiSearchAllPositions(${TEXT}, ['x', N]))`,
  multiSearchAllPositionsCaseInsensitive: `length(multiSearchAllPositionsCaseInsensitive(${TEXT}, ['x', N]))`,
  multiSearchAllPositionsCaseInsensitiveUTF8: `length(multiSearchAllPositionsCaseInsensitiveUTF8(${TEXT}, ['x', N]))`,
  hasToken: `hasToken(${TEXT}, N)`,
  hasTokenCaseInsensitive: `hasTokenCaseInsensitive(${TEXT}, N)`,
  countSubstringsCaseInsensitiveUTF8: `countSubstringsCaseInsensitiveUTF8(${TEXT}, N)`,
  arrayIntersect: 'length(arrayIntersect(range(20000), range(20000, 40000)))',
  hasAll: 'hasAll(range(20000), arrayReverse(range(20000)))',
  hasAny: 'hasAny(range(20000), range(20000, 40000))',
};

describe('what would take long is refused before it begins', () => {
  const sources = Object.entries(SEARCHES).flatMap(([name, source]) =>
    source.includes('N')
      ? [LITERAL, COMPUTED].map((needle): [string, string] => [name, source.replace('N', () => needle)])
      : [[name, source] as [string, string]],
  );

  test.each(sources)('%s', async (_name, source) => {
    expect(await refusalOf(source)).toMatch(/^Searching would take more than 1000000000 steps/);
  });

  test('operators', async () => {
    for (const operator of ['like', 'ilike', 'not like', 'not ilike']) {
      expect(await refusalOf(`${TEXT} ${operator} ${LITERAL}`)).toMatch(/^Searching would take/);
    }
  });

  test('what is normalized', async () => {
    const run = "repeat('\u0301\u0323', 20000)";
    expect(await refusalOf(`length(normalizeUTF8NFC(${run}))`)).toMatch(/in a row that are not ASCII/);
  });

  test('formats of dates', async () => {
    const long = `'${'%Y'.repeat(501)}'`;
    await expect(printed(`formatDateTime(timestamp, ${long})`)).rejects.toThrow(/at most/);
    await expect(printed(`parseDateTime('2026', ${long})`)).rejects.toThrow(/at most/);
    const { rows } = await database
      .client()
      .query((await printed(`length(to_char(timestamp, repeat('DD', 100000)))`)) as never);
    expect(Object.values(rows[0] as object)).toEqual([1000]);
  });
});

test('what people write is not refused, and gives the same as before', async () => {
  const values: [string, unknown][] = [
    [`position(${TEXT}, 'ab')`, 0],
    [`position(${TEXT}, '${'a'.repeat(900)}')`, 1],
    [`${TEXT} like '%${'a'.repeat(900)}'`, true],
    ["hasAll([1, 2, 3], [2]) and hasAny(['a'], ['a', 'b']) and not hasAny([], [1])", true],
    ["normalizeUTF8NFC(concat('e\u0301', repeat('e\u0301x', 9000))) = concat('é', repeat('éx', 9000))", true],
    ["trim('  x ')", 'x'],
    ["parseDateTime('2026-01-02', '%Y-%m-%d') = toDateTime('2026-01-02')", true],
  ];
  for (const [source, value] of values) {
    expect([source, await database.query(await printed(source))]).toEqual([source, [[value]]]);
  }
});

/** What of Postgres searches, and our own functions around it, as they are printed. */
const SEARCHING =
  /\b(?:strpos|replace|string_to_array|split_part|translate|[blr]trim|normalize|hq\.(?:search_\w+|position|replace_one|count_substrings|split))\(|(?: i?like | @> | && )/;

test('every function that prints a search is among them', async () => {
  const cases = path.join(import.meta.dirname, 'cases');
  const unknown: string[] = [];
  for (const file of readdirSync(cases).filter((one) => one !== 'queries.json')) {
    for (const [source] of JSON.parse(readFileSync(path.join(cases, file), 'utf8')) as [string][]) {
      const text = await printed(source).then(
        (statement) => statement.text,
        () => '',
      );
      const known = Object.keys(SEARCHES).some((name) => source.includes(`${name}(`));
      // These print what is searched for themselves, and briefly.
      const own = /encodeURLFormComponent|decodeURLFormComponent|normalizeUTF8NFC|like|\bset\b|set_once/i;
      if (SEARCHING.test(text) && !known && !own.test(source)) unknown.push(source);
    }
  }
  expect(unknown).toEqual([]);
});
