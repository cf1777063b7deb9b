import type { RetryPolicy } from './policy.ts';

/** Statuses that another attempt may change. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Answers whether an attempt with this status may be repeated. Null: there was no answer. */
export function isTemporary(status: number | null, { statuses }: RetryPolicy = {}): boolean {
  if (status === null) return true;
  if (!statuses) return TEMPORARY.has(status);
  const kind = `${Math.floor(status / 100)}xx`;
  return statuses.some((one) => one === status || one === kind);
}

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
/** The first attempts follow each other quickly. */
const QUICK = 3;
const LONGEST_QUICK = 30 * SECOND;
const FIRST_PAUSE = 30 * SECOND;
const LONGEST_PAUSE = HOUR;
/** Somebody who has patience for many days gets longer pauses, and about as many attempts. */
const PAUSES = 60;
/** How long after its event an invocation is repeated. */
export const PATIENCE = 24 * HOUR;

export interface FailedAttempt {
  /** From 1. */
  attempt: number;
  /** Milliseconds since the invocation began to wait. */
  age: number;
  /** When the server wants the next attempt, in milliseconds from now. */
  retryAfter: number | null;
  /** From 0 to 1. */
  random: number;
}

/** In how many milliseconds the next attempt is due. Null: there is none. */
export function nextAttempt(
  { attempt, age, retryAfter, random }: FailedAttempt,
  { max_attempts: most, max_age_seconds: seconds }: RetryPolicy = {},
): number | null {
  if (most !== undefined && attempt >= most) return null;
  const patience = seconds === undefined ? PATIENCE : seconds * SECOND;
  const longest = Math.max(LONGEST_PAUSE, patience / PAUSES);
  const pause =
    attempt < QUICK
      ? Math.min(SECOND * attempt + Math.floor(random * SECOND), LONGEST_QUICK)
      : Math.min(FIRST_PAUSE * 2 ** (attempt - QUICK), longest) * (0.75 + random / 2);
  const after = Math.max(pause, Math.min(retryAfter ?? 0, patience));
  return age + after > patience && attempt >= QUICK ? null : Math.round(after);
}
