// Exports of the whole result of a query. They have no intervals and no schedule: each runs once, when it is created.
import type { IntervalLength, OpenInterval } from '../../intervals/index.ts';
import { refuse } from '../../refusals.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';

type Cut = Pick<BatchExportRow, 'interval'>;

/** Answers whether an export runs once. */
export const isOnce = ({ interval }: Cut): boolean => interval === 'once';

/**
 * Returns the range of the one run: everything up to the creation of the export. The run, its files and its backfill are
 * known by it, so a retry replaces what an earlier run left.
 */
export const onceRange = ({ created_at }: Pick<BatchExportRow, 'created_at'>): OpenInterval => ({
  start: null,
  end: Date.parse(created_at),
});

/** Returns the length of an export's intervals. Refuses an export that runs once, because it has none. */
export function lengthOf(row: Cut): IntervalLength {
  requireIntervals(row);
  return row.interval;
}

/** Refuses an export that runs once. */
export function requireIntervals<Row extends Cut>(
  row: Row,
): asserts row is Row & { interval: IntervalLength } {
  if (!isOnce(row)) return;
  throw refuse.invalid(
    null,
    'This batch export runs once, when it is created. It has no intervals, no schedule and no backfills. Retry its run ' +
      'to run the query again, or create another batch export.',
  );
}
