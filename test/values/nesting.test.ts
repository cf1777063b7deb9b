import { expect, test } from '@jest/globals';
import { endOfText, exceeds } from '../../values/nesting.ts';

test.each([
  ['[]', 1, false],
  ['[[]]', 1, true],
  ['[[]]', 2, false],
  ['[[], [], {"a": []}]', 2, true],
  ['[[], [], {"a": 1}]', 2, false],
  ['["[[[["]', 1, false],
  ['["\\\\", [[]]]', 2, true],
  ['["\\"[[["]', 1, false],
  ['[[[[[[', 3, true],
  [']]]][[', 1, false],
  [`${'['.repeat(1_000_000)}`, 200, true],
])('JSON that begins with %j nests deeper than %i: %p', (json, most, expected) => {
  expect(exceeds(json, { depth: most })).toBe(expected);
});

test.each([
  ['[1, 2, 3]', 3, false],
  ['[1, 2, 3]', 2, true],
  ['["1, 2, 3", "[,]"]', 2, false],
  ['[{}, {}, {}]', 5, true],
  ['[{}, {}, {}]', 6, false],
  [`[${'{},'.repeat(300_000)}{}]`, 100_000, true],
])('JSON that begins with %j has more than %i values: %p', (json, values, expected) => {
  expect(exceeds(json, { depth: 10, values })).toBe(expected);
});

test('a text of JSON ends at the first quotation mark that is not escaped', () => {
  const long = 'x'.repeat(200);
  const texts = [
    '',
    'a',
    '\\',
    '\\\\',
    '"',
    '\\"',
    '"""',
    `"${long}"`,
    `${long}\\"${long}\\`,
    `${'"'.repeat(63)}\\`,
  ];
  for (const text of texts.map((one) => JSON.stringify(one))) {
    expect([text, endOfText(`${text}, "b"`, 1)]).toEqual([text, text.length - 1]);
    expect([text, endOfText(text.slice(0, -1), 1)]).toEqual([text, text.length - 1]);
  }
});
