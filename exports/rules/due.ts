import { type Interval, type IntervalLength, MAX_JITTER } from '../../intervals/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long maintenance waits for an interval, and how far back it looks for one. */
export interface UpkeepTimes {
  /** An interval that is not completed so long after its end is late. */
  late: number;
  /** One that no run has completed or is at work on so long after its end is missing. */
  missing: number;
  /** How far back maintenance looks. */
  lookback: number;
}

const UPKEEP_TIMES: Record<IntervalLength, UpkeepTimes> = {
  'every 5 minutes': { late: 5 * MINUTE, missing: 10 * MINUTE, lookback: DAY },
  'every 15 minutes': { late: 10 * MINUTE, missing: 30 * MINUTE, lookback: 2 * DAY },
  hour: { late: 20 * MINUTE, missing: 2 * HOUR, lookback: 7 * DAY },
  day: { late: HOUR, missing: 6 * HOUR, lookback: 31 * DAY },
  week: { late: 2 * HOUR, missing: DAY, lookback: 91 * DAY },
};

export const upkeepTimesOf = (row: Pick<BatchExportRow, 'interval'>): UpkeepTimes =>
  UPKEEP_TIMES[row.interval];

/** A run begins within this time after its interval's end. */
export const STARTS_WITHIN = MAX_JITTER + MINUTE;

export interface Pause {
  paused_at: string;
  resumed_at: string | null;
}

export type ScheduledRow = Pick<
  BatchExportRow,
  'created_at' | 'scheduled_from' | 'start_at' | 'end_at' | 'paused' | 'last_paused_at' | 'deleted_at'
>;

/**
 * Whether the schedule has to run the interval: its end, at which the schedule fires, lies where the schedule is there
 * (after it was made or got this cadence, not before `start_at`, not after `end_at`) and not within a pause.
 */
export function isDue(row: ScheduledRow, pauses: readonly Pause[], { end }: Interval): boolean {
  const at = (text: string | null) => (text === null ? null : Date.parse(text));
  if (end <= Date.parse(row.scheduled_from)) return false;
  const [start, last, deleted] = [at(row.start_at), at(row.end_at), at(row.deleted_at)];
  if (start !== null && end < start) return false;
  if (last !== null && end > last) return false;
  if (deleted !== null && end >= deleted) return false;
  if (row.paused && !pauses.some((one) => one.resumed_at === null)) {
    // Paused from the beginning: that is no change, and so is noted nowhere else.
    if (end > Math.max(at(row.last_paused_at) ?? 0, Date.parse(row.created_at))) return false;
  }
  return !pauses.some(
    (one) =>
      end > Date.parse(one.paused_at) && (one.resumed_at === null || end <= Date.parse(one.resumed_at)),
  );
}
