import type { RunStatus } from '../rows/runs.ts';
import type { IntervalEntry } from './interval-states.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** How long after the last time an interval is started again, by how often that was. */
const WAITS = [0, 10 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR] as const;
/** What somebody must have put right first is tried less often: failed runs pause an export in the end. */
const WAITS_AFTER_FAILURE = [0, 6 * HOUR] as const;

/** Ended by somebody, or for a reason that is not ours to judge. */
const MEANT: ReadonlySet<RunStatus> = new Set(['Cancelled', 'FailedBilling']);

export interface Repairs {
  repairs: number;
  repaired_at: string | null;
}

/**
 * Whether a missing interval is to be started again. One whose run failed because the operator must act waits until a
 * later interval was completed: then somebody has acted.
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
  const wait = (failed ? WAITS_AFTER_FAILURE : WAITS)[repairs];
  if (wait === undefined) return false;
  return repaired_at === null || now - Date.parse(repaired_at) >= wait;
}
