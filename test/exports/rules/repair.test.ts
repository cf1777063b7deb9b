import { describe, expect, test } from '@jest/globals';
import type { IntervalEntry } from '../../../exports/rules/interval-states.ts';
import { isToBeRepaired, type Repairs } from '../../../exports/rules/repair.ts';

const now = Date.parse('2026-03-10T12:00:00Z');
const ago = (minutes: number): string => new Date(now - minutes * 60_000).toISOString();
const never: Repairs = { repairs: 0, repaired_at: null };
type Entry = Pick<IntervalEntry, 'state' | 'status'>;

describe('a missing interval is started again', () => {
  test.each<[string, Entry, Repairs, boolean, boolean]>([
    ['it never had a run', { state: 'missing', status: null }, never, false, true],
    ['its workflow was terminated', { state: 'missing', status: 'Terminated' }, never, false, true],
    [
      'it has just been started again',
      { state: 'missing', status: null },
      { repairs: 1, repaired_at: ago(9) },
      false,
      false,
    ],
    [
      'that was some time ago',
      { state: 'missing', status: null },
      { repairs: 1, repaired_at: ago(10) },
      false,
      true,
    ],
    [
      'the third time later',
      { state: 'missing', status: null },
      { repairs: 2, repaired_at: ago(59) },
      false,
      false,
    ],
    ['too often', { state: 'missing', status: null }, { repairs: 5, repaired_at: ago(10_000) }, false, false],
    [
      'its run failed, and nothing has worked since',
      { state: 'missing', status: 'Failed' },
      never,
      false,
      false,
    ],
    [
      'its run failed, and a later one was completed',
      { state: 'missing', status: 'Failed' },
      never,
      true,
      true,
    ],
    [
      'it failed again and again',
      { state: 'missing', status: 'Failed' },
      { repairs: 2, repaired_at: ago(10_000) },
      true,
      false,
    ],
    ['somebody cancelled it', { state: 'missing', status: 'Cancelled' }, never, true, false],
    ['it is only late', { state: 'late', status: null }, never, true, false],
    ['it is done', { state: 'done', status: 'Completed' }, never, true, false],
  ])('%s', (_, entry, repairs, later, expected) => {
    expect(isToBeRepaired(entry, repairs, later, now)).toBe(expected);
  });
});
