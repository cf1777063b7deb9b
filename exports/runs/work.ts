/**
 * What a piece of work hears and says while it lasts. Whoever runs the work decides what stands behind it: an activity of
 * Temporal, a test, a command.
 */
export interface Work {
  /** Is aborted when the work has to stop. Its reason is the error to end with. */
  readonly signal: AbortSignal;
  /** Says that somebody still works on it, and how far it is. */
  beat(details?: unknown): void;
}

/** One attempt at work that is repeated when it fails. */
export interface WorkAttempt extends Work {
  /** Counts the attempts, from 1. */
  readonly number: number;
  /** Answers whether the work has to stop because the attempt took too long. */
  isOutOfTime(): boolean;
}

const BEAT_EVERY = 10_000;

/** Does something that takes a while, and says meanwhile that somebody still works on it. */
export async function whileBeating<T>({ beat }: Pick<Work, 'beat'>, work: () => Promise<T>): Promise<T> {
  const beating = setInterval(() => beat(), BEAT_EVERY);
  try {
    return await work();
  } finally {
    clearInterval(beating);
  }
}
