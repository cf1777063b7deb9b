// How the workflows of an export are called at Temporal. These ids never change: workflows under them outlive versions.
import type { IntervalText } from '../../intervals/index.ts';
import { instantText } from '../../values/dates.ts';

/** The run that the schedule starts at the end of an interval. The server makes this id: the schedule's, then the time. */
export const scheduledWorkflowId = (exportId: string, intervalEnd: string): string =>
  `${exportId}-${instantText(intervalEnd)}`;

/** A run that does not wait for its time. `unique` tells it from all others. */
export const startedWorkflowId = (exportId: string, unique: string): string => `${exportId}-run-${unique}`;

/** Two backfills of the same range share an id, so only one of them can be under way. */
export function backfillWorkflowId(
  exportId: string,
  { start, end }: { start: string | null; end: string | null },
): string {
  const text = (bound: string | null, open: string) =>
    bound === null ? open : new Date(bound).toISOString();
  return `${exportId}-Backfill-${text(start, 'START')}-${text(end, 'END')}`;
}

/** Two verifications of the same interval share an id, so the second joins the first. */
export const verificationWorkflowId = (exportId: string, { start, end }: IntervalText): string =>
  `${exportId}-verify-${start ?? 'START'}-${end}`;

/** `about` is what the notice tells of: the same for every try, so that it is sent once. */
export const noticeWorkflowId = (exportId: string, event: string, about: string): string =>
  `${exportId}-${event}-${about}`;
