import type { Transaction } from '../../db/pool.ts';

/** The kinds of advisory locks of functions; see `db/locks.ts`. Numbers are never changed and never used again. */
export const LOCK_KINDS = {
  /** Locks the order of the functions of a project, and how many of them are enabled. */
  functionOrders: 716_394_504,
  /** Locks how many replays of a project are in progress. */
  functionReplays: 716_394_519,
} as const;

/** Locks the order of a project's functions until the transaction ends. */
export const lockOrders = (client: Transaction, projectId: number) =>
  client.query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.functionOrders, projectId]);

/** Locks the beginning of replays of a project until the transaction ends. */
export const lockReplays = (client: Transaction, projectId: number) =>
  client.query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.functionReplays, projectId]);
