/** Kinds of advisory locks; see db/locks.ts. A number is never changed and never given to something else. */
export const LOCK_KINDS = {
  /** For each store: whoever saves an export that writes to it sees all others that do. */
  exportStore: 716_394_501,
  /** For each project: its backfills are counted and begun by one at a time. */
  backfills: 716_394_502,
} as const;
