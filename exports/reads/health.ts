import type { Queryable } from '../../db/pool.ts';
import type { Interval } from '../../intervals/index.ts';
import { type BatchExportRow, keyOf, listPauses } from '../rows/batch-exports.ts';
import { listChecks } from '../rows/checks.ts';
import type { Health } from '../rows/health.ts';
import { listIntervalOutcomes, listWholeRuns } from '../rows/run-lists.ts';
import { upkeepTimesOf } from '../rules/due.ts';
import { type IntervalEntry, intervalStates, type Known } from '../rules/interval-states.ts';
import { isOnce } from '../rules/once.ts';

/** Reads what the tables say about the intervals within the window. */
export async function knownOf(queryable: Queryable, row: BatchExportRow, window: Interval): Promise<Known> {
  const key = keyOf(row);
  const after = new Date(window.start).toISOString();
  const until = new Date(window.end).toISOString();
  // One after the other: a transaction has one connection, and others need those of a pool.
  const outcomes = await listIntervalOutcomes(queryable, key, { after, until });
  const checks = await listChecks(queryable, key, { after, until });
  const pauses = await listPauses(queryable, key, after);
  const wholeRuns = await listWholeRuns(queryable, key, after);
  return { outcomes, checks, pauses, wholeRuns };
}

/** Finds the states of the whole intervals of an export within the window that have ended, oldest first. */
export async function intervalMap(
  queryable: Queryable,
  row: BatchExportRow,
  window: Interval,
  now: number,
): Promise<IntervalEntry[]> {
  return intervalStates(row, await knownOf(queryable, row, window), window, now);
}

const DONE = new Set(['done', 'differs', 'excluded']);

/** Sums up the states of intervals. Pure. */
export function healthOf(entries: readonly IntervalEntry[]): Health {
  const count = (state: IntervalEntry['state']) => entries.filter((one) => one.state === state).length;
  const first = entries.findIndex((one) => !DONE.has(one.state));
  const behind = first === -1 ? [] : entries.slice(first).filter((one) => !DONE.has(one.state));
  // An interval that has just ended is not behind, because its run is about to start.
  const overdue = behind.some((one) => one.state !== 'running');
  const since = overdue ? Date.parse((behind[0] as IntervalEntry).start) : null;
  return {
    missing: count('missing'),
    late: count('late'),
    differs: count('differs'),
    lag_intervals: overdue ? behind.length : 0,
    lag_seconds: since === null ? 0 : (Date.parse((entries.at(-1) as IntervalEntry).end) - since) / 1000,
  };
}

/** Returns the time before now that maintenance checks. */
export function recentWindow(row: Pick<BatchExportRow, 'interval'>, now: number): Interval {
  return { start: now - upkeepTimesOf(row).lookback, end: now };
}

/** Finds out how complete an export is now. The API shows the result as `missing` and `lag`. */
export async function exportHealth(queryable: Queryable, row: BatchExportRow, now: number): Promise<Health> {
  if (isOnce(row)) return healthOf([]);
  return healthOf(await intervalMap(queryable, row, recentWindow(row, now), now));
}
