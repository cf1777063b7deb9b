/** The kinds of advisory locks of actions; see `db/locks.ts`. Numbers are never changed and never used again. */
export const LOCK_KINDS = {
  /** Locks the names of the actions of a project, so that two with the same name are not saved at once. */
  actionNames: 716_394_511,
} as const;
