import { defineSearchAttributeKey } from '@temporalio/common';

/** The types of the workflows. The client that starts them uses these names too. */
export const MAINTENANCE = 'maintenance';
export const UPKEEP = 'upkeep';
export const EXPORT_RUN = 'exportRun';
/** The type of the failure with which the workflow of a failed run ends. */
export const RUN_FAILED = 'RunFailed';
export const EXPORT_BACKFILL = 'exportBackfill';
export const VERIFY_INTERVAL = 'verifyInterval';
export const RECONCILE_EXPORTS = 'reconcileExports';
export const NOTICE = 'notice';
export const FUNCTION_DISPATCH = 'functionDispatch';
export const FUNCTION_RETRIES = 'functionRetries';
export const FUNCTION_REPLAY = 'functionReplay';
export const FUNCTION_BROADCAST = 'functionBroadcast';
export const FLAG_CHANGE = 'flagChange';
export const FLAG_ROLLOUT = 'flagRollout';
export const FUNCTION_RERUN = 'functionRerun';

/**
 * The search attributes by which workflows can be found in the Temporal UI. They are not encrypted, so they contain
 * kinds, ids and times only, never a name or an address.
 */
export const searchAttributes = {
  /** What a workflow does: `maintenance`, `export` … */
  kind: defineSearchAttributeKey('SluiceKind', 'KEYWORD'),
  /** The project it works for. When the project is deleted, all its workflows are stopped. */
  project: defineSearchAttributeKey('SluiceProject', 'INT'),
  /** The id of the batch export it works for. */
  export: defineSearchAttributeKey('SluiceExport', 'KEYWORD'),
  /** The type of that export's destination. */
  destination: defineSearchAttributeKey('SluiceDestination', 'KEYWORD'),
  /** The id of the function it works for. */
  function: defineSearchAttributeKey('SluiceFunction', 'KEYWORD'),
  /** The end of the interval that a run exports. */
  intervalEnd: defineSearchAttributeKey('SluiceIntervalEnd', 'DATETIME'),
  /** The status of a run; see RUN_STATUSES. */
  runStatus: defineSearchAttributeKey('SluiceRunStatus', 'KEYWORD'),
};

/**
 * The queue of activities that export rows for schedules. All other work has queues of its own, so that neither waits.
 */
export const exportsQueue = (taskQueue: string): string => `${taskQueue}-exports`;
/** The queue of backfills and verifications. However many there are, the runs of schedules do not wait behind them. */
export const backfillsQueue = (taskQueue: string): string => `${taskQueue}-backfills`;

/** The signal that makes the workflow of upkeep begin its next round now. */
export const UPKEEP_NOW = 'now';

/** The signal that tells the workflow of a run or a verification that a worker keeps a place for it. */
export const PLACE_FREE = 'placeFree';

/** The values of `SluiceKind` for batch exports. */
export const EXPORT_KIND = 'export';
export const BACKFILL_KIND = 'export-backfill';
export const VERIFY_KIND = 'export-verify';
export const RECONCILE_KIND = 'export-reconcile';

/** The values of `SluiceKind` for functions. */
export const REPLAY_KIND = 'function-replay';
export const BACKLOG_KIND = 'function-backlog';
export const BROADCAST_KIND = 'function-broadcast';
export const RERUN_KIND = 'function-rerun';
export const NOTICE_KIND = 'function-notice';

/** The signal that tells the workflow of a replay or broadcast that its row has changed. */
export const REPLAY_CHANGED = 'replayChanged';

/** The values of `SluiceKind` for feature flags. */
export const FLAG_CHANGE_KIND = 'flag-change';
export const FLAG_ROLLOUT_KIND = 'flag-rollout';

/** The signal that tells the workflow of a plan for a flag that its row has changed. */
export const PLAN_CHANGED = 'planChanged';

/**
 * The update of a verification that returns the report when it is ready, and the signal that a client has received it.
 */
export const VERIFY_REPORT = 'report';
export const VERIFY_TAKEN = 'taken';
