import { type Interval, intervalsWithin, lastComplete } from '../../intervals/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { CheckRow } from '../rows/checks.ts';
import type { IntervalOutcome } from '../rows/run-lists.ts';
import type { RunRow, RunStatus } from '../rows/runs.ts';
import { cadenceOfRow } from './cadence.ts';
import { isDue, type Pause, type ScheduledRow, STARTS_WITHIN, upkeepTimesOf } from './due.ts';

/**
 * - `done`: a run completed it
 * - `running`: a run is at work on it, or is about to begin
 * - `late`: it is not completed in the time that it should take
 * - `missing`: it is long over, and no run has completed it or is at work on it
 * - `differs`: a run completed it, but the rows in the database, or at the destination, are not those of the run
 * - `excluded`: the schedule has not to run it, and no run completed it
 */
export const INTERVAL_STATES = ['done', 'running', 'late', 'missing', 'differs', 'excluded'] as const;
export type IntervalState = (typeof INTERVAL_STATES)[number];

export interface IntervalEntry {
  start: string;
  end: string;
  state: IntervalState;
  /** Its completed run; without one, its last run. Null: there was none. */
  run_id: string | null;
  /** Of its last run. */
  status: RunStatus | null;
  /** How many runs it had. */
  runs: number;
  records_completed: number | null;
  /** Rows in the database when it was last looked at. */
  source_rows: number | null;
  checked_at: string | null;
  /** What is wrong, where something is. */
  problem: string | null;
}

/** What is known of an export's intervals, from the tables of runs, checks and pauses. */
export interface Known {
  outcomes: readonly IntervalOutcome[];
  checks: readonly CheckRow[];
  pauses: readonly Pause[];
  /** Completed runs without a beginning: they did what lies before their end. */
  wholeRuns?: readonly RunRow[];
}

export type MappedRow = ScheduledRow & Pick<BatchExportRow, 'interval' | 'timezone' | 'interval_offset'>;

/** The same for the same interval, however its instants are written. */
export const intervalKey = (start: string | null, end: string): string =>
  `${start && Date.parse(start)}-${Date.parse(end)}`;

/** The whole intervals within the window that are over, in their order. */
export function intervalStates(row: MappedRow, known: Known, window: Interval, now: number): IntervalEntry[] {
  const cadence = cadenceOfRow(row);
  const outcomes = new Map(
    known.outcomes.map((one) => [intervalKey(one.data_interval_start, one.data_interval_end), one]),
  );
  const checks = new Map(
    known.checks.map((one) => [intervalKey(one.data_interval_start, one.data_interval_end), one]),
  );
  const end = Math.min(window.end, lastComplete(cadence, now).end);
  const entries: IntervalEntry[] = [];
  for (const interval of intervalsWithin(cadence, { start: window.start, end })) {
    const [start, until] = [new Date(interval.start).toISOString(), new Date(interval.end).toISOString()];
    const outcome = outcomes.get(intervalKey(start, until));
    const whole = known.wholeRuns?.find((run) => Date.parse(run.data_interval_end) >= interval.end);
    const check = currentCheck(checks.get(intervalKey(start, until)), outcome);
    const due = isDue(row, known.pauses, interval);
    const state = stateOf(row, interval, { outcome, whole, check, due }, now);
    const finished = outcome?.completed ? outcome : undefined;
    entries.push({
      start,
      end: until,
      state,
      run_id:
        finished?.completed_run_id ?? (whole && !outcome?.active ? whole.id : (outcome?.run_id ?? null)),
      status: outcome?.status ?? (whole ? whole.status : null),
      runs: outcome?.runs ?? 0,
      records_completed: finished?.records_completed ?? null,
      source_rows: check?.source_rows ?? null,
      checked_at: check?.checked_at ?? null,
      problem: problemOf(state, outcome, check),
    });
  }
  return entries;
}

/** A check of an earlier run than the last completed one says nothing any more. */
function currentCheck(
  check: CheckRow | undefined,
  outcome: IntervalOutcome | undefined,
): CheckRow | undefined {
  if (!check) return undefined;
  if (!outcome?.completed) return check.state === 'missing' ? check : undefined;
  return check.run_id === outcome.completed_run_id ? check : undefined;
}

interface Seen {
  outcome: IntervalOutcome | undefined;
  whole: RunRow | undefined;
  check: CheckRow | undefined;
  due: boolean;
}

function stateOf(
  row: MappedRow,
  { end }: Interval,
  { outcome, whole, check, due }: Seen,
  now: number,
): IntervalState {
  const { late, missing } = upkeepTimesOf(row);
  const age = now - end;
  if (outcome?.active) {
    // What is done again, or was not due, takes as long as it takes.
    return due && !outcome.completed && age > late ? 'late' : 'running';
  }
  if (outcome?.completed)
    return check?.state === 'differs' || check?.state === 'missing' ? 'differs' : 'done';
  if (whole) return 'done';
  if (!due) return 'excluded';
  if (age > missing) return 'missing';
  if (outcome || age > STARTS_WITHIN) return 'late';
  return 'running';
}

function problemOf(
  state: IntervalState,
  outcome: IntervalOutcome | undefined,
  check: CheckRow | undefined,
): string | null {
  if (state === 'differs') return check?.problem ?? null;
  if (state === 'done' || state === 'running') return null;
  if (outcome && !outcome.active) return outcome.latest_error ?? `Its last run is ${outcome.status}.`;
  if (state === 'missing') return 'There was no run.';
  return null;
}
