/**
 * The advisory locks that belong to no product. All processes of all versions must agree on them: a number is never changed
 * and never given to something else.
 *
 * A product locks with two numbers: the first stands for a kind of thing, the second for one thing of that kind. Its
 * manifest lists the kinds. A test checks that no number is used twice.
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
  /** One process makes the roles of the database and gives them their rights. */
  roles: 7_163_945_026,
  /** One process gives weeks of events their indexes. */
  sealing: 7_163_945_028,
  /** One process moves ids of events into sealed blocks. */
  ids: 7_163_945_029,
  /** One command changes the encryption keys. */
  keys: 7_163_945_027,
} as const;
