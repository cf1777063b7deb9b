import type { BatchExportRow } from '../../db/batch-exports.ts';
import { partitionOf } from '../../db/event-partitions.ts';
import type { IntervalText } from '../../workflows/names.ts';

const DAY = 86_400_000;

/** An interval that was exported when there was more of it than there is now. */
export class ExpiredError extends Error {
  override name = 'ExpiredError';
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
