import type { Queryable } from '../../db/pool.ts';
import { intervalMap } from '../../exports/reads/health.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { patienceOf } from '../../exports/rules/due.ts';
import type { OpenInterval } from '../../intervals/index.ts';

/** So many intervals before a pause are looked at. */
const LOOKED_AT = 12;

/** From the first to the last of the intervals shortly before the pause that failed, and are not done yet. */
export async function failedBeforePause(
  queryable: Queryable,
  row: BatchExportRow,
  now: number,
): Promise<OpenInterval | null> {
  if (row.last_paused_at === null) return null;
  const before = Date.parse(row.last_paused_at);
  const window = { start: before - patienceOf(row).lookback, end: before };
  const failed = (await intervalMap(queryable, row, window, now))
    .slice(-LOOKED_AT)
    .filter(({ state, status }) => (state === 'late' || state === 'missing') && status === 'Failed');
  const [first, last] = [failed.at(0), failed.at(-1)];
  return first && last ? { start: Date.parse(first.start), end: Date.parse(last.end) } : null;
}

/** What was missed, from the first of those that failed on. */
export function withFailed(missed: OpenInterval | null, failed: OpenInterval | null): OpenInterval | null {
  if (!missed || !failed) return missed ?? failed;
  return {
    start: Math.min(...[missed.start, failed.start].filter((one) => one !== null)),
    end: Math.max(missed.end, failed.end),
  };
}
