import { MAX_JITTER, type OpenInterval } from '../../intervals/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import { wholeRange } from './backfill-range.ts';
import type { Pause } from './due.ts';

/**
 * Returns since when an export is paused. That is `last_paused_at`, with two exceptions. A `PATCH` of `paused` does not
 * set it, so it may belong to an earlier pause. Clients can write it, so it may lie in the future. `pauses` are those
 * that ended after `last_paused_at` or have not ended.
 */
function pausedSince(row: BatchExportRow, pauses: readonly Pause[]): number {
  const said = row.last_paused_at === null ? null : Date.parse(row.last_paused_at);
  const open = pauses.find((one) => one.resumed_at === null);
  if (open === undefined) return said ?? Date.parse(row.created_at);
  const begun = Date.parse(open.paused_at);
  return said === null || pauses.length > 1 ? begun : Math.min(said, begun);
}

/** Finds the whole intervals that ended while the export was paused. Null: there is none. */
export function missedWhilePaused(
  row: BatchExportRow,
  now: number,
  pauses: readonly Pause[] = [],
): OpenInterval | null {
  // A run starts a little after the end of its interval, so the last run before the pause may not have started.
  return wholeRange(row, pausedSince(row, pauses) - MAX_JITTER, now);
}

/** Joins the range that a pause left out and the range that failed before it. The result includes what lies between. */
export function withFailed(missed: OpenInterval | null, failed: OpenInterval | null): OpenInterval | null {
  if (!missed || !failed) return missed ?? failed;
  return {
    start: Math.min(...[missed.start, failed.start].filter((one) => one !== null)),
    end: Math.max(missed.end, failed.end),
  };
}
