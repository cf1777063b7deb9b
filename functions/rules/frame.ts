/** What makes a run repeatable: with the same frame, `now()` and random numbers are the same. */
export interface Frame {
  /** Milliseconds. */
  now: number;
  seed: number;
}
