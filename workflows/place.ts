import {
  ActivityFailure,
  ApplicationFailure,
  condition,
  defineSignal,
  setHandler,
} from '@temporalio/workflow';
import type { NoPlace, NoPlaceDetails } from '../activities/failures.ts';
import { PLACE_FREE } from './names.ts';

const NO_PLACE: NoPlace = 'NoPlace';
const MINUTE = 60_000;
/**
 * How long a workflow waits before it asks by itself. It is told when there is a place, and maintenance repeats that, so
 * this happens only if the row that waits for it is lost. The waits grow, so that the history does not.
 */
const FIRST_WAIT = 10 * MINUTE;
const LONGEST_WAIT = 12 * 60 * MINUTE;

/** The queue for a place of a worker, as a workflow sees it. */
export interface PlaceQueue {
  /**
   * Does the work of an activity that takes a place. Where there is none, waits until the workflow is told of one, and
   * does the work anew. Needs no patch: in no history of an older version an activity fails for want of a place.
   */
  inTurn<T>(
    work: () => Promise<T>,
    onWait: (since: string, state: { waits: number; inVain: number }) => void,
  ): Promise<T>;
}

/** Makes the queue. Call it before anything else, so that no signal is missed. */
export function queueForPlace(inVainBefore = 0): PlaceQueue {
  let called = false;
  setHandler(defineSignal(PLACE_FREE), () => {
    called = true;
  });
  let waits = 0;
  let inVain = inVainBefore;
  return {
    async inTurn(work, onWait) {
      for (;;) {
        called = false;
        try {
          return await work();
        } catch (error) {
          const since = waitingSince(error);
          if (since === undefined) throw error;
          waits += 1;
          onWait(since, { waits, inVain });
        }
        if (!(await condition(() => called, Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** inVain)))) inVain += 1;
      }
    },
  };
}

/** Since when the work waits, if an activity failed because there was no place. */
function waitingSince(error: unknown): string | undefined {
  if (!(error instanceof ActivityFailure && error.cause instanceof ApplicationFailure)) return undefined;
  const { type, details } = error.cause;
  return type === NO_PLACE ? (details?.[0] as NoPlaceDetails | undefined)?.since : undefined;
}
