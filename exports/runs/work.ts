import type { Work } from '../../tenancy/product.ts';

export type { Work } from '../../tenancy/product.ts';

/** One attempt at work that is repeated when it fails. */
export interface WorkAttempt extends Work {
  /** Counts the attempts, from 1. */
  readonly number: number;
  /** Answers whether the work has to stop because the attempt took too long. */
  isOutOfTime(): boolean;
}

/** Work failed, and no further attempt follows. */
export class LastAttemptError extends Error {
  override readonly name = 'LastAttemptError';
}

const BEAT_EVERY = 10_000;

/** Does work that takes a while, and meanwhile reports that it continues. */
export async function whileBeating<T>({ beat }: Pick<Work, 'beat'>, work: () => Promise<T>): Promise<T> {
  const beating = setInterval(() => beat(), BEAT_EVERY);
  try {
    return await work();
  } finally {
    clearInterval(beating);
  }
}
