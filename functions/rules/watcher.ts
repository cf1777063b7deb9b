/** The states of a function that is enabled. */
export const STATE = { healthy: 1, degraded: 2, disabled: 3, disabledForGood: 4 } as const;

/** The tokens of a function whose runs have cost nothing lately, and how many come back in a second. */
export const FULL_BUCKET = 10_000;
export const REFILL = 10;
/** With less of the bucket a function is degraded: it comes after the others. */
export const HEALTHY_FROM = 0.8 * FULL_BUCKET;
/** How long a function is disabled, in seconds. The third time within a day, it is disabled for good. */
export const DISABLED_SECONDS = 600;
export const MOST_DISABLED = 3;

const cost = (most: number, milliseconds: number, free: number, range: number) =>
  Math.round((most * Math.max(milliseconds - free, 0)) / range);

/** What a run costs: for the time of its program, and for the time of each of its requests, in milliseconds. */
export const costOf = (program: number, requests: readonly number[]): number =>
  cost(100, program, 50, 500) + requests.reduce((sum, one) => sum + cost(20, one, 100, 4_900), 0);
