import {
  DestinationConfigError,
  DestinationError,
  type DestinationErrorCode,
} from '../../destinations/errors.ts';
import { BrokenRowsError } from '../../formats/copy-format.ts';
import { ModelError } from '../../models/index.ts';
import { CohortGoneError, ExpiredRowsError, QueryRefusedError } from './source.ts';

/** What the failure of an attempt means to its run. */
export interface Judgement {
  /** Tells the operator what is wrong, and where. */
  message: string;
  /** Names the cause in the Temporal UI and in the metrics. */
  reason: DestinationErrorCode | 'model' | 'query' | 'broken-rows' | 'expired' | 'cohort';
  /** Whether the same work may succeed without anybody doing something. */
  again: boolean;
  /** How long the destination asks to wait. */
  retryAfterMilliseconds?: number | undefined;
}

/** An attempt at a run failed. The judgement says whether another one follows. */
export class AttemptFailedError extends Error {
  override readonly name = 'AttemptFailedError';
  readonly judgement: Judgement;
  /** The number of the attempt, from 1. The more there were, the longer is the pause before the next one. */
  readonly attempt: number;

  constructor(judgement: Judgement, attempt: number) {
    super(judgement.message);
    this.judgement = judgement;
    this.attempt = attempt;
  }
}

/** Judges the failure of an attempt. An unexpected one may go away by itself, so another attempt follows. */
export function judge(error: unknown): Judgement {
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
  if (error instanceof CohortGoneError) return { message: error.message, reason: 'cohort', again: false };
  if (error instanceof QueryRefusedError) return { message: error.message, reason: 'query', again: false };
  const { message } = error as { message?: unknown };
  return { message: String(message ?? error), reason: 'unexpected', again: true };
}
