import type { IntervalLength } from '../../intervals/index.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface RunLimits {
  /** How long one attempt at a run may take, in milliseconds. */
  attempt: number;
  /** Among how many of the runs that ended last failures are counted. */
  window: number;
}

export const RUN_LIMITS: Readonly<Record<IntervalLength, RunLimits>> = {
  'every 5 minutes': { attempt: 20 * MINUTE, window: 12 },
  'every 15 minutes': { attempt: 20 * MINUTE, window: 4 },
  hour: { attempt: 6 * HOUR, window: 24 },
  day: { attempt: DAY, window: 7 },
  week: { attempt: 3 * DAY, window: 4 },
};

/** Everything since the beginning may be any amount. */
export const LONGEST_ATTEMPT = 3 * DAY;
