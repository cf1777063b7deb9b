// What batch exports need from Temporal, without any of Temporal's types. `schedules/exports` implements it. The inputs
// of the workflows are here too. Schedules keep them for years: add fields, but never change the meaning of one.
import type { IntervalText } from '../intervals/index.ts';
import { type Refusal, refuse } from '../refusals.ts';
import type { BackfillRow } from './rows/backfills.ts';
import type { BatchExportRow } from './rows/batch-exports.ts';
import type { RunRow } from './rows/runs.ts';
import type { VerifyReport } from './rules/verify-report.ts';
import type { StartedBy } from './rules/workflow-ids.ts';

/** The input of the workflow of a run. */
export interface ExportRunInput {
  exportId: string;
  /** Without it the run exports the interval that ends at the nominal time of the schedule that started it. */
  interval?: IntervalText;
  backfillId?: string;
  /** Where the run continues that waited so often for a place that its history became long. Without it, it begins. */
  from?: ContinuedRun;
  /** How many waits fit into one history. By default Temporal suggests when to begin a new one. */
  waitsPerHistory?: number;
}

/** What the workflow of a run passes on when it continues with a new history. */
export interface ContinuedRun {
  /** The run id of the first workflow, by which the row of the run is known. */
  workflowRunId: string;
  runId: string;
  interval: IntervalText;
  what: string;
  attemptMilliseconds: number;
  /** How often it has waited for a place in vain. */
  inVain: number;
}

/** The result of the workflow of a run. */
export interface ExportRunResult {
  /** Null if there was nothing to run. */
  runId: string | null;
  status: string;
  records: number;
}

/** The progress of a backfill. When the workflow continues with a new history, it passes this on. */
export interface BackfillProgressNote {
  /** The end of the last interval whose run was started. Null: none was. */
  after: string | null;
  total: number;
  completed: number;
  failed: number;
  cancelled: number;
}

/** The input of the workflow of a backfill. */
export interface ExportBackfillInput {
  exportId: string;
  backfillId: string;
  /** Where the backfill continues. Without it the backfill begins. */
  from?: BackfillProgressNote;
  /** How many runs fit into one history. By default Temporal suggests when to begin a new one. */
  runsPerHistory?: number;
}

/** The input of the workflow that verifies an interval. */
export interface VerifyIntervalInput {
  exportId: string;
  interval: IntervalText;
}

/** A message for the webhook of the operators. It contains ids, times and counts only. */
export interface NoticeInput {
  event: `batch_export.${string}`;
  projectId: number;
  exportId: string;
  runId?: string | null;
  /** When it happened, ISO 8601. */
  at: string;
  /** Further counts, times and ids. */
  details?: Record<string, string | number | null>;
}

/** The ids by which Temporal knows a run. */
export type RunReference = Pick<RunRow, 'workflow_id' | 'workflow_run_id'>;
export type BackfillReference = Pick<BackfillRow, 'id' | 'workflow_id'>;

/** What became of a workflow. `unknown`: Temporal has no such workflow, or another one under its name. */
export type WorkflowFate =
  | 'running'
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'terminated'
  | 'timed-out'
  | 'unknown';

/** A schedule as Temporal's list shows it. The list is a moment behind and does not show everything. */
export interface ListedSchedule {
  /** Answers whether what the list shows agrees with the row. `sync` compares everything. */
  matches(row: BatchExportRow): boolean;
}

/** What Temporal does for batch exports. The rows are the truth; everything here is derived from them. */
export interface ExportTemporal {
  /** Answers whether Temporal answered the last call. */
  isReachable(): boolean;
  /** Runs `work`. Calls to Temporal within it fail after this time, also while Temporal is away. */
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
  /**
   * Makes the schedule of an export agree with its row, and removes it if the row is deleted. Does not touch a schedule
   * that is right. False: there was nothing to do.
   */
  sync(row: BatchExportRow): Promise<boolean>;
  /** Removes a schedule. False: there was none. */
  remove(exportId: string): Promise<boolean>;
  /**
   * Answers whether the schedule may have fired at this time, in milliseconds, by itself. False: it does not fire then, and
   * did not change since, so somebody triggered it.
   */
  mayHaveFired(exportId: string, at: number): Promise<boolean>;
  /** Lists the schedules of all batch exports by export id. */
  list(): Promise<Map<string, ListedSchedule>>;
  /** Answers whether this installation made the schedule. Others may use the same namespace. */
  isOwn(exportId: string): Promise<boolean>;
  /** Runs an interval now, whatever the schedule does. Throws a Refusal if Temporal is not set up for it. */
  startRun(
    row: BatchExportRow,
    interval: IntervalText,
    by: StartedBy,
  ): Promise<{ workflowId: string; workflowRunId: string }>;
  /** Asks a run to stop. Does nothing if the run has ended or never began. */
  cancelRun(run: RunReference): Promise<void>;
  /** Starts the workflow of a backfill. Does nothing if it is already running. */
  startBackfill(row: BatchExportRow, backfill: BackfillReference): Promise<void>;
  /** Asks a backfill to stop, which cancels its runs first. Does nothing if the backfill has ended or never began. */
  cancelBackfill(backfill: Pick<BackfillRow, 'workflow_id'>): Promise<void>;
  fateOfRun(run: RunReference): Promise<WorkflowFate>;
  /** Tells the workflow of a run or a verification that a worker keeps a place for it. */
  callToPlace(work: Pick<RunRow, 'workflow_id'>): Promise<void>;
  /** Finds out what became of the run that the schedule started at the end of an interval. */
  fateOfScheduledRun(exportId: string, intervalEnd: string): Promise<WorkflowFate>;
  fateOfBackfill(backfill: BackfillReference): Promise<WorkflowFate>;
  /**
   * Reads an interval again, in the database and at the destination. Undefined: the wait was too short; calling this
   * again joins the same verification. Throws a Refusal if the interval cannot be verified.
   */
  verify(
    row: BatchExportRow,
    interval: IntervalText,
    options: { waitMilliseconds: number },
  ): Promise<VerifyReport | undefined>;
  /** Sends a notice to the operators. Calls with the same `about` send it once. */
  startNotice(notice: NoticeInput, about: string): Promise<void>;
  /** Returns the page of a run in the Temporal UI. */
  runUrl(run: RunReference): string;
}

/** Makes the refusal of a command that cannot work without Temporal. */
export const temporalAway = (retrySeconds: number): Refusal =>
  refuse.unavailable(
    'Temporal, which runs batch exports, is not available at the moment. Try again.',
    retrySeconds,
  );
