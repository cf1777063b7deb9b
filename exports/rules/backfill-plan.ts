import {
  alignOutward,
  countWithin,
  type Interval,
  intervalAt,
  lastComplete,
  type OpenInterval,
} from '../../intervals/index.ts';
import type { BackfillRow } from '../rows/backfills.ts';
import { cadenceOfRow } from './cadence.ts';
import type { MappedRow } from './interval-states.ts';
import { isOnce, onceRange } from './once.ts';

/** The range that a backfill exports. If `start` is null, one run exports everything up to the end. */
export interface BackfillPlan extends OpenInterval {
  /** The number of runs. */
  total: number;
}

export type PlannedBackfill = Pick<BackfillRow, 'start_at' | 'end_at' | 'adjusted_start_at'>;

/**
 * Finds the whole intervals that overlap the range of a backfill and have ended. They are the intervals of the
 * schedule, so a backfill writes the same keys as scheduled runs. Intervals that have not ended are left to the
 * schedule.
 */
export function planBackfill(row: MappedRow, backfill: PlannedBackfill, now: number): BackfillPlan {
  if (isOnce(row)) return { ...onceRange(row), total: 1 };
  const cadence = cadenceOfRow(row);
  const { end: over } = lastComplete(cadence, now);
  const asked = backfill.end_at === null ? over : Date.parse(backfill.end_at);
  const from = backfill.adjusted_start_at ?? backfill.start_at;
  if (backfill.start_at === null) return { start: null, end: Math.min(asked, over), total: 1 };
  const range = alignOutward(cadence, { start: Date.parse(from as string), end: asked });
  const end = Math.min(range.end, over);
  return { start: Math.min(range.start, end), end, total: countWithin(cadence, { start: range.start, end }) };
}

/**
 * Finds where a backfill may begin later than planned, because there are no rows before `firstData`. It keeps the
 * intervals that the schedule had to run, so that each of them has a run, and the last interval.
 */
export function raisedStart(row: MappedRow, plan: Interval, firstData: number | null): number {
  const cadence = cadenceOfRow(row);
  if (plan.start >= plan.end) return plan.start;
  const candidates = [
    firstData === null ? plan.end : intervalAt(cadence, firstData).start,
    intervalAt(cadence, Date.parse(row.scheduled_from)).start,
    intervalAt(cadence, plan.end - 1).start,
  ];
  return Math.max(plan.start, Math.min(...candidates));
}
