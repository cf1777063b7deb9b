import { describe, expect, test } from '@jest/globals';
import { build } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { prepareMatcher, readFilters } from '../../properties/index.ts';
import { parseDate } from '../../values/dates.ts';
import { evaluate } from '../hog/support/evaluate.ts';

const at = (now: string, timezone = 'UTC') => ({ now: Date.parse(now), timezone });

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
