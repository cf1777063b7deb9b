import { beforeEach, expect, test } from '@jest/globals';
import { Pace } from '../../functions/delivery/pace.ts';

// Whether functions with much to do have to rest, by how busy the thread is and what others do.
let now: number;
let busy: number;
let pace: Pace;
beforeEach(() => {
  [now, busy] = [1_000, 100];
  pace = new Pace({ now: () => now, busy: () => busy });
});

/** A hundred milliseconds pass, in so many of which the thread is busy. */
function passes(milliseconds: number): boolean {
  now += 100;
  busy += milliseconds;
  return pace.mustRest;
}

test('a thread that is busy does not matter as long as nobody else has anything to do', () => {
  expect(passes(100)).toBe(false);
});

test('beside a function with little to do they rest while the thread is busy for more than 60 % of its time', () => {
  pace.little();
  expect(passes(60)).toBe(false);
  expect(passes(61)).toBe(true);
  expect(passes(10)).toBe(false);
});

test('what is asked soon after a measurement has the same answer', () => {
  pace.little();
  expect(passes(100)).toBe(true);
  now += 49;
  expect(pace.mustRest).toBe(true);
  now += 1;
  expect(pace.mustRest).toBe(false);
});

test('they rest until five seconds after the last invocation of such a function', () => {
  pace.little();
  for (let at = 0; at < 49; at += 1) expect(passes(100)).toBe(true);
  expect(passes(100)).toBe(false);
  pace.little();
  expect(passes(100)).toBe(true);
});
