import { type Interval, type IntervalLength, MAX_JITTER } from '../../intervals/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import { lengthOf } from './once.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long maintenance waits for an interval, and how far back it looks for one, in milliseconds. */
export interface UpkeepTimes {
  /** An interval is late if this long after its end no run has completed it. */
  late: number;
  /** An interval is missing if this long after its end no run has completed it and none is at work on it. */
  missing: number;
  /** Maintenance checks the intervals of this time before now. */
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
  UPKEEP_TIMES[lengthOf(row)];

/** The longest time from the end of an interval to the start of its run, in milliseconds. */
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
 * Answers whether the schedule has to run an interval. The schedule fires at the end of the interval. So the end must
 * lie after the creation and the last recut of the export, between `start_at` and `end_at`, and outside of all pauses.
 */
export function isDue(row: ScheduledRow, pauses: readonly Pause[], { end }: Interval): boolean {
  const at = (text: string | null) => (text === null ? null : Date.parse(text));
  if (end <= Date.parse(row.scheduled_from)) return false;
  const [start, last, deleted] = [at(row.start_at), at(row.end_at), at(row.deleted_at)];
  if (start !== null && end < start) return false;
  if (last !== null && end > last) return false;
  if (deleted !== null && end >= deleted) return false;
  if (row.paused && !pauses.some((one) => one.resumed_at === null)) {
    // The export was created paused. The table of pauses records changes only, so it does not have this pause.
    if (end > Math.max(at(row.last_paused_at) ?? 0, Date.parse(row.created_at))) return false;
  }
  return !pauses.some(
    (one) =>
      end > Date.parse(one.paused_at) && (one.resumed_at === null || end <= Date.parse(one.resumed_at)),
  );
}
