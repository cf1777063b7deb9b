/** The kinds of advisory locks of flags; see `db/locks.ts`. Numbers are never changed and never used again. */
export const LOCK_KINDS = {
  /** Locks the flags of a project, so that what they say of each other stays true while one is saved. */
  flagsOfProject: 716_394_521,
} as const;
