import { defineSearchAttributeKey } from '@temporalio/common';

/** Names that workflows and the client that starts them share. */
export const MAINTENANCE = 'maintenance';
export const EXPORT_RUN = 'exportRun';
/** The type of the failure by which the workflow of a run that failed ends. */
export const RUN_FAILED = 'RunFailed';
export const EXPORT_BACKFILL = 'exportBackfill';
export const VERIFY_INTERVAL = 'verifyInterval';
export const RECONCILE_EXPORTS = 'reconcileExports';
export const NOTICE = 'notice';

/**
 * What workflows can be found by in the Temporal UI. They are not encrypted: kinds, ids and times only, never a
 * name or an address.
 */
export const searchAttributes = {
  /** What a workflow does: `maintenance`, `export` … */
  kind: defineSearchAttributeKey('SluiceKind', 'KEYWORD'),
  /** The project it works for; everything with it is stopped when the project is deleted. */
  project: defineSearchAttributeKey('SluiceProject', 'INT'),
  /** The id of the batch export it works for. */
  export: defineSearchAttributeKey('SluiceExport', 'KEYWORD'),
  /** The type of that export's destination. */
  destination: defineSearchAttributeKey('SluiceDestination', 'KEYWORD'),
  /** Where the interval that a run exports ends. */
  intervalEnd: defineSearchAttributeKey('SluiceIntervalEnd', 'DATETIME'),
  /** What became of a run; see RUN_STATUSES. */
  runStatus: defineSearchAttributeKey('SluiceRunStatus', 'KEYWORD'),
};

/** The queue of what carries rows, beside the queue of everything else. */
export const exportsQueue = (taskQueue: string): string => `${taskQueue}-exports`;
/** That of backfills and verifications: however many there are, what schedules start does not wait behind them. */
export const backfillsQueue = (taskQueue: string): string => `${taskQueue}-backfills`;

/** What SluiceKind says of everything that belongs to batch exports. */
export const EXPORT_KIND = 'export';
export const BACKFILL_KIND = 'export-backfill';
export const VERIFY_KIND = 'export-verify';
export const RECONCILE_KIND = 'export-reconcile';

/** The update of a verification that answers when the report is there, and the signal that somebody has it. */
export const VERIFY_REPORT = 'report';
export const VERIFY_TAKEN = 'taken';
