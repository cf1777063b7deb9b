import { listPartRuns } from '../db/batch-export-parts.ts';
import type { BatchExportRow } from '../db/batch-exports.ts';
import type { Queryable } from '../db/pool.ts';
import { intervalAt } from '../intervals/index.ts';
import { cadenceOfRow } from './cadence.ts';
import { isDue } from './due.ts';
import { intervalMap, recentWindow } from './health.ts';
import type { IntervalEntry } from './interval-states.ts';

/** What `batch_exports` keeps of a change of intervals. */
export interface Seam {
  scheduledFrom: string;
  seam: string | null;
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
 * new ones. Nothing is missed between both, and nothing is in both.
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
  if (from === start) {
    const key = { projectId: row.project_id, exportId: row.id };
    const current = { start: new Date(start).toISOString(), end: new Date(now).toISOString() };
    const part = (await listPartRuns(queryable, key, current)).findLast((one) => one.status === 'Completed');
    if (part) return seamAt(Date.parse(part.data_interval_end));
  }
  // Nothing was exported by its schedule yet: as if it had been made as it is now.
  return taken ? seamAt(from) : { scheduledFrom: row.scheduled_from, seam: row.seam_at };
}

function seamAt(instant: number): Seam {
  const text = new Date(instant).toISOString();
  return { scheduledFrom: text, seam: text };
}
