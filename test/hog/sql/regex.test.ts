// The same patterns in RE2 and, translated, in Postgres: they must find something in the same texts.
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { SourceError } from '../../../hog/errors.ts';
import { postgresRegex } from '../../../hog/sql/regex.ts';
import { eventsDatabase } from './database.ts';

const database = eventsDatabase();

const TEXTS = [
  '',
  'a',
  'abc',
  'ABC',
  'a.c',
  'foo bar',
  'x1y22',
  'line\nbreak',
  'é',
  '٣',
  '_',
  'a-b',
  '{2}',
  '\\d',
  ']',
  '^$',
  'aaa',
  '日本',
  '\t',
  '😀',
];

const PATTERNS = [
  'a',
  '^a',
  'c$',
  '^$',
  '.',
  'a.c',
  'a\\.c',
  '[abc]',
  '[^abc]',
  '[a-c]+',
  '[]a]',
  '[^]a]',
  '[a\\]]',
  '[-a]',
  '[a-]',
  '\\d',
  '\\D',
  '\\w+',
  '\\W',
  '\\s',
  '\\S',
  '[\\d_]',
  '[^\\d]',
  '[\\D]',
  '[\\w-]',
  '[[:alpha:]]',
  '[[:^alpha:]]',
  '[^[:space:]]',
  '\\bfoo\\b',
  '\\Boo',
  '\\Aa',
  'c\\z',
  '(a|b)c',
  '(?:ab)c',
  '(?P<x>a)b',
  '(?i)abc',
  '(?i:x)?',
  '(?s).b',
  '(?-s)e.b',
  '(?m)^b',
  '(?m)e$',
  'a*',
  'a+?',
  'a??',
  'a{2}',
  'a{2,}',
  'a{1,2}?',
  '{2}',
  'a{,2}',
  'x\\{',
  '\\x61',
  '\\x{1F600}',
  '\\Q.c\\E',
  '\\Qa',
  '\\\\d',
  '\\/',
  '\\-',
  '\\t',
  '\\n',
  'é',
  '日+',
  '[日-本]',
  '😀',
  '\\.',
  '\\*',
  '(|a)b',
  'a||b',
  '()',
  '\\141',
  '[\\x61-\\x63]',
  '\\pL',
  '[\\pL]',
  '(?U)a+',
  'a{300}',
  '\\C',
  'a#b',
  '-- a',
  "'",
  '"',
  ';',
  '***:a',
  '(?x)a',
  '$1',
  '\\y',
  '\\m',
  '\\1',
];

async function differences(patterns: string[]): Promise<{ wrong: string[]; tried: number }> {
  const wrong: string[] = [];
  let tried = 0;
  for (const pattern of patterns) {
    let translated: string;
    let known: RE2JS;
    try {
      translated = postgresRegex(pattern, false);
      known = RE2JS.compile(pattern, RE2JS.DOTALL);
    } catch (error) {
      // Refused by name; everything else would be a fault of the translation.
      if (error instanceof SourceError) continue;
      throw error;
    }
    tried++;
    const rows = await database
      .query({
        text: 'select t ~ $1 from unnest($2::text[]) with ordinality as u(t, n) order by n',
        values: [translated, TEXTS],
      })
      .catch((error: Error) => error);
    const expected = TEXTS.map((text) => known.matcher(text).find());
    const got = rows instanceof Error ? rows.message : rows.map((row) => row[0]);
    if (JSON.stringify(got) !== JSON.stringify(expected))
      wrong.push(`${pattern} → ${translated}: ${JSON.stringify(got)}`);
  }
  return { wrong, tried };
}

test('patterns of every kind', async () => {
  const { wrong, tried } = await differences(PATTERNS);
  expect(wrong).toEqual([]);
  expect(tried).toBeGreaterThan(60);
});

test('generated patterns', async () => {
  const piece = fc.constantFrom(
    'a',
    'b',
    '.',
    '\\d',
    '[a-c]',
    '[^x]',
    '(a|b)',
    '(?:c)',
    '\\w',
    'é',
    '\\.',
    '-',
    ' ',
    '^',
    '$',
    '\\b',
    '[[:digit:]]',
    '_',
  );
  const repeated = fc
    .tuple(piece, fc.constantFrom('', '', '', '*', '+', '?', '{1,2}', '*?'))
    .map((parts) => parts.join(''));
  const patterns = fc.sample(
    fc
      .array(fc.oneof(repeated, fc.constant('|')), { minLength: 1, maxLength: 6 })
      .map((parts) => parts.join('')),
    { seed: 20_261_121, numRuns: 1_500 },
  );
  const { wrong, tried } = await differences([...new Set(patterns)]);
  expect(wrong).toEqual([]);
  expect(tried).toBeGreaterThan(500);
});
