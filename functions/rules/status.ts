import { STATE, WATCHER } from './watcher.ts';

/** Whether a function runs, as the API shows it. */
export interface Status {
  state: number;
  rating: number;
  tokens: number;
}

const UNKNOWN = 0;

/** What is known of the runs of a function. Null: they have cost nothing. */
export type Watched = {
  state: number;
  /** What was left of the bucket so many seconds ago. */
  tokens: number;
  seconds: number;
  /** For how many seconds the function is disabled. */
  disabled_for: number | null;
} | null;

/** A function that is not enabled has no state. */
export function statusOf({ enabled, watched }: { enabled: boolean; watched: Watched }): Status {
  if (!enabled) return { state: UNKNOWN, rating: 0, tokens: 0 };
  if (!watched) return { state: STATE.healthy, rating: 1, tokens: WATCHER.bucket };
  const isOver = watched.state === STATE.disabled && (watched.disabled_for ?? 0) <= 0;
  const tokens = Math.round(Math.min(WATCHER.bucket, watched.tokens + WATCHER.refill * watched.seconds));
  return {
    state: isOver ? STATE.degraded : watched.state,
    rating: Math.min(1, Math.max(0, tokens / WATCHER.bucket)),
    tokens,
  };
}
