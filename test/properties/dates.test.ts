import { describe, expect, test } from '@jest/globals';
import { build } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { evaluate } from '../../hog/vm/index.ts';
import { parseDate, parseRelativeDate, prepareMatcher, readFilters } from '../../properties/index.ts';

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
  ['2026-03-29 02:30:00', 'Europe/Berlin'],
  ['2026-10-25 02:30:00', 'Europe/Berlin'],
  ['2026-11-01 01:30:00', 'America/New_York'],
  ['2026-04-05 01:45:00', 'Australia/Lord_Howe'],
  ['2026-02-15 02:30:00', 'Africa/Casablanca'],
])('%s in %s is the same instant to Hog, whenever it is asked', (text, zone) => {
  const code = compileBytecode(build.call('toUnixTimestamp', build.constant(text), build.constant(zone)));
  expect(evaluate(code)).toBe((parseDate(text, zone) as number) / 1000);
});

describe('flags', () => {
  const matches = (
    document: unknown,
    properties: Record<string, unknown>,
    moment = at('2026-03-15T12:00:00Z'),
  ) => prepareMatcher(readFilters(document), 'flag')((filter) => properties[filter.key], moment);

  test.each([
    [{ operator: 'starts_with', value: 'Ab' }, 'abc', true],
    [{ operator: 'starts_with', value: ['x', 'ab'] }, 'ABC', true],
    [{ operator: 'not_starts_with', value: 'ab' }, 'abc', false],
    [{ operator: 'not_starts_with', value: 'ab' }, undefined, true],
    [{ operator: 'ends_with', value: 'BC' }, 'abc', true],
    [{ operator: 'not_ends_with', value: 'x' }, 'abc', true],
    [{ operator: 'is_date_before', value: '-7d' }, 1_700_000_000, true],
    [{ operator: 'is_date_before', value: '2026-01-01' }, '1700000000', true],
    [{ operator: 'is_date_after', value: '-7d' }, '-1d', true],
    [{ operator: 'exact', value: 'abc' }, 'ABC', true],
    [{ operator: 'exact', value: 'TRUE' }, true, true],
    [{ operator: 'exact', value: [] }, true, true],
    [{ operator: 'exact', value: [] }, 'x', false],
    [{ operator: 'is_not', value: 'x' }, undefined, true],
    [{ operator: 'is_set' }, null, true],
    [{ operator: 'semver_eq', value: 'v1.2' }, '1.2.0', true],
    [{ operator: 'semver_lt', value: '1.2.0' }, '1.2.0-beta.2', true],
    [{ operator: 'semver_gt', value: '1.2.0-beta.2' }, '1.2.0-beta.11', true],
    [{ operator: 'semver_neq', value: '1.2.0' }, 'x', false],
    [{ operator: 'not_regex', value: '(' }, 'x', false],
    [{ operator: 'gt', value: '5' }, '5.5', true],
    [{ operator: 'gt', value: 5 }, true, false],
    [{ operator: 'in', value: 4 }, true, true],
    [{ operator: 'not_in', value: 4 }, true, false],
    [{ operator: 'flag_evaluates_to', value: true }, 'variant', true],
    [{ operator: 'flag_evaluates_to', value: false }, false, true],
    [{ operator: 'flag_evaluates_to', value: 'a' }, 'b', false],
  ])('%j of %j', (filter, property, expected) => {
    expect(matches([{ key: 'k', ...filter }], property === undefined ? {} : { k: property })).toBe(expected);
  });

  test('what is nested beyond all measure matches nothing', () => {
    const deep = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`) as unknown;
    const long = 'a'.repeat(5_000_000);
    for (const operator of ['exact', 'icontains', 'regex', 'gt', 'semver_eq', 'is_date_before']) {
      const value = operator === 'is_date_before' ? '-1d' : '1.2.3';
      const document = [{ key: 'k', operator, value }];
      expect(matches(document, { k: deep })).toBe(false);
      const asFilter = prepareMatcher(readFilters(document), 'filter');
      expect(asFilter(() => deep, at('2026-03-15T12:00:00Z'))).toBe(false);
      expect(asFilter(() => long, at('2026-03-15T12:00:00Z'))).toBe(operator === 'gt');
    }
  });

  test('negation inverts after errors became false; groups nest', () => {
    const condition = { key: 'k', operator: 'gt', value: 5, negation: true };
    expect(matches([condition], { k: 'no number' })).toBe(true);
    const either = {
      type: 'OR',
      values: [
        { key: 'a', value: 'x' },
        { type: 'AND', values: [condition] },
      ],
    };
    expect(matches(either, { a: 'y', k: 1 })).toBe(true);
    expect(matches(either, { a: 'y', k: 9 })).toBe(false);
    expect(matches({ type: 'OR', values: [] }, {})).toBe(true);
  });
});
