import { describe, expect, test } from '@jest/globals';
import { MainThreadBudget } from '../../../functions/transform/budget.ts';
import { changedNames } from '../../../functions/transform/changed-names.ts';
import { Waiting } from '../../../functions/transform/waiting.ts';
import { toHog } from '../../../hog/runtime/values.ts';

const changed = (before: Record<string, unknown>, after: Record<string, unknown>) =>
  changedNames(before, toHog(after) as Map<unknown, unknown>);

describe('names of changed properties', () => {
  test.each<[string, Record<string, unknown>, Record<string, unknown>, string[]]>([
    ['nothing', { a: 1, b: { c: [1, null] } }, { b: { c: [1, null] }, a: 1 }, []],
    ['a new one', { a: 1 }, { a: 1, b: null }, ['b']],
    ['one that is gone', { a: 1, b: 2 }, { b: 2 }, ['a']],
    ['another value', { a: 1, b: '1' }, { a: '1', b: '1' }, ['a']],
    ['deep inside', { a: { b: { c: 1 } } }, { a: { b: { c: 2 } } }, ['a']],
    ['a key more inside', { a: { b: 1 } }, { a: { b: 1, c: 1 } }, ['a']],
    ['another order in a list', { a: [1, 2] }, { a: [2, 1] }, ['a']],
    ['a list that was an object', { a: {} }, { a: [] }, ['a']],
    ['an object that was a list', { a: [] }, { a: {} }, ['a']],
    ['null that was an object', { a: {} }, { a: null }, ['a']],
    ['as many others', { a: 1, b: 1 }, { b: 1, c: 1 }, ['c', 'a']],
    ['names of the prototype', {}, { toString: 1 }, ['toString']],
  ])('%s', (_what, before, after, names) => {
    expect(changed(before, after)).toEqual(names);
  });

  test('are at most a hundred', () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`p${index}`, 1]));
    expect(changed({}, many)).toHaveLength(100);
    expect(changed(many, {})).toHaveLength(100);
  });
});

describe('what waits', () => {
  const MIB = 1024 * 1024;
  const enter = (waiting: Waiting, projectId: number, bytes: number) => {
    try {
      return waiting.enter(projectId, bytes);
    } catch (error) {
      return (error as Error).name;
    }
  };

  test('is bounded for each project, by requests and by bytes, and for all', () => {
    const waiting = new Waiting();
    const leaving = Array.from({ length: 20 }, () => waiting.enter(1, 100));
    expect(enter(waiting, 1, 100)).toBe('Refusal');
    expect(enter(waiting, 2, 9 * MIB)).toEqual(expect.any(Function));
    expect(enter(waiting, 2, 1)).toBe('Refusal');
    for (const leave of leaving) leave();
    expect(enter(waiting, 1, 100)).toEqual(expect.any(Function));
    for (let project = 10; project < 14; project += 1) waiting.enter(project, 8 * MIB);
    expect(enter(waiting, 99, 8 * MIB)).toBe('Refusal');
    expect(enter(waiting, 99, 1 * MIB)).toEqual(expect.any(Function));
  });
});

describe('the time of the thread that receives events', () => {
  let now = 0;
  const begun = () => {
    now = 1_000;
    return new MainThreadBudget(() => now);
  };

  test('is divided: a project that has used its part waits, others do not', () => {
    const budget = begun();
    for (let index = 0; index < 210; index += 1) budget.spent(1, 0.98);
    expect([budget.hasTime(1), budget.hasTime(2)]).toEqual([false, true]);
    now += 500;
    expect(budget.hasTime(1)).toBe(true);
  });

  test('ends for all when all together have used theirs', () => {
    const budget = begun();
    for (let project = 1; project <= 30; project += 1) {
      for (let index = 0; index < 10; index += 1) budget.spent(project, 0.9);
    }
    expect(budget.hasTime(99)).toBe(false);
    now += 1_000;
    expect(budget.hasTime(99)).toBe(true);
  });

  test('is not for events that take more than a millisecond on average, for longer and longer', () => {
    const budget = begun();
    const exiles = [1, 2, 3].map(() => {
      for (let index = 0; index < 20; index += 1) budget.spent(1, 1.5);
      const from = now;
      while (!budget.hasTime(1)) now += 100;
      return now - from;
    });
    expect(exiles).toEqual([1_000, 2_000, 4_000]);
    now += 10 * 60_000;
    for (let index = 0; index < 20; index += 1) budget.spent(1, 1.5);
    now += 1_000;
    expect(budget.hasTime(1)).toBe(true);
  });

  test('has turns of twenty milliseconds', async () => {
    const budget = begun();
    budget.spent(1, 19);
    expect(budget.hasTurn).toBe(true);
    budget.spent(2, 2);
    expect(budget.hasTurn).toBe(false);
    await new Promise((resolve) => setImmediate(resolve));
    expect(budget.hasTurn).toBe(true);
  });
});
