/** The kinds of advisory locks of batch exports; see `db/locks.ts`. Numbers are never changed and never used again. */
export const LOCK_KINDS = {
  /** Locks a store, so that two exports that write to it are not saved at once. */
  exportStore: 716_394_501,
  /** Locks the backfills of a project, so that two are not counted and begun at once. */
  backfills: 716_394_502,
  /** Locks the places of a lane, so that one process at a time says who gets the next one. */
  places: 716_394_503,
} as const;
