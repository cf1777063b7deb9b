import { within } from '../egress/no-answer.ts';
import type { StoreWork, Surroundings } from './destination.ts';
import type { DestinationError } from './errors.ts';
import { type Limits, limitsOf, noAnswerFrom } from './limits.ts';
import { PATIENCE, patiently } from './retry.ts';

const GRACE_MILLISECONDS = 5_000;

/** How a request to a store is made. */
export interface RequestOptions {
  key?: string;
  /** The operation or the right that it needs, as the store calls it. */
  doing: string;
  /** Keeps the request from being made and from being repeated. */
  signal?: AbortSignal | undefined;
  /** Ends the request while it is under way. */
  cut?: AbortSignal | undefined;
  /** How long the request and its answer may take, in milliseconds. By default, as long as a small answer. */
  limit?: number;
  /** Whether the server may be silent until then, because it works. */
  mayBeSilent?: boolean;
  /** The bytes of rows in its body. When they have arrived, later requests of this attempt are repeated. */
  rowBytes?: number;
  /** The number of attempts, if fewer than usual. */
  attempts?: number;
  onRetry?: () => void;
}

/** The requests that one attempt of a run makes to a store. */
export interface Requests {
  limits: Limits;
  /** How long requests under way may take to end after the upload was aborted. */
  graceMilliseconds: number;
  /**
   * Makes a request, and repeats it while that may help, once rows have arrived in this attempt. The request ends at
   * `abortSignal`. `extend` gives it more time, counted from its beginning.
   */
  send<T>(
    request: (abortSignal: AbortSignal, extend: (limit: number) => void) => Promise<T>,
    options: RequestOptions,
  ): Promise<T>;
}

/** `server` is its name in messages. `errorOf` says what an error of its client means. */
export function requestsTo(
  server: string,
  surroundings: Surroundings,
  { onWait, hasFlowed: flowedBefore = false }: StoreWork,
  errorOf: (error: unknown, options: RequestOptions) => DestinationError,
): Requests {
  const patience = surroundings.patience ?? PATIENCE;
  const limits = limitsOf(surroundings);
  let hasFlowed = flowedBefore;
  return {
    limits,
    graceMilliseconds: Math.min(GRACE_MILLISECONDS, limits.idle),
    send: (request, options) => {
      const { doing, signal, cut, limit = limits.answer, rowBytes = 0, onRetry } = options;
      const attempts = Math.min(options.attempts ?? Number.POSITIVE_INFINITY, patience.attempts);
      return patiently(
        async (attempt) => {
          if (attempt > 1) onRetry?.();
          const over = onWait?.(`${server} (${doing})`);
          try {
            const result = await within(limit, noAnswerFrom(server), cut, request);
            hasFlowed ||= rowBytes > 0;
            return result;
          } catch (error) {
            signal?.throwIfAborted();
            throw errorOf(error, options);
          } finally {
            over?.();
          }
        },
        { signal, onWait, hasFlowed: () => hasFlowed, patience: { ...patience, attempts } },
      );
    },
  };
}

/** Does work with a connection, and closes it. */
export async function closing<C extends { destroy(): void }, T>(
  connection: C,
  work: (connection: C) => Promise<T>,
): Promise<T> {
  try {
    return await work(connection);
  } finally {
    connection.destroy();
  }
}
