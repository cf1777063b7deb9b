/** The kinds of advisory locks of batch exports; see `db/locks.ts`. Numbers are never changed and never used again. */
export const LOCK_KINDS = {
  /** Locks a store, so that two exports that write to it are not saved at once. */
  exportStore: 716_394_501,
  /** Locks the backfills of a project, so that two are not counted and begun at once. */
  backfills: 716_394_502,
} as const;
