import { expect, test } from '@jest/globals';
import { exceeds } from '../../values/nesting.ts';

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
