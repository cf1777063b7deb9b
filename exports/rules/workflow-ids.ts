// The ids of an export's workflows in Temporal. Their form never changes, because workflows outlive versions of Sluice.
import type { IntervalText } from '../../intervals/index.ts';
import { instantText } from '../../values/dates.ts';

/**
 * The id of the run that the schedule starts at the end of an interval. Temporal makes it: the id of the schedule, then
 * the time.
 */
export const scheduledWorkflowId = (exportId: string, intervalEnd: string): string =>
  `${exportId}-${instantText(intervalEnd)}`;

/** Who starts a run that its schedule does not start: somebody by hand, or Sluice, because the interval is missing. */
export type StartedBy = 'hand' | 'repair';
const STARTED: Record<StartedBy, string> = { hand: '-run-', repair: '-repair-' };

/** The id of a run that its schedule did not start. `unique` tells it from all others. */
export const startedWorkflowId = (exportId: string, by: StartedBy, unique: string): string =>
  `${exportId}${STARTED[by]}${unique}`;

/** How the ids begin of the runs of an export that somebody started by hand. */
export const startedByHand = (exportId: string): string => `${exportId}${STARTED.hand}`;

/** The id of a backfill. Two backfills of the same range share it, so only one of them can be in progress. */
export function backfillWorkflowId(
  exportId: string,
  { start, end }: { start: string | null; end: string | null },
): string {
  const text = (bound: string | null, open: string) =>
    bound === null ? open : new Date(bound).toISOString();
  return `${exportId}-Backfill-${text(start, 'START')}-${text(end, 'END')}`;
}

/** The id of a verification. Two verifications of the same interval share it, so the second joins the first. */
export const verificationWorkflowId = (exportId: string, { start, end }: IntervalText): string =>
  `${exportId}-verify-${start ?? 'START'}-${end}`;

/**
 * The id of a notice. `about` names the fact that it reports, and is the same for every try, so that it is sent once.
 */
export const noticeWorkflowId = (exportId: string, event: string, about: string): string =>
  `${exportId}-${event}-${about}`;
