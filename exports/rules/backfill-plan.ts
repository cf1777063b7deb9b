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

/** The range that a backfill goes through; `start` null: everything up to the end, as one run. */
export interface BackfillPlan extends OpenInterval {
  /** How many runs that is. */
  total: number;
}

export type PlannedBackfill = Pick<BackfillRow, 'start_at' | 'end_at' | 'adjusted_start_at'>;

/**
 * The whole intervals that contain the range, as far as they are over: scheduled runs write the same. What is not over
 * is for the schedule to run.
 */
export function planBackfill(row: MappedRow, backfill: PlannedBackfill, now: number): BackfillPlan {
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
 * Where a backfill may begin instead: nothing is there before the first data. Intervals that the schedule had to run
 * are kept, so that each has a run, and so is the last one.
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
