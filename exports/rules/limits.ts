import type { IntervalLength } from '../../intervals/index.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface RunLimits {
  /** How long one attempt at a run may take, in milliseconds. */
  attempt: number;
  /** How many of the runs that ended last count for the automatic pause. */
  window: number;
}

/** The limits of runs, by the length of their interval. */
export const RUN_LIMITS: Readonly<Record<IntervalLength, RunLimits>> = {
  // Much longer than the interval. Otherwise a run with more rows than usual would start over and over and never end.
  'every 5 minutes': { attempt: 2 * HOUR, window: 12 },
  'every 15 minutes': { attempt: 2 * HOUR, window: 4 },
  hour: { attempt: 6 * HOUR, window: 24 },
  day: { attempt: DAY, window: 7 },
  week: { attempt: 3 * DAY, window: 4 },
};

/** How long an attempt may take that exports everything up to an instant, in milliseconds. It may have any size. */
export const LONGEST_ATTEMPT = 3 * DAY;
