import { expect, test } from '@jest/globals';
import { Masking, type MaskingRule } from '../../../functions/rules/masking.ts';

const passed = (rule: MaskingRule, events: [key: string, seconds: number, invocations?: number][]) => {
  const masking = new Masking(rule);
  return events.map(([key, seconds, invocations = 1]) =>
    masking.pass({ key, time: seconds * 1_000, invocations }),
  );
};

test('the first of each key in a window goes through', () => {
  const events: [string, number][] = [
    ['a', 0],
    ['a', 59],
    ['b', 59],
    ['a', 60],
    ['a', 119],
    ['a', 120],
  ];
  expect(passed({ ttl: 60 }, events)).toEqual([1, 0, 1, 1, 0, 1]);
});

test('events in a window do not make it longer', () => {
  expect(
    passed({ ttl: 60 }, [
      ['a', 0],
      ['a', 50],
      ['a', 70],
    ]),
  ).toEqual([1, 0, 1]);
});

test('with a threshold, the first of every so many goes through', () => {
  const events = Array.from({ length: 8 }, (_, n): [string, number] => ['a', n]);
  expect(passed({ ttl: 60, threshold: 3 }, events)).toEqual([1, 0, 0, 1, 0, 0, 1, 0]);
  expect(passed({ ttl: 2, threshold: 3 }, events)).toEqual([1, 0, 1, 0, 1, 0, 1, 0]);
  expect(passed({ ttl: 60, threshold: 1 }, events)).toEqual(events.map(() => 1));
});

test('several invocations of an event count one by one', () => {
  expect(
    passed({ ttl: 60, threshold: 2 }, [
      ['a', 0, 3],
      ['a', 1, 3],
    ]),
  ).toEqual([2, 1]);
  expect(passed({ ttl: 60, threshold: null }, [['a', 0, 3]])).toEqual([1]);
});
