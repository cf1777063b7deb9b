import { describe, expect, test } from '@jest/globals';
import { instantText, parseDate, parseRelativeDate } from '../../values/dates.ts';

const at = (now: string, timezone = 'UTC') => ({ now: Date.parse(now), timezone });
const iso = (instant: number | null) => (instant === null ? null : new Date(instant).toISOString());

describe('relative dates', () => {
  test.each([
    ['-1h', '2026-03-31T11:00:00.000Z'],
    ['-7d', '2026-03-24T12:00:00.000Z'],
    ['7d', '2026-03-24T12:00:00.000Z'],
    ['-2w', '2026-03-17T12:00:00.000Z'],
    ['-1m', '2026-02-28T12:00:00.000Z'],
    ['-13m', '2025-02-28T12:00:00.000Z'],
    ['-1q', '2025-12-31T12:00:00.000Z'],
    ['-1y', '2025-03-31T12:00:00.000Z'],
    ['-9999h', '2025-02-07T21:00:00.000Z'],
  ])('%s', (text, expected) => {
    expect(iso(parseRelativeDate(text, at('2026-03-31T12:00:00Z')))).toBe(expected);
  });

  test.each(['', '-', 'd', '-7', '-10000d', '-7x', '--7d', '-7d ', '-1.5d', '2026-01-01'])(
    '%j is none',
    (text) => {
      expect(parseRelativeDate(text, at('2026-03-31T12:00:00Z'))).toBeNull();
    },
  );

  test('months keep the wall clock of the zone, over a change of the clocks', () => {
    const moment = at('2026-04-15T10:00:00Z', 'Europe/Berlin');
    expect(iso(parseRelativeDate('-1m', moment))).toBe('2026-03-15T11:00:00.000Z');
    expect(iso(parseRelativeDate('-30d', moment))).toBe('2026-03-16T10:00:00.000Z');
  });
});

describe('dates', () => {
  test.each([
    ['2026-03-15', 'UTC', '2026-03-15T00:00:00.000Z'],
    ['2026-03-15', 'Europe/Berlin', '2026-03-14T23:00:00.000Z'],
    ['2026-07-15 12:00', 'America/New_York', '2026-07-15T16:00:00.000Z'],
    ['2026-07-15T12:00:30Z', 'America/New_York', '2026-07-15T12:00:30.000Z'],
    ['2026-07-15t12:00:30.123456+0530', 'UTC', '2026-07-15T06:30:30.123Z'],
    ['2026-07-15 12:00:30,5-03', 'UTC', '2026-07-15T15:00:30.500Z'],
    [' 2026-03-15 ', 'UTC', '2026-03-15T00:00:00.000Z'],
    // The clocks skip 02:30 here, …
    ['2026-03-29 02:30:00', 'Europe/Berlin', '2026-03-29T01:30:00.000Z'],
    // … and show it twice here.
    ['2026-10-25 02:30:00', 'Europe/Berlin', '2026-10-25T01:30:00.000Z'],
    ['2026-11-01 01:30:00', 'America/New_York', '2026-11-01T06:30:00.000Z'],
    ['2026-04-05 01:45:00', 'Australia/Lord_Howe', '2026-04-04T15:15:00.000Z'],
  ])('%s in %s', (text, zone, expected) => {
    expect(iso(parseDate(text, zone))).toBe(expected);
  });

  test.each([
    '',
    'x',
    '2026',
    '2026-02-30',
    '2026-13-01',
    '0000-01-01',
    '2026-01-01T24:00',
    '2026-01-01 1:00',
    '20260101',
  ])('%j is none', (text) => {
    expect(parseDate(text, 'UTC')).toBeNull();
  });
});

test.each([
  [Date.UTC(2026, 2, 15), '2026-03-15T00:00:00Z'],
  [Date.UTC(2026, 2, 15, 1, 2, 3, 40), '2026-03-15T01:02:03.040Z'],
  ['2026-03-15T01:00:00+01:00', '2026-03-15T00:00:00Z'],
])('%j is written %s', (instant, text) => {
  expect(instantText(instant)).toBe(text);
});
