import { ApplicationFailure, CancelledFailure, type Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { DestinationConfigError, DestinationError } from '../../destinations/errors.ts';
import { BrokenRowsError } from '../../formats/broken-rows.ts';
import { ModelError } from '../../models/index.ts';
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

/**
 * What Postgres says of a value or of the statement itself, made of the export's filters and columns: it says the same
 * the next time. The data's fault: 22; the statement's: 42 and 0A.
 */
const STATEMENT_FAULTS = /^(22|42|0A)/;

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
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && STATEMENT_FAULTS.test(code) && code.length === 5) {
    const text = `Postgres refuses the query that the filters and columns of this export make: ${message}`;
    return { message: text, reason: 'query', again: false };
  }
  return { message: String(message ?? error), reason: 'unexpected', again: true };
}

/** The failure as Temporal gets it: it knows from it whether and when to try again. */
export function failureOf({ message, reason, again, retryAfterMilliseconds }: Verdict): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: reason,
    nonRetryable: !again,
    // It was logged, with more about it than Temporal knows.
    category: ApplicationFailureCategory.BENIGN,
    ...(retryAfterMilliseconds === undefined ? {} : { nextRetryDelay: retryAfterMilliseconds }),
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
