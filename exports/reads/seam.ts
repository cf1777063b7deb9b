import type { Queryable } from '../../db/pool.ts';
import { intervalAt } from '../../intervals/index.ts';
import { type BatchExportRow, keyOf } from '../rows/batch-exports.ts';
import { listPartRuns } from '../rows/parts.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { isDue } from '../rules/due.ts';
import type { IntervalEntry } from '../rules/interval-states.ts';
import { intervalMap, recentWindow } from './health.ts';

/** What `batch_exports` keeps of a change of intervals. */
export interface Seam {
  scheduledFrom: string;
  seam: string | null;
}

/** There is no instant at which the next intervals could begin without missing or doubling anything. */
export class NoSeamError extends Error {
  override name = 'NoSeamError';
}

/** Exported as it was cut before, or about to be; or somebody did not want it. */
const isTaken = ({ state, status }: IntervalEntry) =>
  state === 'done' ||
  state === 'differs' ||
  status === 'Starting' ||
  status === 'Running' ||
  status === 'Cancelled';

/**
 * Where the next intervals of an export begin when it is cut otherwise from now on: at the end of the last interval that
 * is exported as it is cut now. Intervals that are not, because they failed, were missed or are not over, are left to the
 * new ones. Nothing is missed between both, and nothing is in both; where that cannot be, it throws a NoSeamError.
 */
export async function seamOf(queryable: Queryable, row: BatchExportRow, now: number): Promise<Seam> {
  const { start } = intervalAt(cadenceOfRow(row), now);
  let from = start;
  let taken = true;
  const recent = await intervalMap(queryable, row, recentWindow(row, now), now);
  for (const entry of recent.toReversed()) {
    taken = isTaken(entry);
    const [begin, end] = [Date.parse(entry.start), Date.parse(entry.end)];
    // What a pause left out is not exported either.
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
  // Nothing was exported by its schedule yet: as if it had been made as it is now.
  return taken ? seamAt(from) : { scheduledFrom: row.scheduled_from, seam: row.seam_at };
}

function seamAt(instant: number): Seam {
  const text = new Date(instant).toISOString();
  return { scheduledFrom: text, seam: text };
}
