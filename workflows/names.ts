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

/** An interval as texts of ISO 8601 in UTC. `start` null: from the beginning. */
export interface IntervalText {
  start: string | null;
  end: string;
}

/** What a run is started with. Schedules live long: a field may be added, none may change its meaning. */
export interface ExportRunInput {
  exportId: string;
  /** None: the interval that ends at the nominal time of the schedule that started the run. */
  interval?: IntervalText;
  backfillId?: string;
}

/** What came of it, for who waits for it. */
export interface ExportRunResult {
  /** Null: there was nothing to run. */
  runId: string | null;
  status: string;
  records: number;
}

/** How far a backfill is, for going on with a new history. */
export interface BackfillProgressNote {
  /** The end of the last interval that was begun; null: none. */
  after: string | null;
  total: number;
  completed: number;
  failed: number;
  cancelled: number;
}

export interface ExportBackfillInput {
  exportId: string;
  backfillId: string;
  /** Where it goes on; none: it begins. */
  from?: BackfillProgressNote;
  /** After so many runs it goes on with a new history; by default when Temporal suggests it. */
  runsPerHistory?: number;
}

export interface VerifyIntervalInput {
  exportId: string;
  interval: IntervalText;
}

/** The update that answers when the report is there, and the signal that somebody has it. */
export const VERIFY_REPORT = 'report';
export const VERIFY_TAKEN = 'taken';
/** What an operator is told of. */
export interface NoticeInput {
  event: `batch_export.${string}`;
  projectId: number;
  exportId: string;
  runId?: string | null;
  /** When it happened, ISO 8601. */
  at: string;
  /** More about it: counts, times and ids. */
  details?: Record<string, string | number | null>;
}
