import type { IntervalLength } from '../../intervals/index.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface RunLimits {
  /** How long one attempt at a run may take, in milliseconds. */
  attempt: number;
  /** Among how many of the runs that ended last failures are counted. */
  window: number;
}

export const RUN_LIMITS: Readonly<Record<IntervalLength, RunLimits>> = {
  // Much longer than the interval: one that has more rows than usual would be begun again and again, and never end.
  'every 5 minutes': { attempt: 2 * HOUR, window: 12 },
  'every 15 minutes': { attempt: 2 * HOUR, window: 4 },
  hour: { attempt: 6 * HOUR, window: 24 },
  day: { attempt: DAY, window: 7 },
  week: { attempt: 3 * DAY, window: 4 },
};

/** Everything since the beginning may be any amount. */
export const LONGEST_ATTEMPT = 3 * DAY;
