/** Whether a function runs, as the API shows it. */
export interface Status {
  state: number;
  rating: number;
  tokens: number;
}

/** The tokens of a function that has cost nothing lately. */
export const FULL_BUCKET = 10_000;
const UNKNOWN = 0;
const HEALTHY = 1;

/** A function that is not enabled has no state. `tokens` is what its runs have left of the bucket. */
export const statusOf = ({ enabled }: { enabled: boolean }, tokens = FULL_BUCKET): Status =>
  enabled
    ? { state: HEALTHY, rating: tokens / FULL_BUCKET, tokens }
    : { state: UNKNOWN, rating: 0, tokens: 0 };
