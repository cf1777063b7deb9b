import { ApplicationFailure } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import {
  type BatchExportRow,
  type ExportKey,
  findBatchExportById,
  holdBatchExport,
} from '../../exports/rows/batch-exports.ts';
import { insertLogs } from '../../exports/rows/logs.ts';
import { findLongerRun, isPartEnd } from '../../exports/rows/parts.ts';
import { findCompletedRun } from '../../exports/rows/run-lists.ts';
import { markRunEnded, type StartedRun, startRun } from '../../exports/rows/runs.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { LONGEST_ATTEMPT, RUN_LIMITS } from '../../exports/rules/limits.ts';
import { type IntervalText, intervalEndingAt, lastComplete } from '../../intervals/index.ts';
import { instantText } from '../../values/dates.ts';
import type { ActivityDependencies } from '../dependencies.ts';

export interface StartRunInput {
  exportId: string;
  interval: IntervalText | null;
  backfillId: string | null;
  /** When the schedule meant to fire, or when somebody started the workflow; ISO 8601. */
  nominal: string;
  workflowId: string;
  workflowRunId: string;
}

export type StartRunResult =
  | {
      outcome: 'started';
      runId: string;
      interval: IntervalText;
      /** For the Temporal UI: `events to S3`. */
      what: string;
      attemptMilliseconds: number;
    }
  /** There is no run to do; what is known of the interval instead. */
  | { outcome: 'nothing'; runId: string | null; status: string; records: number; reason: string };

type Entered =
  | { outcome: 'entered'; interval: IntervalText; begun: StartedRun }
  | Extract<StartRunResult, { outcome: 'nothing' }>;

const BUSY_AGAIN = '5 seconds';

const nothing = (reason: string, known: { runId?: string; status?: string; records?: number } = {}) => ({
  outcome: 'nothing' as const,
  runId: known.runId ?? null,
  status: known.status ?? 'Cancelled',
  records: known.records ?? 0,
  reason,
});

/**
 * The interval that a schedule's nominal time ends; whoever triggers one by hand means the last that is complete.
 * Undefined: it lies where the export was cut otherwise, as when the schedule fired for an interval that is none by now.
 */
function intervalOf(row: BatchExportRow, nominal: string): IntervalText | undefined {
  const cadence = cadenceOfRow(row);
  const at = Date.parse(nominal);
  const { start, end } = intervalEndingAt(cadence, at) ?? lastComplete(cadence, at);
  if (row.seam_at !== null && end <= Date.parse(row.seam_at)) return undefined;
  return { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
}

const rangeText = ({ start, end }: IntervalText): string =>
  `${start === null ? 'the beginning' : instantText(start)} - ${instantText(end)}`;

/** Looked for when the part has its row: a longer run that begins after that finds the row. */
async function longerThanPart(pool: Pool, key: ExportKey, start: string, end: string) {
  return isPartEnd(end) ? await findLongerRun(pool, key, { start, end }) : undefined;
}

/** Makes the run's row, or finds it: the activity may have been here before. */
export function createStartRun({ pool, schedules }: Pick<ActivityDependencies, 'pool' | 'schedules'>) {
  /** A run of the schedule's, while the export cannot be cut otherwise: whoever does that afterwards finds its row. */
  async function enterScheduled(client: Transaction, key: ExportKey, input: StartRunInput): Promise<Entered> {
    const row = await holdBatchExport(client, key);
    if (!row) return nothing('The batch export was deleted');
    const interval = intervalOf(row, input.nominal);
    if (!interval) return nothing('The batch export has other intervals by now');
    const done = await findCompletedRun(client, key, interval);
    if (done && done.workflow_run_id !== input.workflowRunId) {
      const known = { runId: done.id, status: done.status, records: done.records_completed ?? 0 };
      return nothing(`The run ${done.id} has exported this interval already`, known);
    }
    return { outcome: 'entered', interval, begun: await startRun(client, { ...key, ...interval, ...input }) };
  }

  async function enter(key: ExportKey, input: StartRunInput): Promise<Entered> {
    const { interval } = input;
    if (!interval) return transaction(pool, (client) => enterScheduled(client, key, input));
    return { outcome: 'entered', interval, begun: await startRun(pool, { ...key, ...input, ...interval }) };
  }

  return async function startExportRun(input: StartRunInput): Promise<StartRunResult> {
    const row = await findBatchExportById(pool, input.exportId);
    if (!row || row.deleted_at !== null) return nothing('The batch export was deleted');
    const key = { projectId: row.project_id, exportId: row.id };
    for (;;) {
      const entered = await enter(key, input);
      if (entered.outcome === 'nothing') return entered;
      const { interval, begun } = entered;
      const { run } = begun;
      if (begun.outcome === 'over') {
        const known = { runId: run.id, status: run.status, records: run.records_completed ?? 0 };
        return nothing('The run is over', known);
      }
      if (begun.outcome === 'busy') {
        if ((await schedules.exports.fateOfRun(run)) === 'running') {
          throw ApplicationFailure.create({
            message: `The run ${run.id} exports this interval right now; this one waits for it`,
            type: 'Busy',
            nextRetryDelay: BUSY_AGAIN,
            category: ApplicationFailureCategory.BENIGN,
          });
        }
        const gone = 'Its workflow was ended from outside, so nobody could finish it';
        await markRunEnded(pool, { projectId: run.project_id, runId: run.id }, 'Terminated', gone);
        continue;
      }
      const longer =
        interval.start !== null && (await longerThanPart(pool, key, interval.start, interval.end));
      if (longer) {
        const reason = `The run ${longer.id} has the rows of this part of its interval`;
        await markRunEnded(pool, { projectId: run.project_id, runId: run.id }, 'Cancelled', reason);
        return nothing(reason, { runId: run.id });
      }
      const range = `Starting batch export of ${row.model} to ${row.destination_type} for range ${rangeText(interval)}`;
      if (begun.isNew) await insertLogs(pool, key, run.id, [{ level: 'INFO', message: range }]);
      return {
        outcome: 'started',
        runId: run.id,
        interval,
        what: `${row.model} to ${row.destination_type}`,
        attemptMilliseconds: interval.start === null ? LONGEST_ATTEMPT : RUN_LIMITS[row.interval].attempt,
      };
    }
  };
}
