import { type FoundEvent, LARGEST_SEEN } from '../rows/events.ts';
import { DISABLED } from '../rows/history.ts';
import type { QueueRow } from '../rows/queue.ts';
import type { DisabledFunction } from '../rows/states.ts';
import { microsecondsOf } from '../rules/microseconds.ts';
import { SWITCHED_OFF } from '../rules/replay.ts';
import { PATIENCE } from '../rules/retries.ts';
import { allOf } from './batches.ts';
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

/** The invocation fails before it has run. It counts like others, with all of its batch. */
export const failed = (row: QueueRow, error: string, name = 'failed'): Outcome => ({
  ...ended('failed', error),
  counts: [
    {
      ...{ projectId: row.project_id, functionId: row.function_id },
      ...{ kind: 'failure', name, count: allOf(row).length },
    },
  ],
});

/** The invocation is tried again as it is. */
export const postponed = (row: QueueRow, after: number): Outcome => ({
  ...{ ...NOTHING, status: 'postponed', error: null, after },
  ...{ attempt: row.attempt, progress: row.progress },
});

/** What waits outlasts a pause of its function. If the function is disabled for good, it fails and can be run again later. */
export const whileDisabled = (row: QueueRow, { seconds }: DisabledFunction): Outcome =>
  seconds === null
    ? failed(row, DISABLED, 'disabled_permanently')
    : postponed(row, seconds * 1_000 * (1 + Math.random() / 10));

/** So many times one after the other something could not be had, before anything fails because of that. */
const LEAST_TIMES = 5;
const UNPREPARED =
  'What the invocation needs could not be read within 24 hours, by a fault of Sluice. The log of the worker says which.';

/** How often something could not be had, one time after the other. */
export interface Setback {
  times: number;
  /** In how many milliseconds it is worth another try. */
  after: number;
}

/** What becomes of an invocation for which something could not be had: it waits for as long as others are repeated. */
export function afterSetback(row: QueueRow, { times, after }: Setback): Outcome {
  const age = Date.now() - Date.parse(row.created_at);
  return times >= LEAST_TIMES && age + after > PATIENCE ? failed(row, UNPREPARED) : postponed(row, after);
}

/** What so many workers had when they were lost is attempted apart from others like it, and at some time no more. */
const SUSPECT = 3;
const MOST_LOST = 10;
/** In milliseconds. */
const APART = 1_000;
const LOST = `${MOST_LOST} workers were lost, one after the other, while they had this invocation. It may be what ended them.`;

/**
 * What becomes of invocations that were lost with their workers, before anything is done with them. One of them may be what
 * ends workers. Others are attempted one at a time and in no order, so that most of them end before it is their turn again.
 */
export function whereLost(rows: readonly QueueRow[]): Map<QueueRow, Outcome> {
  const lostOf = ({ lost, others = [] }: QueueRow) =>
    others.reduce((most, other) => Math.max(most, other.lost), lost);
  const suspects = rows.filter((row) => lostOf(row) >= SUSPECT && lostOf(row) < MOST_LOST);
  suspects.splice(Math.floor(Math.random() * suspects.length), 1);
  return new Map([
    ...rows.flatMap((row) => (lostOf(row) >= MOST_LOST ? [[row, failed(row, LOST)] as const] : [])),
    ...suspects.map((row, index) => [row, postponed(row, (index + 1) * APART)] as const),
  ]);
}

/** What becomes of an invocation whose version does not run. */
export const withoutContent = (row: QueueRow, { status, reason }: NotRunnable): Outcome =>
  status === 'failed' ? failed(row, reason) : ended(status, reason);

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

/** What becomes of an invocation, without the others of its batch, whose event is not at hand. Undefined: it is, or it needs none. */
export function withoutEvent(row: QueueRow, event: FoundEvent | null | undefined): Outcome | undefined {
  if (!event) return row.event_uuid === null ? undefined : ended('cancelled', DELETED);
  if (event.unread === 'large') return failed({ ...row, others: [] }, TOO_LARGE);
  return event.unread === 'later' ? postponed(row, AFTER_MUCH) : undefined;
}

/** What became of the others of a batch. What was sent and answered is listed with the one that stands for it. */
export const ofOther = ({ status, error, attempts, after, attempt }: Outcome): Outcome => ({
  ...{ ...NOTHING, status, error, after, attempt },
  attempts: attempts.map((one) => ({ ...one, request_body: null, response_body: null })),
});
