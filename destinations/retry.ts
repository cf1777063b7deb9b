import { setTimeout as pause } from 'node:timers/promises';
import { DestinationError } from './errors.ts';

export interface Patience {
  attempts: number;
  /** Milliseconds before the attempt after `attempt` (from 1). */
  delay(attempt: number): number;
}

/** A minute and a half in all; what lasts longer is for the retries of the run. */
export const PATIENCE: Patience = {
  attempts: 6,
  // Jitter, so that many runs that met the same fault do not return together.
  delay: (attempt) => Math.min(32, attempt ** 2) * 1000 * (0.5 + Math.random() / 2),
};
/** A destination that asks for a longer pause gets it from the retries of the run. */
const LONGEST_ASKED = 60_000;

/** Does the work again while it fails for reasons that a pause of seconds may end. */
export async function patiently<T>(
  work: (attempt: number) => Promise<T>,
  signal: AbortSignal | undefined,
  patience: Patience = PATIENCE,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await work(attempt);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof DestinationError) || !error.soon || attempt >= patience.attempts) throw error;
      const asked = error.retryAfterMilliseconds ?? 0;
      if (asked > LONGEST_ASKED) throw error;
      await pause(Math.max(asked, patience.delay(attempt)), undefined, signal ? { signal } : {}).catch(() =>
        signal?.throwIfAborted(),
      );
    }
  }
}
