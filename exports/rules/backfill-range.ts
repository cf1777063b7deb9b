import {
  alignOutward,
  BackfillRangeError,
  intervalAt,
  type OpenInterval,
  readBackfillRange,
} from '../../intervals/index.ts';
import { refuse } from '../../refusals.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import { cadenceOfRow } from './cadence.ts';

/** The range that a user wants a backfill to export. */
export interface BackfillInput {
  /** Intervals of an hour and less take a time with its zone; days and weeks take a date. */
  start_at?: unknown;
  end_at?: unknown;
}

/**
 * Finds the whole intervals that overlap the range that a user asks for and have ended. Throws a Refusal if none has.
 * `openEnd` says whether the destination takes a backfill without an end, which exports everything up to now.
 */
export function readRange(
  row: BatchExportRow,
  input: BackfillInput,
  { now, openEnd }: { now: number; openEnd: boolean },
): OpenInterval {
  const cadence = cadenceOfRow(row);
  try {
    const { start, end } = readBackfillRange(cadence, input, { now, openEnd });
    const over = intervalAt(cadence, now).start;
    if (start === null) throw new Error('a range without a beginning was let through');
    const range = alignOutward(cadence, { start, end: end ?? over });
    return requireIntervals({ start: range.start, end: Math.min(range.end, over) });
  } catch (error) {
    if (!(error instanceof BackfillRangeError)) throw error;
    throw refuse.invalid(error.field, error.message);
  }
}

function requireIntervals(range: { start: number; end: number }): OpenInterval {
  if (range.start < range.end) return range;
  throw refuse.invalid('end_at', 'No interval of this range has ended yet.');
}

/**
 * Finds the intervals that ended after an instant, beginning with the one that contains it. Leaves out intervals that
 * the schedule does not run, because they end before `start_at` or after `end_at` of the export. Null: there is none.
 */
export function wholeRange(row: BatchExportRow, since: number, now: number): OpenInterval | null {
  const cadence = cadenceOfRow(row);
  const { start } = intervalAt(cadence, Math.max(since, row.start_at ? Date.parse(row.start_at) - 1 : since));
  const { start: end } = intervalAt(cadence, row.end_at ? Math.min(now, Date.parse(row.end_at)) : now);
  return start < end ? { start, end } : null;
}
