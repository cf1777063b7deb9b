/** The kinds of advisory locks of queries; see `db/locks.ts`. Numbers are never changed and never used again. */
export const LOCK_KINDS = {
  /** Locks how many queries of a project are in the background. */
  backgroundOfProject: 716_394_541,
  /** Locks which query in the background is next. */
  backgroundClaims: 716_394_542,
} as const;
