import { FULL_BUCKET, STATE } from './watcher.ts';

/** Whether a function runs, as the API shows it. */
export interface Status {
  state: number;
  rating: number;
  tokens: number;
}

const UNKNOWN = 0;

/** What is known of the runs of a function. Null: they have cost nothing. */
export type Watched = { state: number; tokens: number } | null;

/** A function that is not enabled has no state. */
export function statusOf({ enabled, watched }: { enabled: boolean; watched: Watched }): Status {
  if (!enabled) return { state: UNKNOWN, rating: 0, tokens: 0 };
  const { state, tokens } = watched ?? { state: STATE.healthy, tokens: FULL_BUCKET };
  const whole = Math.round(tokens);
  return { state, rating: Math.min(1, Math.max(0, whole / FULL_BUCKET)), tokens: whole };
}
