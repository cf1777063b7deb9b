import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from '../../db/pool.ts';
import type { Place } from '../rows/places.ts';
import { holdsFence, type RunKey, recordProgress } from '../rows/runs.ts';
import { renewPlace } from '../rows/worker-places.ts';
import type { Work } from './work.ts';

/** Another attempt has taken over, or the run has ended, so this attempt must stop. */
export class OvertakenError extends Error {
  override readonly name = 'OvertakenError';
}

/** Why an attempt stops whose place was taken away. */
export const LOST_PLACE = 'The attempt has lost its place at the worker';

/** Neither the source nor the destination has made progress for too long. */
export class StalledError extends Error {
  override readonly name = 'StalledError';
}

/** One attempt at a run, while it lasts. */
export interface Attempt {
  /**
   * Is aborted when the attempt has to stop: its work was told to stop, another attempt took over, or nothing moved.
   */
  signal: AbortSignal;
  /** Throws an OvertakenError if this attempt may not change anything any more. */
  fence(): Promise<void>;
  onProgress(rows: number, bytes: number): void;
  /** Reports progress other than rows, for example bytes from the source. */
  moved(): void;
  close(): Promise<void>;
}

const REPORT_EVERY = 3_000;
/** An attempt stands if nothing has moved for so long, in milliseconds. It keeps its place, but others need not wait. */
const STANDS = 2_000;
/**
 * The longest time without progress, in milliseconds. No source takes longer to find a row, no destination to take one.
 */
const STALL = 30 * 60_000;

/**
 * Reports the progress of an attempt, by beats and in the row of the run, and aborts the attempt when it has to stop.
 */
export function watchAttempt(
  pool: Pool,
  key: RunKey,
  fence: number,
  work: Work,
  {
    stall = STALL,
    stands = STANDS,
    every = REPORT_EVERY,
    place,
  }: {
    stall?: number;
    stands?: number | undefined;
    every?: number | undefined;
    place?: Place | undefined;
  } = {},
): Attempt {
  const stop = new AbortController();
  const closed = new AbortController();
  let rows = 0;
  let bytes = 0;
  let movedAt = performance.now();

  let noting: Promise<void> | undefined;

  /** Ignores a failure of Postgres: the next note comes soon, and the fence is checked before anything changes. */
  async function note(): Promise<void> {
    const progress = { records_completed: rows, bytes_exported: bytes };
    if (place) {
      const placeKey = { projectId: key.projectId, id: key.runId };
      const isStanding = performance.now() - movedAt > stands;
      if (!(await renewPlace(pool, placeKey, place, isStanding).catch(() => true))) {
        stop.abort(new OvertakenError(LOST_PLACE));
        return;
      }
    }
    const mine = await recordProgress(pool, key, fence, progress).catch(() => true);
    if (!mine) stop.abort(new OvertakenError('The run continues without this attempt'));
  }

  function tell(): void {
    work.beat({ rows, bytes });
    if (performance.now() - movedAt > stall) {
      stop.abort(new StalledError(`Nothing moved for ${Math.round(stall / 60_000)} minutes`));
      return;
    }
    // Not awaited, because without beats the attempt counts as dead. They must continue while Postgres is slow.
    noting ??= note().finally(() => {
      noting = undefined;
    });
  }
  const telling = (async () => {
    while (!closed.signal.aborted) {
      await pause(every, undefined, { signal: closed.signal }).catch(() => undefined);
      if (!closed.signal.aborted) tell();
    }
  })();

  return {
    signal: AbortSignal.any([work.signal, stop.signal]),
    async fence() {
      if (!(await holdsFence(pool, key, fence, place?.fence)))
        throw new OvertakenError('The run continues without this attempt');
    },
    onProgress(nowRows, nowBytes) {
      rows = nowRows;
      bytes = nowBytes;
      movedAt = performance.now();
    },
    moved() {
      movedAt = performance.now();
    },
    async close() {
      closed.abort();
      await telling;
      await noting;
    },
  };
}
