import { expect, test } from '@jest/globals';
import { retryAfter } from '../../values/retry-after.ts';

const NOW = Date.parse('2026-01-31T12:00:00Z');

test.each([
  ['120', 120_000],
  [' 5 ', 5_000],
  ['Sat, 31 Jan 2026 12:00:30 GMT', 30_000],
  ['Sat, 31 Jan 2026 12:00:00 GMT', undefined],
  ['Sat, 31 Jan 2026 11:00:00 GMT', undefined],
  ['0', undefined],
  ['9'.repeat(400), undefined],
  ['-5', undefined],
  ['soon', undefined],
  ['', undefined],
  [undefined, undefined],
])('Retry-After %j: %p', (value, milliseconds) => {
  expect(retryAfter(value, NOW)).toBe(milliseconds);
});
