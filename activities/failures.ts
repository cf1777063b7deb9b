// The only place where errors of the products become failures of Temporal: what is tried again, and when.
import { ApplicationFailure, CancelledFailure, type Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { AttemptFailedError, type Judgement } from '../exports/runs/judgement.ts';
import { NoticeError } from '../exports/runs/notices.ts';
import { BusyError } from '../exports/runs/start-run.ts';
import { Refusal } from '../refusals.ts';

const BUSY_AGAIN = '5 seconds';
/** Nothing is waited for longer than this, whatever a destination asks. */
const LONGEST_PAUSE = 3_600_000;

/** After 1, 2, 4 … seconds: what was away for long is not asked all the time. */
const pauseAfter = (attempt: number) => Math.min(LONGEST_PAUSE, 1_000 * 2 ** (attempt - 1));

/**
 * Makes the failure of an attempt at a run. It says whether and when Temporal tries again; the retry policy of the
 * workflow is for attempts that could say nothing, because their worker is gone.
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

/** Translates what an activity threw. What is nobody's in particular stays what it is, and the retry policy decides. */
export function translated(error: unknown, context: Context): unknown {
  if (error instanceof AttemptFailedError) return failureOf(error.judgement, context.info.attempt);
  if (error instanceof BusyError) {
    return ApplicationFailure.create({
      message: error.message,
      type: 'Busy',
      nextRetryDelay: BUSY_AGAIN,
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
  if (error instanceof Refusal) return ApplicationFailure.nonRetryable(error.message);
  return stopped(context) ?? error;
}

/**
 * Says how an activity ends that was told to stop. If its worker stops, another worker does the work: that is no
 * cancellation.
 */
function stopped({ cancellationSignal: signal }: Context): Error | undefined {
  if (!signal.aborted) return undefined;
  const reason = signal.reason as Error;
  if (reason instanceof CancelledFailure && reason.message !== 'WORKER_SHUTDOWN') return reason;
  return ApplicationFailure.create({
    message: 'The worker was stopped; another attempt begins anew',
    type: 'worker-stopped',
    nextRetryDelay: 1,
  });
}
