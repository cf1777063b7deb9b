import { describe, expect, test } from '@jest/globals';
import {
  findCondition,
  percentageIn,
  percentageOf,
  stepAt,
  timeOfStep,
  withoutPercentage,
} from '../../flags/rules/rollouts.ts';
import { changeOfPayload } from '../../flags/rules/scheduled-changes.ts';

const plan = { from: 0, to: 100, steps: 4, startsAt: 1_000, endsAt: 2_000 };

describe('the steps of a rollout', () => {
  test.each([
    [999, -1],
    [1_000, 0],
    [1_249, 0],
    [1_250, 1],
    [1_999, 3],
    [2_000, 4],
    [9_000, 4],
  ])('at %d, step %d is the last one that is due', (now, step) => {
    expect(stepAt(plan, now)).toBe(step);
  });

  test('a step is due at its time and not before, for spans that do not divide', () => {
    for (const steps of [1, 3, 7, 13, 333, 1_000]) {
      const odd = { ...plan, steps, startsAt: 1_790_000_000_123, endsAt: 1_790_000_987_654 };
      for (let step = 0; step <= steps; step += 1) {
        const at = timeOfStep(odd, step);
        expect([stepAt(odd, at), stepAt(odd, at - 1)]).toEqual([step, step - 1]);
      }
    }
  });

  test.each([
    [{ ...plan, from: 10, to: 50 }, [10, 20, 30, 40, 50]],
    [{ ...plan, from: 50, to: 10 }, [50, 40, 30, 20, 10]],
    [{ ...plan, steps: 3 }, [0, 33.33, 66.67, 100]],
    [{ ...plan, steps: 1, to: 33.333 }, [0, 33.333]],
  ])('the percentages go from one to the other', (given, percentages) => {
    expect(percentages.map((_, step) => percentageOf(given, step))).toEqual(percentages);
  });
});

describe('the condition set of a rollout', () => {
  const mine = { properties: [{ key: 'a' }], variant: null, rollout_percentage: 5 };
  const other = { properties: [], rollout_percentage: 5 };
  const rest = withoutPercentage(mine);

  test('is found where it was, where it was moved to, and with another percentage', () => {
    expect(findCondition([other, mine], 1, rest)).toBe(1);
    expect(findCondition([mine, other], 1, rest)).toBe(0);
    expect(findCondition([other, { ...mine, rollout_percentage: null }], 1, rest)).toBe(1);
    expect(findCondition([mine, mine], 1, rest)).toBe(1);
  });

  test('is not found after it was changed or removed', () => {
    expect(findCondition([other, { ...mine, variant: 'a' }], 1, rest)).toBeUndefined();
    expect(findCondition([], 0, rest)).toBeUndefined();
  });

  test('without a percentage it is for everybody', () => {
    expect([percentageIn({}), percentageIn({ rollout_percentage: null }), percentageIn(mine)]).toEqual([
      ...[100, 100, 5],
    ]);
  });
});

describe('what a scheduled change sets', () => {
  const filters = { groups: [{ properties: [] }], payloads: { true: '1' } };
  test.each([
    ['update_status', false, { active: false }],
    ['update_status', 'no', undefined],
    [
      'add_release_condition',
      { groups: [{ a: 1 }] },
      { filters: { groups: [{ properties: [] }, { a: 1 }] } },
    ],
    ['add_release_condition', { groups: [] }, undefined],
    ['add_release_condition', null, undefined],
    ['update_variants', { variants: [] }, { filters: { multivariate: { variants: [] }, payloads: {} } }],
    [
      'update_variants',
      { variants: [1], payloads: { a: '2' } },
      { filters: { multivariate: { variants: [1] }, payloads: { a: '2' } } },
    ],
    ['update_variants', [1], undefined],
  ] as const)('%s with %j', (operation, value, change) => {
    expect(changeOfPayload({ operation, value }, filters)).toEqual(change);
  });
});
