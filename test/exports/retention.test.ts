import { expect, test } from '@jest/globals';
import { isExpired } from '../../exports/runs/source.ts';

const now = Date.parse('2026-03-31T12:00:00Z');

// Events go in whole weeks, from Monday: with 30 days, the week of the 16th of February is the last that is gone.
test.each<['events' | 'persons' | 'sessions', string | null, number | undefined, boolean]>([
  ['events', '2026-02-22T23:00:00Z', 30, true],
  ['events', '2026-02-23T00:00:00Z', 30, false],
  ['sessions', '2026-02-22T23:00:00Z', 30, true],
  ['persons', '2026-02-22T23:00:00Z', 30, false],
  ['events', null, 30, true],
  ['events', null, undefined, false],
  ['events', '2020-01-01T00:00:00Z', undefined, false],
])('%s from %s on, kept for %s days: %s', (model, start, days, expected) => {
  expect(isExpired({ model }, { start, end: '2026-03-31T00:00:00Z' }, days, now)).toBe(expected);
});
