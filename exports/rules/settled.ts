import { type Interval, intervalsWithin, lastComplete } from '../../intervals/index.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { IntervalMarks } from '../rows/run-lists.ts';
import { cadenceOfRow } from './cadence.ts';
import { isDue, type Pause, STARTS_WITHIN, upkeepTimesOf } from './due.ts';
import type { MappedRow } from './interval-states.ts';

type CutRow = MappedRow & Partial<Pick<BatchExportRow, 'seam_at'>>;
type MarkedInterval = Interval & { mark: string };

/** What is known of the intervals of an export that has no open checks. */
export interface Marked {
  marks: IntervalMarks;
  pauses: readonly Pause[];
}

/**
 * Answers quickly whether nothing is wrong with an export: whether all intervals of the time that maintenance checks are
 * completed, not due, or about to be. Then `intervalStates` finds nothing late, missing or different, and nothing is to
 * be done. It may answer no where a closer look finds nothing either.
 *
 * Returns a function that answers for all exports at one moment. Exports that cut time alike share the work.
 */
export function settledAt(now: number): (row: CutRow, known: Marked) => boolean {
  const cuts = new Map<string, readonly MarkedInterval[]>();
  const intervalsOf = (row: CutRow): readonly MarkedInterval[] => {
    const cut = JSON.stringify([row.interval, row.timezone, row.interval_offset, row.seam_at ?? null]);
    const known = cuts.get(cut);
    if (known) return known;
    const cadence = cadenceOfRow(row);
    const window = { start: now - upkeepTimesOf(row).lookback, end: lastComplete(cadence, now).end };
    const found = Array.from(intervalsWithin(cadence, window), (one) => ({
      ...one,
      mark: `${one.start}-${one.end}`,
    }));
    cuts.set(cut, found);
    return found;
  };
  return (row, { marks, pauses }) => {
    const { late } = upkeepTimesOf(row);
    return intervalsOf(row).every(({ mark, ...interval }) => {
      if (marks.completed.has(mark)) return true;
      const age = now - interval.end;
      const hasTime = marks.active.has(mark) ? age <= late : age <= STARTS_WITHIN && !marks.ended.has(mark);
      return hasTime || !isDue(row, pauses, interval);
    });
  };
}
