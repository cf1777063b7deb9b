import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import type { IntervalText } from '../../intervals/index.ts';
import {
  intervalAt,
  intervalEndingAt,
  intervalText,
  lastComplete,
  rangeText,
} from '../../intervals/index.ts';
import { instantText } from '../../values/dates.ts';
import { endRun } from '../ending.ts';
import {
  type BatchExportRow,
  type ExportKey,
  findBatchExportById,
  holdBatchExport,
  keyOf,
} from '../rows/batch-exports.ts';
import { insertLogs } from '../rows/logs.ts';
import { findLongerRun, isPartEnd } from '../rows/parts.ts';
import { findCompletedRun } from '../rows/run-lists.ts';
import { type StartedRun, startRun } from '../rows/runs.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { LONGEST_ATTEMPT, RUN_LIMITS } from '../rules/limits.ts';
import { lengthOf } from '../rules/once.ts';
import type { RunDependencies } from './dependencies.ts';

const MINUTE = 60_000;

export interface StartRunInput {
  exportId: string;
  interval: IntervalText | null;
  backfillId: string | null;
  /** When the schedule was due to fire, or when the workflow was started, in ISO 8601. */
  nominal: string;
  workflowId: string;
  workflowRunId: string;
}

export type StartRunResult =
  | {
      outcome: 'started';
      runId: string;
      interval: IntervalText;
      /** What the Temporal UI shows, such as `events to S3`. */
      what: string;
      attemptMilliseconds: number;
    }
  /** There is nothing to run. The fields say which run has the result instead, if one has, and why. */
  | { outcome: 'nothing'; runId: string | null; status: string; records: number; reason: string };

/** Another run exports the same interval right now. Asking again later helps. */
export class BusyError extends Error {
  override readonly name = 'BusyError';
  /** How long to wait before that, unless Temporal decides. */
  readonly retryAfterMilliseconds: number | undefined;

  constructor(message: string, retryAfterMilliseconds?: number) {
    super(message);
    this.retryAfterMilliseconds = retryAfterMilliseconds;
  }
}

export type StartRunDependencies = Pick<RunDependencies, 'pool' | 'temporal' | 'rhythm'> & {
  noticeWebhook?: string | undefined;
};

/**
 * Makes the row of a run, or finds the row that an earlier try made. Throws a BusyError while another run exports the
 * same interval.
 */
export async function startExportRun(
  deps: StartRunDependencies,
  input: StartRunInput,
): Promise<StartRunResult> {
  const { pool, temporal, rhythm } = deps;
  const row = await findBatchExportById(pool, input.exportId);
  if (!row || row.deleted_at !== null) return nothing('The batch export was deleted');
  const key = keyOf(row);
  const byHand = input.interval === null && (await isByHand(temporal, row, input.nominal));
  for (;;) {
    const entered = await enter(pool, key, { ...input, byHand });
    if (entered.outcome === 'nothing') return entered;
    if (entered.outcome === 'out of step') return reportOutOfStep(deps, row, entered);
    const { interval, begun } = entered;
    const { run } = begun;
    if (begun.outcome === 'over') {
      const known = { runId: run.id, status: run.status, records: run.records_completed ?? 0 };
      return nothing('The run has ended', known);
    }
    if (begun.outcome === 'busy') {
      if ((await temporal.fateOfRun(run)) === 'running') {
        const message = `The run ${run.id} exports this interval right now; this one waits for it`;
        throw new BusyError(message, rhythm?.pause?.(1));
      }
      const reason = 'Its workflow was ended from outside, so nobody could finish it';
      await transaction(pool, (client) => endRun(client, run, { status: 'Terminated', reason }));
      continue;
    }
    const longer = await longerThanPart(pool, key, interval);
    if (longer) {
      const reason = `The run ${longer.id} has the rows of this part of its interval`;
      await transaction(pool, (client) => endRun(client, run, { status: 'Cancelled', reason }));
      return nothing(reason, { runId: run.id });
    }
    const range = `Starting batch export of ${row.model} to ${row.destination_type} for range ${rangeText(interval, '-')}`;
    if (begun.isNew) await insertLogs(pool, key, run.id, [{ level: 'INFO', message: range }]);
    return {
      outcome: 'started',
      runId: run.id,
      interval,
      what: `${row.model} to ${row.destination_type}`,
      attemptMilliseconds: interval.start === null ? LONGEST_ATTEMPT : RUN_LIMITS[lengthOf(row)].attempt,
    };
  }
}

