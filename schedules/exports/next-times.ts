import { type Cadence, intervalAt } from '../../intervals/index.ts';
import { instantText } from '../../values/dates.ts';

/** What the server says of a schedule that fires at the ends of intervals. */
export interface Firings {
  /** When it fires next, in milliseconds, with its delay. */
  next: readonly number[];
  /** The longest delay. */
  jitter: number;
  startAt: number | undefined;
  endAt: number | undefined;
}

/** Temporal's times are exact, ours are whole milliseconds. */
const ROUNDING = 1_000;

/**
 * Compares when the server fires next with when intervals end. Says how they differ, or nothing if they agree. Firings in the
 * past, which the server is about to catch up with, are compared too.
 */
export function outOfStep(cadence: Cadence, firings: Firings, now: number): string | undefined {
  const { next, jitter, startAt = now, endAt = Number.POSITIVE_INFINITY } = firings;
  const first = intervalAt(cadence, Math.max(now, startAt - 1)).end;
  const [earliest] = next;
  if (earliest === undefined) {
    return first > endAt
      ? undefined
      : `it does not fire any more, and an interval ends at ${instantText(first)}`;
  }
  let edge = intervalAt(cadence, earliest).start;
  for (const at of next) {
    if (at < edge || at > edge + jitter + ROUNDING || (edge > first && at === earliest)) {
      const expected = at === earliest ? Math.min(first, intervalAt(cadence, at).end) : edge;
      return `it fires at ${instantText(at)}, and the interval ends at ${instantText(expected)}`;
    }
    edge = intervalAt(cadence, edge).end;
  }
  return undefined;
}
