/** Statuses that another attempt may change. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Answers whether an attempt with this status may be repeated. Null: there was no answer. */
export const isTemporary = (status: number | null): boolean => status === null || TEMPORARY.has(status);

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
/** The first attempts follow each other quickly. */
const QUICK = 3;
const LONGEST_QUICK = 30 * SECOND;
const FIRST_PAUSE = 30 * SECOND;
const LONGEST_PAUSE = HOUR;
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
export function nextAttempt({ attempt, age, retryAfter, random }: FailedAttempt): number | null {
  const pause =
    attempt < QUICK
      ? Math.min(SECOND * attempt + Math.floor(random * SECOND), LONGEST_QUICK)
      : Math.min(FIRST_PAUSE * 2 ** (attempt - QUICK), LONGEST_PAUSE) * (0.75 + random / 2);
  const after = Math.max(pause, Math.min(retryAfter ?? 0, PATIENCE));
  return age + after > PATIENCE && attempt >= QUICK ? null : Math.round(after);
}
