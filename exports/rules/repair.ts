import type { RunStatus } from '../rows/runs.ts';
import type { IntervalEntry } from './interval-states.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/**
 * How long a missing interval waits before it is started again, by the number of times that it was started again
 * before.
 */
const WAITS = [0, 10 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR] as const;
/** The same for an interval whose run failed. It gets fewer tries, because failed runs pause an export in the end. */
const WAITS_AFTER_FAILURE = [0, 6 * HOUR] as const;

/** A run with one of these statuses was ended on purpose, so its interval is not started again. */
const MEANT: ReadonlySet<RunStatus> = new Set(['Cancelled', 'FailedBilling']);

export interface Repairs {
  repairs: number;
  repaired_at: string | null;
}

/**
 * Answers whether to start a missing interval again now. If its run failed, somebody has to act first. That a later
 * interval was completed shows that somebody did.
 */
export function isToBeRepaired(
  entry: Pick<IntervalEntry, 'state' | 'status'>,
  { repairs, repaired_at }: Repairs,
  laterOneIsDone: boolean,
  now: number,
): boolean {
  if (entry.state !== 'missing') return false;
  if (entry.status !== null && MEANT.has(entry.status)) return false;
  const failed = entry.status === 'Failed';
  if (failed && !laterOneIsDone) return false;
  return hasWaited(failed ? WAITS_AFTER_FAILURE : WAITS, { repairs, repaired_at }, now);
}

/**
 * Answers whether to start an interval again now whose files another run damaged. It makes no difference how that run
 * ended: whoever cancelled it did not mean the files of the earlier one.
 */
export const isDamageToBeRepaired = (repairs: Repairs, now: number): boolean =>
  hasWaited(WAITS, repairs, now);

function hasWaited(waits: readonly number[], { repairs, repaired_at }: Repairs, now: number): boolean {
  const wait = waits[repairs];
  if (wait === undefined) return false;
  return repaired_at === null || now - Date.parse(repaired_at) >= wait;
}
