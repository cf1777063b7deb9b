/** What a run that completed exported and left out. */
export interface Counted {
  records_completed: number | null;
  records_failed: number | null;
}

/** The share of rows above which a completed run is something that somebody has to look at. */
const MUCH = 0.05;

/** Returns which part of the rows a run left out, from 0 to 1. */
export function shareLeftOut({ records_completed: rows, records_failed: left }: Counted): number {
  const all = (rows ?? 0) + (left ?? 0);
  return all === 0 ? 0 : (left ?? 0) / all;
}

/** Answers whether a run left out so many rows that its destination probably does not fit. */
export const leavesMuchOut = (run: Counted): boolean => shareLeftOut(run) > MUCH;

/** Writes a share for people. What is not all is never 100 %. */
export function percent(share: number): string {
  const rounded = Math.round(share * 100);
  return `${share < 1 ? Math.min(99, rounded) : 100} %`;
}
