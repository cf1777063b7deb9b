import { defineSearchAttributeKey } from '@temporalio/common';

/** Names that workflows and the client that starts them share. */
export const MAINTENANCE = 'maintenance';

/**
 * What workflows can be found by in the Temporal UI. They are not encrypted: kinds, ids and times only, never a
 * name or an address.
 */
export const searchAttributes = {
  /** What a workflow does: `maintenance`, `export` … */
  kind: defineSearchAttributeKey('SluiceKind', 'KEYWORD'),
  /** The project it works for; everything with it is stopped when the project is deleted. */
  project: defineSearchAttributeKey('SluiceProject', 'INT'),
};
