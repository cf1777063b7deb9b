import { type FoundEvent, LARGEST_SEEN } from '../rows/events.ts';
import { DISABLED } from '../rows/history.ts';
import type { QueueRow } from '../rows/queue.ts';
import type { DisabledFunction } from '../rows/states.ts';
import { microsecondsOf } from '../rules/microseconds.ts';
import { SWITCHED_OFF } from '../rules/replay.ts';
import type { NotRunnable, Runnable } from './contents.ts';
import type { Outcome } from './delivery.ts';

/** When invocations are tried again after an error of ours, in milliseconds. */
export const AFTER_ERROR = 5_000;
/** When invocations are tried again for which too much would have had to be read. */
export const AFTER_MUCH = 200;

const NOTHING = { cost: 0, attempts: [], after: 0, attempt: 0, progress: null, logs: [], counts: [] };

export const ended = (status: 'cancelled' | 'failed', error: string): Outcome => ({
  ...NOTHING,
  status,
  error,
});

/** The invocation is tried again as it is. */
export const postponed = (row: QueueRow, after: number): Outcome => ({
  ...{ ...NOTHING, status: 'postponed', error: null, after },
  ...{ attempt: row.attempt, progress: row.progress },
});

/** What waits outlasts a pause of its function. If the function is disabled for good, it fails and can be run again later. */
export const whileDisabled = (row: QueueRow, { seconds }: DisabledFunction): Outcome =>
  seconds === null ? ended('failed', DISABLED) : postponed(row, seconds * 1_000 * (1 + Math.random() / 10));

/** What becomes of an invocation whose function was switched off while it waited, also if it was switched on again since. */
export const ifSwitchedOff = (
  { created_at }: QueueRow,
  found: Runnable | NotRunnable,
): Outcome | undefined =>
  !('reason' in found) && microsecondsOf(created_at) < found.enabledAt
    ? ended('cancelled', SWITCHED_OFF)
    : undefined;

const DELETED = 'The event was deleted.';
const TOO_LARGE = `The event and its person have more than ${LARGEST_SEEN.toLocaleString('en')} characters together, which is the most that functions take.`;

/** What becomes of an invocation whose event is not at hand. Undefined: it is, or it needs none. */
export function withoutEvent(row: QueueRow, event: FoundEvent | null | undefined): Outcome | undefined {
  if (!event) return row.event_uuid === null ? undefined : ended('cancelled', DELETED);
  if (event.unread === 'large') return ended('failed', TOO_LARGE);
  return event.unread === 'later' ? postponed(row, AFTER_MUCH) : undefined;
}

/** What became of the others of a batch. What was sent and answered is listed with the one that stands for it. */
export const ofOther = ({ status, error, attempts, after, attempt }: Outcome): Outcome => ({
  ...{ ...NOTHING, status, error, after, attempt },
  attempts: attempts.map((one) => ({ ...one, request_body: null, response_body: null })),
});
