import { expect, test } from '@jest/globals';
import { nestsDeeper } from '../../values/nesting.ts';

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
  expect(nestsDeeper(json, most)).toBe(expected);
});
