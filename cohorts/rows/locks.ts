/** The kinds of advisory locks of cohorts; see `db/locks.ts`. Numbers are never changed and never used again. */
export const LOCK_KINDS = {
  /** Locks the cohorts of a project, so that two changes at once do not close a circle of cohorts. */
  cohortsOfProject: 716_394_531,
} as const;
