import { partitionOf } from '../../db/event-partitions.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { IntervalText } from '../../intervals/index.ts';

const DAY = 86_400_000;

/** Between looking and reading, rows must not go. */
const MARGIN = 10 * 60_000;

/** The rows of an interval are gone, or about to go. */
export class ExpiredRowsError extends Error {
  override name = 'ExpiredRowsError';
}

/**
 * Refuses to export what is not all there any more: less than there was would pass for everything, and take the place of
 * what was exported when it was. A run from the beginning has what there is.
 */
export function requireUnexpired(
  row: Pick<BatchExportRow, 'model'>,
  interval: IntervalText,
  retentionDays: number | undefined,
  now: number,
): void {
  if (interval.start === null || !isExpired(row, interval, retentionDays, now + MARGIN)) return;
  throw new ExpiredRowsError(
    `Events of this interval are past SLUICE_EVENT_RETENTION_DAYS (${retentionDays}), so it cannot be exported any more. What was exported of it before stays as it is.`,
  );
}

/** Whether events of the interval may have been deleted because they are old: they are, in whole weeks. */
export function isExpired(
  { model }: Pick<BatchExportRow, 'model'>,
  { start }: IntervalText,
  retentionDays: number | undefined,
  now: number,
): boolean {
  if (retentionDays === undefined || model === 'persons') return false;
  if (start === null) return true;
  return partitionOf(new Date(start)).to.getTime() <= now - retentionDays * DAY;
}
