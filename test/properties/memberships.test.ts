// Who is in a cohort, case by case. That flags, queries, counts and exports agree about it is tested in test/cohorts.
import { describe, expect, test } from '@jest/globals';
import { Cohorts } from '../../properties/memberships.ts';

const moment = { now: Date.parse('2026-03-02T10:00:00Z'), timezone: 'UTC' };
const person = (properties: Record<string, unknown>, listed: readonly number[] = []) => ({
  property: (name: string) => properties[name],
  inStatic: (id: number) => listed.includes(id),
});
const all = (...values: unknown[]) => ({ type: 'AND', values });
const any = (...values: unknown[]) => ({ type: 'OR', values });
const above = (value: string, more: object = {}) => ({
  ...{ key: 'age', type: 'person', operator: 'gt', value },
  ...more,
});
const of = (value: number, more: object = {}) => ({ key: 'id', type: 'cohort', value, ...more });
const not = { negation: true };

/** Cohort 1 has adults, cohort 2 is static, and cohort 3 has the tree. */
const decide = (tree: unknown, member: ReturnType<typeof person>) =>
  new Cohorts([
    { id: 1, isStatic: false, filters: { properties: any(all(above('17'))) } },
    { id: 2, isStatic: true, filters: {} },
    { id: 3, isStatic: false, filters: { properties: tree } },
  ]).decide(3, member, moment);

const adult = person({ age: 30 });
const child = person({ age: 7 }, [2]);
const nobody = person({});

describe('a cohort', () => {
  test.each([
    ['one of several groups', any(all(above('65')), all(above('17'))), [true, false, false]],
    ['all conditions of a group', any(all(above('17'), above('40'))), [false, false, false]],
    ['a negation, also of what a person does not have', any(all(above('17', not))), [false, true, true]],
    ['another cohort', any(all(of(1))), [true, false, false]],
    ['not another cohort', all(all(of(1, { operator: 'not_in' }))), [false, true, true]],
    ['a static cohort', any(all(of(2))), [false, true, false]],
    ['the negation of a cohort', all(all(of(1, not))), [false, true, true]],
    [
      'the negation of a cohort among alternatives, which does not count',
      all(any(of(1, not))),
      [true, false, false],
    ],
    ['not another cohort among alternatives', all(any(of(1, { operator: 'not_in' }))), [false, true, true]],
    ['no conditions', any(all()), [false, false, false]],
    [
      'a condition that nobody can read',
      any(all({ key: 'age', operator: 'near', value: 1 })),
      [false, false, false],
    ],
  ])('of %s', (_, tree, expected) => {
    expect([adult, child, nobody].map((one) => decide(tree, one))).toEqual(expected);
  });

  test('that does not exist, or a circle, is a failure and no answer', () => {
    expect(decide(any(all(of(9))), adult)).toBe('dependency_not_found_cohort');
    expect(decide(any(all(of(3))), adult)).toBe('dependency_cycle_cohort');
  });
});
