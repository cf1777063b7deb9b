// The sizes of patterns, and what too large ones are refused with, everywhere that compiles patterns.
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { PATTERN_LIMITS, patternSize } from '../../../hog/patterns/index.ts';
import { regexMatch } from '../../../hog/runtime/regex.ts';
import { postgresRegex } from '../../../hog/sql/regex.ts';
import { readFilters, readFunctionFilters } from '../../../properties/index.ts';
import { rounds } from '../../support/rounds.ts';

describe('the size of a pattern', () => {
  test.each<[pattern: string, size: number]>([
    ['', 0],
    ['abc', 3],
    ['a|b', 3],
    ['(abc)', 4],
    ['(?:abc)', 4],
    ['(?P<name>abc)', 4],
    ['a+', 1],
    ['a*', 9],
    ['a?', 9],
    ['a{5}', 5],
    ['a{2,7}', 7],
    ['a{3,}', 4],
    ['a{0,7}', 15],
    ['ab{5}c', 7],
    ['(ab){5}', 15],
    ['((a{10}){10}){10}', 1_110],
    ['.{999}', 999],
    ['.{999}.{999}', 1_998],
    ['\\.{9}', 9],
    ['\\x{41}{9}', 9],
    ['\\Qa{9}\\E', 4],
    ['a{x}', 4],
    ['a\\{9}', 4],
    ['[a-z]', 1],
    ['[]a]{9}', 9],
    ['[[:alpha:]]{9}', 18],
    ['[\\]]{9}', 9],
    ['[abcdefghijklmnopqrstuvwxyz]', 3],
    ['\\b', 50],
    ['\\W', 1],
    ['(?i)\\W', 62],
    ['(?i)[^a]', 62],
    ['ab{5}(?i){20}c', 103],
    ['(?i)(?:a)', 3],
    // What is not valid is measured all the same.
    [')(', 1],
    ['[a', 1],
    ['(((a', 4],
    ['a)b{9}', 10],
    ['\\', 1],
  ])('%s: %d', (pattern, size) => {
    expect(patternSize(pattern)).toBe(size);
  });

  test('an operator that ignores case makes classes of most characters larger', () => {
    expect(patternSize('\\W', { insensitive: true })).toBe(61);
  });

  test('is never much less than what RE2 compiles', () => {
    const piece = fc.oneof(
      fc.constantFrom('a', '.', '\\d', '\\W', '[a-z]', '[^x]', '\\b', '^', '|', 'é', '\\.', '[[:digit:]]'),
      fc.constantFrom('(', '(?:', ')', ')', '(?i)', '\\Qa.b\\E'),
      fc.constantFrom('*', '+', '?', '{3}', '{2,5}', '{0,4}', '{20}', '{7,}', '*?', '{3}?'),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const pattern = pieces.join('');
        const size = patternSize(pattern);
        if (size > PATTERN_LIMITS.size) return;
        let states: number;
        try {
          states = RE2JS.compile(pattern).programSize();
        } catch {
          return;
        }
        expect(states).toBeLessThanOrEqual(4 * size + 8);
      }),
      { numRuns: rounds(2_000, 50_000) },
    );
  });

  test('is found by one look at each character', () => {
    for (const pattern of [
      '('.repeat(1e5),
      '[['.repeat(1e5),
      'a{9}'.repeat(1e5),
      '\\Q'.repeat(1e5),
      '(?'.repeat(1e5),
    ]) {
      expect(patternSize(pattern)).toBeGreaterThanOrEqual(1);
    }
    expect(patternSize('(a{999}'.repeat(200) + '){999}'.repeat(200))).toBe(Number.POSITIVE_INFINITY);
  });
});

const HUGE = '.{999}'.repeat(200);

describe('what is too large is refused before it is compiled', () => {
  const condition = (value: unknown) => ({ key: 'k', operator: 'regex', value });

  test.each<[what: string, run: () => unknown, message: RegExp]>([
    ['one filter', () => readFilters([condition('a'), condition(HUGE)]), /size of at most 10,000.*199,800/],
    ['a list of one filter', () => readFilters([condition(['a', HUGE])]), /size of at most 10,000/],
    ['many characters', () => readFilters([condition('a'.repeat(10_001))]), /at most 10,000 characters/],
    [
      'many filters together',
      () => readFilters(Array.from({ length: 60 }, () => condition('.{999}'))),
      /together.*at most 20,000.*20,979/,
    ],
    [
      'many entries together',
      () =>
        readFunctionFilters({
          events: Array.from({ length: 30 }, (_, id) => ({
            id: `e${id}`,
            properties: [condition('.{999}')],
          })),
        }),
      /together.*at most 20,000/,
    ],
    ['a pattern in Hog', () => regexMatch(HUGE, 'x'), /size of at most 10,000/],
    ['a pattern for Postgres', () => postgresRegex('(?:a?){255}', false), /size of at most 2,000/],
  ])('%s', (_what, run, message) => {
    expect(run).toThrow(message);
  });

  test('the error names the filter', () => {
    const path = (run: () => unknown) => {
      try {
        run();
      } catch (error) {
        return (error as { path?: string }).path;
      }
      return undefined;
    };
    expect(path(() => readFilters([condition('a'), condition(HUGE)]))).toBe('1.value');
    expect(path(() => readFilters([condition(['a', HUGE])]))).toBe('0.value.1');
    expect(path(() => readFilters(Array.from({ length: 60 }, () => condition('.{999}'))))).toBe('20.value');
  });

  test('patterns as people write them are allowed, many of them too', () => {
    const written = [
      '^https?://(www\\.)?example\\.com/(shop|blog)/[^/?#]+/?$',
      '^[a-f0-9]{8}-[a-f0-9]{4}-[1-5][a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}$',
      '(?i)\\b(bot|crawler|spider|preview)\\b',
      '^[^@\\s]{1,64}@(example|test)\\.(com|org)$',
      '^.{1,255}$',
      '^(\\d{1,3}\\.){3}\\d{1,3}$',
    ];
    const many = Array.from({ length: 50 }, (_, index) => condition(written[index % written.length]));
    expect(readFilters(many).values).toHaveLength(50);
    for (const pattern of written) expect(postgresRegex(pattern, false)).toContain('***:');
  });
});
