import { ApplicationFailure, CancelledFailure, type Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { DestinationConfigError, DestinationError } from '../../destinations/errors.ts';
import { BrokenRowsError } from '../../formats/copy-format.ts';
import { ModelError, refusesQuery } from '../../models/index.ts';
import { ExpiredRowsError } from './retention.ts';

/** What a failure means to the run. */
export interface Verdict {
  /** For the operator: what is wrong, and where. */
  message: string;
  /** For the Temporal UI and the metrics: one of few. */
  reason: string;
  /** Whether the same work may succeed without anybody doing something. */
  again: boolean;
  retryAfterMilliseconds?: number | undefined;
}

/** Postgres refuses what an export's settings make of its query. */
export class QueryRefusedError extends Error {
  override name = 'QueryRefusedError';
}

/** What went wrong while the rows of an export were read: other statements are ours, and so are their faults. */
export function ofSource(error: unknown): unknown {
  if (!refusesQuery(error)) return error;
  return new QueryRefusedError(
    `Postgres refuses the query that the filters and columns of this export make: ${(error as Error).message}`,
  );
}

export function judge(error: unknown): Verdict {
  if (error instanceof DestinationError) {
    const { message, code, retryable, retryAfterMilliseconds } = error;
    return { message, reason: code, again: retryable, retryAfterMilliseconds };
  }
  if (error instanceof DestinationConfigError)
    return { message: error.message, reason: 'not-configured', again: false };
  if (error instanceof ModelError) {
    const detail = error.detail === null ? '' : ` (${error.detail})`;
    return { message: `${error.message}${detail}`, reason: 'model', again: false };
  }
  if (error instanceof BrokenRowsError)
    return { message: error.message, reason: 'broken-rows', again: error.retryable };
  if (error instanceof ExpiredRowsError) return { message: error.message, reason: 'expired', again: false };
  if (error instanceof QueryRefusedError) return { message: error.message, reason: 'query', again: false };
  const { message } = error as { message?: unknown };
  return { message: String(message ?? error), reason: 'unexpected', again: true };
}

/** Longer than that nothing is waited for, whatever a destination asks. */
const LONGEST_PAUSE = 3_600_000;

/** After 1, 2, 4 … seconds: what was away for long is not asked all the time. */
const pauseAfter = (attempt: number) => Math.min(LONGEST_PAUSE, 1_000 * 2 ** (attempt - 1));

/**
 * The failure as Temporal gets it: it knows from it whether and when to try again. What the policy of the workflow says
 * of that is for attempts that could not say anything themselves: their worker is gone.
 */
export function failureOf(
  { message, reason, again, retryAfterMilliseconds }: Verdict,
  attempt: number,
): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: reason,
    nonRetryable: !again,
    // It was logged, with more about it than Temporal knows.
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: Math.min(LONGEST_PAUSE, retryAfterMilliseconds ?? pauseAfter(attempt)),
  });
}

/**
 * What to throw for an activity that was told to stop. One whose worker stops is to be done by another worker, which is
 * no cancellation of the run.
 */
export function stopped(context: Context): Error | undefined {
  const { cancellationSignal: signal } = context;
  if (!signal.aborted) return undefined;
  const reason = signal.reason as Error;
  if (reason instanceof CancelledFailure && reason.message !== 'WORKER_SHUTDOWN') return reason;
  return ApplicationFailure.create({
    message: 'The worker was stopped; another attempt begins anew',
    type: 'worker-stopped',
    nextRetryDelay: 1,
  });
}
