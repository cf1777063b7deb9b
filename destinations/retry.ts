import { setTimeout as pause } from 'node:timers/promises';
import { DestinationError } from './errors.ts';

/** How often a request is repeated in the middle of an attempt. */
export interface Patience {
  attempts: number;
  /** Milliseconds before the attempt after `attempt` (from 1). */
  delay(attempt: number): number;
}

export const PATIENCE: Patience = {
  attempts: 5,
  // Jitter, so that many runs that met the same fault do not return together.
  delay: (attempt) => 2 ** (attempt - 1) * 1000 * (0.5 + Math.random() / 2),
};
/** The retries of the run do all longer waiting: then others get the place of the worker meanwhile. */
const LONGEST = 30_000;

export interface Persistence {
  signal?: AbortSignal | undefined;
  patience?: Patience | undefined;
  /**
   * Whether rows of this attempt have reached the destination. Before that, a failure ends the attempt, because there is
   * nothing to lose and the next attempt waits outside.
   */
  hasFlowed(): boolean;
  /**
   * Whether a connection of earlier work may be used again. The server may just have closed it, so if the first attempt
   * breaks, the second follows at once.
   */
  mayBeStale?: boolean;
  /** Says what is waited for, until the returned function is called. */
  onWait?: ((what: string) => () => void) | undefined;
  /** The clock, in milliseconds. */
  clock?: () => number;
}

/**
 * Does the work, and again while it fails for reasons that a pause of seconds may end, until half a minute after the first
 * failure. How long the first try took does not count: a large part that breaks off late is repeated too.
 */
export async function patiently<T>(
  work: (attempt: number) => Promise<T>,
  {
    signal,
    patience = PATIENCE,
    hasFlowed,
    mayBeStale = false,
    onWait,
    clock = () => performance.now(),
  }: Persistence,
): Promise<T> {
  let failedSince: number | undefined;
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await work(attempt);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof DestinationError) || !error.soon) throw error;
      if (attempt === 1 && mayBeStale && error.code === 'interrupted') continue;
      if (!hasFlowed()) throw error;
      const wait = Math.max(error.retryAfterMilliseconds ?? 0, patience.delay(attempt));
      const now = clock();
      failedSince ??= now;
      if (attempt >= patience.attempts || now - failedSince + wait > LONGEST) throw error;
      const over = onWait?.(`the next try, after an error: ${error.message}`);
      await pause(wait, undefined, signal ? { signal } : {})
        .catch(() => signal?.throwIfAborted())
        .finally(over);
    }
  }
}
