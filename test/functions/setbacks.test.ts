import { expect, test } from '@jest/globals';
import { Setbacks } from '../../functions/delivery/setbacks.ts';

/** Waits are up to a tenth longer, so that not all invocations come back at the same moment. */
const between = (milliseconds: number, least: number) => milliseconds >= least && milliseconds <= least * 1.1;

test('what cannot be had is tried after 5 seconds, then after twice as long each time, up to 5 minutes', () => {
  const setbacks = new Setbacks();
  const expected = [5, 10, 20, 40, 80, 160, 300, 300];
  for (const [index, least] of expected.entries()) {
    setbacks.add('one');
    expect(setbacks.of('one').times).toBe(index + 1);
    expect(between(setbacks.of('one').after, least * 1_000)).toBe(true);
  }
  for (let at = 0; at < 2_000; at += 1) setbacks.add('one');
  expect(between(setbacks.of('one').after, 300_000)).toBe(true);
});

test('each has its own count, which begins anew when it was had', () => {
  const setbacks = new Setbacks();
  for (let at = 0; at < 4; at += 1) setbacks.add('one');
  setbacks.add('two');
  expect(between(setbacks.of('two').after, 5_000)).toBe(true);
  setbacks.clear('one');
  setbacks.add('one');
  expect(between(setbacks.of('one').after, 5_000)).toBe(true);
  expect(between(setbacks.of('unknown').after, 5_000)).toBe(true);
});
