import type { Queryable } from '../../db/pool.ts';
import type { OpenInterval } from '../../intervals/index.ts';
import { type BatchExportRow, keyOf, type PauseRow } from '../rows/batch-exports.ts';
import { listIntervalOutcomes } from '../rows/run-lists.ts';
import { wholeRange } from '../rules/backfill-range.ts';
import { upkeepTimesOf } from '../rules/due.ts';
import { missedWhilePaused } from '../rules/missed.ts';
import { intervalMap } from './health.ts';

/** The number of intervals before a pause that are searched for failed ones. */
const LOOKED_AT = 12;

/**
 * Finds the range from the first to the last interval that failed shortly before the pause and is not done yet. Null:
 * there is none.
 */
export async function failedBeforePause(
  queryable: Queryable,
  row: BatchExportRow,
  now: number,
): Promise<OpenInterval | null> {
  if (row.last_paused_at === null) return null;
  const before = Date.parse(row.last_paused_at);
  const window = { start: before - upkeepTimesOf(row).lookback, end: before };
  const failed = (await intervalMap(queryable, row, window, now))
    .slice(-LOOKED_AT)
    .filter(({ state, status }) => (state === 'late' || state === 'missing') && status === 'Failed');
  const [first, last] = [failed.at(0), failed.at(-1)];
  return first && last ? { start: Date.parse(first.start), end: Date.parse(last.end) } : null;
}

/**
 * Finds the range that a pause left out. If the export was cut into other intervals before or during the pause and has
 * exported nothing since, that is everything after the seam, not only what ended during the pause. Null: nothing is
 * missed.
 */
export async function missedByPause(
  queryable: Queryable,
  row: BatchExportRow,
  now: number,
  pauses: readonly PauseRow[],
): Promise<OpenInterval | null> {
  const range = missedWhilePaused(row, now, pauses);
  const { seam_at: seam } = row;
  if (seam === null || Date.parse(seam) >= (range?.start ?? now)) return range;
  const bounds = { after: seam, until: new Date(now).toISOString() };
  const outcomes = await listIntervalOutcomes(queryable, keyOf(row), bounds);
  return outcomes.some((one) => one.completed) ? range : wholeRange(row, Date.parse(seam), now);
}
