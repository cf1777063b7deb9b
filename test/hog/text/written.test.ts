// What is written as HogQL means the same when it is read again.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { build, type Expr } from '../../../hog/ast/index.ts';
import { expressionText, selectText } from '../../../hog/text/index.ts';
import { rounds } from '../../support/rounds.ts';
import { bare, testParser } from '../parser/support.ts';

const parser = testParser();
const CASES = path.join(import.meta.dirname, '../sql/cases');
const sources = readdirSync(CASES).map((file) => {
  const cases = JSON.parse(readFileSync(path.join(CASES, file), 'utf8')) as [string, unknown][];
  // Queries have all that can be written. Most other texts are calls of functions.
  const every = file === 'queries.json' ? 1 : rounds(4, 1);
  return { file, texts: cases.map(([one]) => one).filter((_, index) => index % every === 0) };
});

test.each(sources)('the texts of $file are read again as they were', async ({ file, texts }) => {
  expect(texts.length).toBeGreaterThan(5);
  for (const source of texts) {
    const isQuery = file === 'queries.json' || /^\s*(?:select|with)\b/i.test(source);
    const tree = isQuery ? await parser.select(source) : await parser.expression(source);
    const text = isQuery ? selectText(tree as never) : expressionText(tree as Expr);
    const again = isQuery ? await parser.select(text) : await parser.expression(text);
    expect({ source, text, tree: bare(again) }).toEqual({ source, text, tree: bare(tree) });
  }
});

test.each([
  ['1-(2-3)*-1', '1 - (2 - 3) * (-1)'],
  ['not a = 1 or c', 'NOT a = 1 OR c'],
  ['(not a) = 1', '(NOT a) = 1'],
  ['(a or b) and c = (d = 1)', '(a OR b) AND c = (d = 1)'],
  ["`select`.`b``c` = 'it''s\\n'", "`select`.`b``c` = 'it\\'s\\n'"],
  ['a is not null', 'a IS NOT null'],
  ['x -> x.1 + y[2]', 'x -> x.1 + y[2]'],
  ['person_id not in cohort 3', 'person_id NOT IN COHORT 3'],
  [
    'sum(x) over (partition by a order by b desc rows between 1 preceding and current row)',
    'sum(x) OVER (PARTITION BY a ORDER BY b DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)',
  ],
  ['quantile(0.9)(x)', 'quantile(0.9)(x)'],
  ['1.0 + 1e100', '1.0 + 1e+100'],
])('%s is written as %s', async (source, text) => {
  expect(expressionText(await parser.expression(source))).toBe(text);
});

test.each([
  [
    'select distinct a from events e where b = 1 limit 5',
    'SELECT DISTINCT a FROM events AS e WHERE b = 1 LIMIT 5',
  ],
  [
    'with x as (select 1 as y from events) select y from x left join persons p on p.id = x.y limit 2 by y limit 3 offset 4',
    'WITH x AS (SELECT 1 AS y FROM events) SELECT y FROM x LEFT JOIN persons AS p ON p.id = x.y LIMIT 2 BY y LIMIT 3 OFFSET 4',
  ],
  [
    'select a from events union all (select b from events order by b limit 1) limit 9',
    'SELECT a FROM events UNION ALL (SELECT b FROM events ORDER BY b ASC LIMIT 1) LIMIT 9',
  ],
  [
    'select a from events array join b as c group by a having count() > 1',
    'SELECT a FROM events ARRAY JOIN b AS c GROUP BY a HAVING count() > 1',
  ],
])('%s is written as %s', async (source, text) => {
  const tree = await parser.select(source);
  expect(selectText(tree)).toBe(text);
  expect(bare(await parser.select(text))).toEqual(bare(tree));
});

test('common names that are keywords need no quotes', async () => {
  const common =
    'current date day filter first hour id key last minute month name quarter sample second step time';
  for (const name of `${common} timestamp week year zone`.split(' ')) {
    const text = `SELECT ${name}, ${name}.b, f(${name}), a AS ${name} FROM t WHERE ${name} = 1 ORDER BY ${name} ASC`;
    const tree = await parser.select(text);
    expect(selectText(tree)).toBe(text);
    expect(bare(await parser.select(text.replace(/\b(?:id|name)\b/g, (word) => `\`${word}\``)))).toEqual(
      bare(tree),
    );
  }
});

test('names that a filter may have are read again as names', async () => {
  for (const name of [
    'a b',
    '1',
    'select',
    '$x',
    "it's",
    'a`b',
    'a\\b',
    'ü',
    'a.b',
    'true',
    'null',
    'x\ny',
  ]) {
    const text = expressionText(build.field('properties', name));
    expect(bare(await parser.expression(text))).toEqual(bare(build.field('properties', name)));
  }
});
