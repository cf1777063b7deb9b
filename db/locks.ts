/**
 * The advisory locks of an installation. All processes of all versions must agree on them: a number is never changed
 * and never given to something else.
 */
export const LOCKS = {
  /** One process applies migrations. */
  migrate: 7_163_945_021,
  /** One process makes the first organization. */
  bootstrap: 7_163_945_022,
  /** One process makes, fills and drops partitions of events. */
  partitions: 7_163_945_023,
  /** Writers of events hold it shared, who closes the horizon holds it alone. */
  horizon: 7_163_945_024,
} as const;
