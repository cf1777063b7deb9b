import type { Queryable } from '../../db/pool.ts';
import { intervalAt } from '../../intervals/index.ts';
import { type BatchExportRow, keyOf } from '../rows/batch-exports.ts';
import { listPartRuns } from '../rows/parts.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { isDue } from '../rules/due.ts';
import type { IntervalEntry } from '../rules/interval-states.ts';
import { intervalMap, recentWindow } from './health.ts';

/** The columns that record where an export was cut into other intervals. */
export interface Seam {
  scheduledFrom: string;
  seam: string | null;
}

/** There is no instant at which the new intervals could begin without leaving something out or exporting it twice. */
export class NoSeamError extends Error {
  override name = 'NoSeamError';
}

/**
 * Answers whether an interval stays as it is: a run has exported it or is at work on it, or somebody cancelled its run.
 */
const isTaken = ({ state, status }: IntervalEntry) =>
  state === 'done' ||
  state === 'differs' ||
  status === 'Starting' ||
  status === 'Running' ||
  status === 'Cancelled';

/**
 * Finds the seam for an export that is about to be cut into other intervals. The new intervals begin where the last
 * exported interval ends, so nothing is left out and nothing is exported twice. They include intervals that failed,
 * were missed or have not ended. Throws a NoSeamError if that is impossible at the moment.
 */
export async function seamOf(queryable: Queryable, row: BatchExportRow, now: number): Promise<Seam> {
  const { start } = intervalAt(cadenceOfRow(row), now);
  let from = start;
  let taken = true;
  const recent = await intervalMap(queryable, row, recentWindow(row, now), now);
  for (const entry of recent.toReversed()) {
    taken = isTaken(entry);
    const [begin, end] = [Date.parse(entry.start), Date.parse(entry.end)];
    // An interval that a pause left out is not exported either, so the search goes past it.
    if (taken || !isDue({ ...row, paused: false }, [], { start: begin, end })) break;
    from = begin;
  }
  const key = keyOf(row);
  const current = { start: new Date(start).toISOString(), end: new Date(now).toISOString() };
  const parts = await listPartRuns(queryable, key, current);
  if (parts.some((one) => one.status !== 'Completed')) {
    throw new NoSeamError(
      'A part of the current interval is being exported. Wait for its run, or cancel it.',
    );
  }
  const part = parts.at(-1);
  if (part && from !== start) {
    throw new NoSeamError(
      'A part of the current interval is exported, but the interval before it is not. Retry that one, or wait for it.',
    );
  }
  if (part) return seamAt(Date.parse(part.data_interval_end));
  // The schedule has exported nothing yet, so the export counts as if it had had its new intervals from the beginning.
  return taken ? seamAt(from) : { scheduledFrom: row.scheduled_from, seam: row.seam_at };
}

function seamAt(instant: number): Seam {
  const text = new Date(instant).toISOString();
  return { scheduledFrom: text, seam: text };
}
