import { type Interval, intervalsWithin, lastComplete } from '../../intervals/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { CheckRow } from '../rows/checks.ts';
import type { IntervalOutcome } from '../rows/run-lists.ts';
import type { RunRow, RunStatus } from '../rows/runs.ts';
import { cadenceOfRow } from './cadence.ts';
import { isDue, type Pause, type ScheduledRow, STARTS_WITHIN, upkeepTimesOf } from './due.ts';

/**
 * The states of an interval that has ended:
 *
 * - `done`: a run completed it, or a run over everything up to a later time did
 * - `running`: a run is at work on it, or will start soon
 * - `late`: it is not completed within the expected time
 * - `missing`: it ended long ago, no run has completed it, and none is at work on it
 * - `differs`: a run completed it, but the database or the destination has other rows than the run
 * - `excluded`: the schedule does not have to run it, and no other run completed it
 */
export const INTERVAL_STATES = ['done', 'running', 'late', 'missing', 'differs', 'excluded'] as const;
export type IntervalState = (typeof INTERVAL_STATES)[number];

export interface IntervalEntry {
  start: string;
  end: string;
  state: IntervalState;
  /** The run that completed it, or else its last run. Null: it had no run. */
  run_id: string | null;
  /** The status of its last run. */
  status: RunStatus | null;
  /** The number of runs that it had. */
  runs: number;
  records_completed: number | null;
  /** The number of its rows in the database at the last check. */
  source_rows: number | null;
  checked_at: string | null;
  /** What is wrong with it. Null: nothing is known to be. */
  problem: string | null;
}

/** What the tables of runs, checks and pauses say about the intervals of an export. */
export interface Known {
  outcomes: readonly IntervalOutcome[];
  checks: readonly CheckRow[];
  pauses: readonly Pause[];
  /** Completed runs without a beginning. Each exported everything up to its end. */
  wholeRuns?: readonly RunRow[];
}

export type MappedRow = ScheduledRow & Pick<BatchExportRow, 'interval' | 'timezone' | 'interval_offset'>;

/** Returns a key for an interval. It is the same for the same interval, in whatever form its instants are written. */
export const intervalKey = (start: string | null, end: string): string =>
  `${start && Date.parse(start)}-${Date.parse(end)}`;

/** Finds the states of the whole intervals within the window that have ended, oldest first. */
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

/** Returns the check if it still applies. A check of an earlier run than the last completed one does not. */
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
    // Nobody waits for an interval that is exported again, or was not due. It cannot be late.
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
  if (outcome && !outcome.active) return outcome.latest_error ?? `Its last run ended as ${outcome.status}.`;
  if (state === 'missing') return 'There was no run.';
  return null;
}