const nothing = (reason: string, known: { runId?: string; status?: string; records?: number } = {}) => ({
  outcome: 'nothing' as const,
  runId: known.runId ?? null,
  status: known.status ?? 'Cancelled',
  records: known.records ?? 0,
  reason,
});

/** The schedule fired when no interval ends. */
interface OutOfStep {
  outcome: 'out of step';
  /** When it fired, and when the interval ends that was under way. */
  fired: string;
  end: string;
}

type Entered =
  | { outcome: 'entered'; interval: IntervalText; begun: StartedRun }
  | OutOfStep
  | Extract<StartRunResult, { outcome: 'nothing' }>;

type Entering = StartRunInput & { byHand: boolean };

async function enter(pool: Pool, key: ExportKey, { byHand, ...input }: Entering): Promise<Entered> {
  const { interval } = input;
  if (!interval) return transaction(pool, (client) => enterScheduled(client, key, { ...input, byHand }));
  return { outcome: 'entered', interval, begun: await startRun(pool, { ...key, ...input, ...interval }) };
}

/**
 * Makes the row of a run that the schedule started. A lock keeps the export from being cut into other intervals
 * meanwhile. A later change of the intervals finds this row.
 */
async function enterScheduled(
  client: Transaction,
  key: ExportKey,
  { byHand, ...input }: Entering,
): Promise<Entered> {
  const row = await holdBatchExport(client, key);
  if (!row) return nothing('The batch export was deleted');
  const interval = intervalOf(row, input.nominal, byHand);
  if (!interval) return nothing('The intervals of the batch export have changed since');
  if ('outcome' in interval) return interval;
  const done = await findCompletedRun(client, key, interval);
  if (done && done.workflow_run_id !== input.workflowRunId) {
    const known = { runId: done.id, status: done.status, records: done.records_completed ?? 0 };
    return nothing(`The run ${done.id} has exported this interval already`, known);
  }
  return { outcome: 'entered', interval, begun: await startRun(client, { ...key, ...interval, ...input }) };
}

/**
 * Finds the interval that ends at the nominal time of the schedule. If somebody triggered the schedule by hand, it is
 * the last finished interval. Undefined: the schedule fired before the export was cut into other intervals, and the
 * interval lies before the seam.
 */
function intervalOf(
  row: BatchExportRow,
  nominal: string,
  byHand: boolean,
): IntervalText | OutOfStep | undefined {
  const cadence = cadenceOfRow(row);
  const at = Date.parse(nominal);
  const ending = intervalEndingAt(cadence, at);
  const interval = ending ?? lastComplete(cadence, at);
  if (row.seam_at !== null && interval.end <= Date.parse(row.seam_at)) return undefined;
  if (ending || byHand) return intervalText(interval);
  const [fired, end] = [instantText(at), instantText(intervalAt(cadence, at).end)];
  return { outcome: 'out of step', fired, end };
}

/**
 * Answers whether somebody triggered the schedule by hand. Temporal tells no difference between that and a firing, but in
 * time: a schedule fires at whole minutes.
 */
async function isByHand(
  temporal: RunDependencies['temporal'],
  row: BatchExportRow,
  nominal: string,
): Promise<boolean> {
  const at = Date.parse(nominal);
  if (intervalEndingAt(cadenceOfRow(row), at)) return false;
  return at % MINUTE !== 0 || !(await temporal.mayHaveFired(row.id, at));
}

/**
 * Warns that the schedule fired when no interval ends. Nothing is exported: whichever interval one chose could be the wrong
 * one, and that of the right one has a firing of its own, or is missing and started again.
 */
async function reportOutOfStep(
  { pool, temporal, noticeWebhook }: StartRunDependencies,
  row: BatchExportRow,
  { fired, end }: OutOfStep,
): Promise<StartRunResult> {
  const key = keyOf(row);
  const reason = `The schedule fired at ${fired}, and no interval ends then. The interval in progress ends at ${end}`;
  if (noticeWebhook !== undefined) {
    const details = { fired_at: fired, interval_end: end };
    const notice = {
      event: 'batch_export.out_of_step',
      ...key,
      at: new Date().toISOString(),
      details,
    } as const;
    await temporal.startNotice(notice, fired);
  }
  await insertLogs(pool, key, null, [{ level: 'WARNING', message: `${reason}. Nothing was exported.` }]);
  return nothing(reason);
}

/**
 * Finds a run that exports the rows of a part too, because it reaches further. Call it when the part has its row: a
 * longer run that begins later finds that row.
 */
async function longerThanPart(pool: Pool, key: ExportKey, { start, end }: IntervalText) {
  return start !== null && isPartEnd(end) ? findLongerRun(pool, key, { start, end }) : undefined;
}
