/** The states of a function that is enabled. */
export const STATE = { healthy: 1, degraded: 2, disabled: 3, disabledForGood: 4 } as const;

/** The rule by which functions are degraded and disabled. */
export const WATCHER = {
  state: STATE,
  /** The tokens of a function whose runs have cost nothing lately, and how many come back in a second. */
  bucket: 10_000,
  refill: 10,
  /** With fewer tokens a function is degraded: it comes after the others. */
  healthyFrom: 8_000,
  /** What a function has when somebody has saved it that was disabled. */
  onProbation: 4_000,
  /** How long a function is disabled. So many times within a day, and it is disabled for good. */
  disabledSeconds: 600,
  mostDisabled: 3,
} as const;

const cost = (most: number, milliseconds: number, free: number, range: number) =>
  Math.round((most * Math.max(milliseconds - free, 0)) / range);

/** What a run costs: for the time of its program, and for the time of each of its requests, in milliseconds. */
export const costOf = (program: number, requests: readonly number[]): number =>
  cost(100, program, 50, 500) + requests.reduce((sum, one) => sum + cost(20, one, 100, 4_900), 0);
