// The only place that turns errors of the products into failures of Temporal, which say what is retried, and when.
import { ApplicationFailure, CancelledFailure, type Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { NoticeError } from '../egress/operator-notices.ts';
import { AttemptFailedError, type Judgement } from '../exports/runs/judgement.ts';
import { BusyError } from '../exports/runs/start-run.ts';
import { LastAttemptError } from '../exports/runs/work.ts';
import { NoPlaceError, PlaceElsewhereError } from '../exports/runs/worker-place.ts';
import { Refusal } from '../refusals.ts';

/** The type of the failure of an activity that found no place at a worker. Its workflow waits for one. */
export type NoPlace = 'NoPlace';
const NO_PLACE: NoPlace = 'NoPlace';
/** What that failure says. */
export interface NoPlaceDetails {
  /** Since when the work waits. */
  since: string;
}

const BUSY_AGAIN = '5 seconds';
/** The longest pause before the next attempt in milliseconds, whatever a destination asks for. */
const LONGEST_PAUSE = 3_600_000;

/** Returns the pause after an attempt: 1, 2, 4 … seconds. */
const pauseAfter = (attempt: number) => Math.min(LONGEST_PAUSE, 1_000 * 2 ** (attempt - 1));

/**
 * Makes the failure of an attempt at a run. It says whether and when Temporal retries. The retry policy of the workflow
 * applies to attempts without such a failure, whose worker is gone.
 */
export function failureOf(
  { message, reason, again, retryAfterMilliseconds }: Judgement,
  attempt: number,
): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: reason,
    nonRetryable: !again,
    // The product has logged it, with more about it than Temporal knows.
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: Math.min(LONGEST_PAUSE, retryAfterMilliseconds ?? pauseAfter(attempt)),
  });
}

/**
 * Translates an error of an activity. An unknown error stays as it is, and the retry policy of the workflow applies.
 */
export function translated(error: unknown, context: Context): unknown {
  if (error instanceof AttemptFailedError) return failureOf(error.judgement, error.attempt);
  if (error instanceof NoPlaceError) {
    const { message, since } = error;
    const details: NoPlaceDetails = { since };
    return ApplicationFailure.create({
      ...{ message, type: NO_PLACE, details: [details] },
      // The workflow waits until it is told that there is one, and then begins anew.
      nonRetryable: true,
      category: ApplicationFailureCategory.BENIGN,
    });
  }
  if (error instanceof PlaceElsewhereError) {
    return ApplicationFailure.create({
      message: error.message,
      type: 'PlaceElsewhere',
      nextRetryDelay: error.retryAfterMilliseconds,
      category: ApplicationFailureCategory.BENIGN,
    });
  }
  if (error instanceof BusyError) {
    return ApplicationFailure.create({
      message: error.message,
      type: 'Busy',
      nextRetryDelay: error.retryAfterMilliseconds ?? BUSY_AGAIN,
      category: ApplicationFailureCategory.BENIGN,
    });
  }
  if (error instanceof NoticeError) {
    return ApplicationFailure.create({
      message: error.message,
      type: 'notice',
      nonRetryable: !error.again,
      category: ApplicationFailureCategory.BENIGN,
    });
  }
  if (error instanceof Refusal || error instanceof LastAttemptError)
    return ApplicationFailure.nonRetryable(error.message);
  return stopped(context) ?? error;
}

/**
 * Returns the error of an activity that was told to stop. If only its worker stops, that is no cancellation: another
 * worker does the work.
 */
function stopped({ cancellationSignal: signal }: Context): Error | undefined {
  if (!signal.aborted) return undefined;
  const reason = signal.reason as Error;
  if (reason instanceof CancelledFailure && reason.message !== 'WORKER_SHUTDOWN') return reason;
  return ApplicationFailure.create({
    message: 'The worker was stopped; another attempt follows',
    type: 'worker-stopped',
    nextRetryDelay: 1,
  });
}
