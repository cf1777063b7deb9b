import { describe, expect, test } from '@jest/globals';
import createHogQLParser from '@posthog/hogql-parser';
import { SourceError } from '../../../hog/errors.ts';
import { toExpr } from '../../../hog/parser/convert-expression.ts';
import { answerOf } from '../../../hog/parser/messages.ts';
import { createReader } from '../../../hog/parser/reader.ts';
import { splitTerms } from '../../../hog/parser/terms.ts';
import { Random } from '../support/random.ts';
import { testParser } from './support.ts';

const parser = testParser({ workers: 2 });
const reference = await createHogQLParser();

async function outcome(read: () => unknown): Promise<string> {
  try {
    return JSON.stringify(await read());
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    return `${error.code} ${error.line}:${error.column} ${error.message}`;
  }
}

function whole(source: string): Promise<string> {
  const reader = createReader(source, 1_000);
  return outcome(() => toExpr(reader, answerOf(reader, source, reference.parseExpr(source))));
}

const chain = (term: string, operator = 'or', times = 8) => Array(times).fill(term).join(` ${operator} `);

describe('a chain of conditions is cut', () => {
  test.each<[string, 'or' | 'and', number]>([
    [chain("properties.a = 'or'"), 'or', 8],
    [chain('a and b'), 'or', 8],
    [chain('(a or b)', 'and'), 'and', 8],
    [chain('f(a or b) != 1'), 'or', 8],
    [chain('not a is not null -- or\n'), 'or', 8],
    [chain("x in ('a', 'b')", 'AND'), 'and', 8],
    [`${chain('a', 'and', 20)} or ${chain('b')}`, 'or', 9],
  ])('%s', (source, kind, terms) => {
    expect(splitTerms(source)).toMatchObject({ kind, texts: { length: terms } });
  });

  // In each something binds weaker than the operators, or has one of its own.
  test.each([
    chain('a', 'or', 7),
    `${chain('a')} ? 1 : 2`,
    `${chain('a')} ?? 2`,
    `x -> ${chain('a')}`,
    `${chain('a')} as b`,
    chain('a between 1 and 2', 'and'),
    chain('case when a or b then c end'),
    `${chain('a')}, b`,
    `select ${chain('a')}`,
    `${chain('a')} or '`,
  ])('%s stays whole', (source) => {
    expect(splitTerms(source)).toBeNull();
  });
});

describe('the tree is that of the whole expression', () => {
  const terms = [
    ...[
      'a',
      'event',
      'properties.$a.b',
      "properties.x = 'or'",
      'not a',
      "x in ('a', 'b')",
      'x not in (1, 2)',
      '-a',
    ],
    ...[
      '(a or b)',
      '(a and b)',
      '((a or b) or c)',
      'f(a, b or c)',
      "a like '%and%'",
      "a not ilike '_'",
      'a is null',
    ],
    ...[
      'a is not null',
      'a =~ b',
      'a !~* b',
      'a[1].b',
      "'😀' = b",
      '"a or b" = 1',
      "f'{a or b}' = c",
      '1.0',
      '[1, 2]',
    ],
    ...[
      '{placeholder}',
      "{'a': 1 or 2}.a",
      'x in cohort 5',
      '(a ? b : c)',
      'a + b * c',
      'a % 2 = 0',
      'sum(a) > .5',
    ],
    ...[
      'a /* or */',
      'a -- and\n',
      'not (a or b)',
      '(x -> x or y)(1)',
      'a < b',
      'a >= 1e5',
      'true',
      'null',
      '(select 1)',
    ],
  ];
  const wrong = [
    'a b',
    '',
    '+',
    "'",
    'a)',
    'not',
    'a ? b',
    'é',
    '(a',
    'a = = b',
    'a as b',
    'a between 1 and 2',
    'a ?? b',
  ];

  test('of random chains, right and wrong ones', async () => {
    const random = new Random(5);
    let cut = 0;
    let read = 0;
    for (let n = 0; n < 150; n++) {
      const parts = Array.from({ length: 8 + random.below(12) }, () => random.pick(terms));
      if (random.chance(0.3)) parts[random.below(parts.length)] = random.pick(wrong);
      const operators = random.pick([['or'], ['and'], ['or', 'and'], [' OR\n', 'and']]);
      const source = parts.map((one, at) => (at === 0 ? one : `${random.pick(operators)} ${one}`)).join(' ');
      const expected = await whole(source);
      expect([source, await outcome(() => parser.expression(source))]).toEqual([source, expected]);
      if (splitTerms(source)) cut++;
      if (expected.startsWith('{')) read++;
    }
    expect(cut).toBeGreaterThan(75);
    expect(read).toBeGreaterThan(75);
  });

  test('an error in one of many terms has its place in the whole', async () => {
    const source = [...Array(30).fill('a = 1'), 'b = = 2', 'c'].join('\nor ');
    await expect(parser.expression(source)).rejects.toMatchObject({ code: 'syntax', line: 31 });
    expect(await outcome(() => parser.expression(source))).toBe(await whole(source));
  });
});

test('a chain that takes the parser exponentially long as a whole is read term by term', async () => {
  const { kind, exprs } = (await parser.expression(chain("ifNull(a, b) = 'x'", 'or', 300))) as never as {
    kind: string;
    exprs: unknown[];
  };
  expect([kind, exprs.length]).toEqual(['or', 300]);
});
