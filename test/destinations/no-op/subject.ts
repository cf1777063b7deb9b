/** Why the conformance suite has nothing to look at. */
export const waiver =
  'It keeps nothing that a reader could find, and connects to nothing. test/exports/runs.test.ts runs it.';
