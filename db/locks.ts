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
  /** Writers of events hold it shared. A process that moves the horizon holds it exclusively. */
  horizon: 7_163_945_024,
  /** One process at a time makes the writers of events wait to move the horizon. */
  closing: 7_163_945_025,
} as const;

/**
 * Advisory locks of which there is one for each of many things: the first of two numbers, the second is a hash of the
 * thing's name.
 */
export const LOCK_KINDS = {
  /** Who saves an export that writes to a store sees all others that do. */
  exportStore: 716_394_501,
  /** Backfills of a project are counted and begun by one at a time. */
  backfills: 716_394_502,
} as const;
