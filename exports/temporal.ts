// What batch exports need of Temporal, without any type of Temporal: `schedules/exports` implements it. The inputs of the
// workflows stand here too. Schedules live long: a field may be added to an input, none may change its meaning.
import type { IntervalText } from '../intervals/index.ts';
import { type Refusal, refuse } from '../refusals.ts';
import type { BackfillRow } from './rows/backfills.ts';
import type { BatchExportRow } from './rows/batch-exports.ts';
import type { RunRow } from './rows/runs.ts';
import type { VerifyReport } from './rules/verify-report.ts';

/** Starts a run of an export. */
export interface ExportRunInput {
  exportId: string;
  /** Without it the run exports the interval that ends at the nominal time of the schedule that started it. */
  interval?: IntervalText;
  backfillId?: string;
}

/** Tells whoever waits for a run what came of it. */
export interface ExportRunResult {
  /** Null if there was nothing to run. */
  runId: string | null;
  status: string;
  records: number;
}

/** How far a backfill is. It is handed on when the backfill continues with a new history. */
export interface BackfillProgressNote {
  /** The end of the last interval that was begun; null if none was. */
  after: string | null;
  total: number;
  completed: number;
  failed: number;
  cancelled: number;
}

/** Starts a backfill. */
export interface ExportBackfillInput {
  exportId: string;
  backfillId: string;
  /** Where the backfill goes on. Without it the backfill begins. */
  from?: BackfillProgressNote;
  /** How many runs fit into one history. By default Temporal suggests when to begin a new one. */
  runsPerHistory?: number;
}

/** Starts a verification of one interval. */
export interface VerifyIntervalInput {
  exportId: string;
  interval: IntervalText;
}

/** Something that the webhook of the operators is told. It holds ids, times and counts only. */
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

/** Temporal's names of a run. */
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

/** A schedule as Temporal's list shows it. The list is behind by a moment and does not show everything. */
export interface ListedSchedule {
  /** Answers whether the list shows what the row says. `sync` looks closer. */
  matches(row: BatchExportRow): boolean;
}

/** What Temporal does for batch exports. The rows are the truth; everything here is derived from them. */
export interface ExportTemporal {
  /** Answers whether Temporal answered when it was last asked. */
  isReachable(): boolean;
  /** Gives up after so many milliseconds what `work` asks of Temporal, also while Temporal is away. */
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
  /**
   * Makes the schedule of an export what its row says, and removes it if the row is deleted. Leaves a schedule alone that
   * is right. False: there was nothing to do.
   */
  sync(row: BatchExportRow): Promise<boolean>;
  /** Removes a schedule. False: there was none. */
  remove(exportId: string): Promise<boolean>;
  /** Lists the schedules of all batch exports by export id. */
  list(): Promise<Map<string, ListedSchedule>>;
  /** Answers whether this installation made the schedule: others may use the same namespace. */
  isOwn(exportId: string): Promise<boolean>;
  /** Runs an interval now, whatever the schedule does. */
  startRun(
    row: BatchExportRow,
    interval: IntervalText,
  ): Promise<{ workflowId: string; workflowRunId: string }>;
  /** Asks a run to stop. A run that is over, or never began, is fine. */
  cancelRun(run: RunReference): Promise<void>;
  /** Starts the workflow of a backfill. A workflow that is there already is fine. */
  startBackfill(row: BatchExportRow, backfill: BackfillReference): Promise<void>;
  /** Asks a backfill to stop; its runs are cancelled first. A backfill that is over, or never began, is fine. */
  cancelBackfill(backfill: Pick<BackfillRow, 'workflow_id'>): Promise<void>;
  fateOfRun(run: RunReference): Promise<WorkflowFate>;
  /** Tells what became of the run that the schedule started at the end of an interval. */
  fateOfScheduledRun(exportId: string, intervalEnd: string): Promise<WorkflowFate>;
  fateOfBackfill(backfill: BackfillReference): Promise<WorkflowFate>;
  /**
   * Reads an interval again, in the database and at the destination. Undefined: it takes longer; asking again joins the
   * same verification. Throws a Refusal if the interval cannot be verified.
   */
  verify(
    row: BatchExportRow,
    interval: IntervalText,
    options: { waitMilliseconds: number },
  ): Promise<VerifyReport | undefined>;
  /** Sends a notice to the operators. It is sent once, however often this is called with the same `about`. */
  startNotice(notice: NoticeInput, about: string): Promise<void>;
  /** Gives the page of a run in the Temporal UI. */
  runUrl(run: RunReference): string;
}

/** What a command says that can do nothing without Temporal. */
export const temporalAway = (retrySeconds: number): Refusal =>
  refuse.unavailable(
    'Temporal, which runs batch exports, is not available at the moment. Try again.',
    retrySeconds,
  );
