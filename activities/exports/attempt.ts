import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from '@temporalio/activity';
import type { Pool } from '../../db/pool.ts';
import { holdsFence, type RunKey, recordProgress } from '../../exports/rows/runs.ts';

/** Another attempt has taken over, or the run is over: whatever this one still does is for nobody. */
export class OvertakenError extends Error {
  override name = 'OvertakenError';
}

/** Neither source nor destination moved for too long. */
export class StalledError extends Error {
  override name = 'StalledError';
}

/** One attempt at a run, while it lasts. */
export interface Attempt {
  /** Given when the attempt must stop: cancelled, overtaken, stalled. */
  signal: AbortSignal;
  /** Throws if this attempt may not change anything any more. */
  fence(): Promise<void>;
  onProgress(rows: number, bytes: number): void;
  /** Something moved that is no row: bytes of the source, a step. */
  moved(): void;
  close(): Promise<void>;
}

const EVERY = 3_000;
/** No single row takes so long: neither a source that looks for rows nor a destination that takes them. */
const STALL = 30 * 60_000;

/** Tells Temporal and the run's row how far the attempt is, and the attempt when it has to stop. */
export function watchAttempt(
  pool: Pool,
  key: RunKey,
  fence: number,
  context: Context,
  stall: number = STALL,
): Attempt {
  const stop = new AbortController();
  const closed = new AbortController();
  let rows = 0;
  let bytes = 0;
  let movedAt = performance.now();

  let noting: Promise<void> | undefined;

  /** What Postgres does not take now it takes the next time; the fence is asked again before anything is changed. */
  async function note(): Promise<void> {
    const progress = { records_completed: rows, bytes_exported: bytes };
    const mine = await recordProgress(pool, key, fence, progress).catch(() => true);
    if (!mine) stop.abort(new OvertakenError('The run goes on without this attempt'));
  }

  function tell(): void {
    context.heartbeat({ rows, bytes });
    if (performance.now() - movedAt > stall) {
      stop.abort(new StalledError(`Nothing moved for ${Math.round(stall / 60_000)} minutes`));
      return;
    }
    // Not waited for: while Postgres takes its time, Temporal must not think that the worker is gone.
    noting ??= note().finally(() => {
      noting = undefined;
    });
  }
  const telling = (async () => {
    while (!closed.signal.aborted) {
      await pause(EVERY, undefined, { signal: closed.signal }).catch(() => undefined);
      if (!closed.signal.aborted) tell();
    }
  })();

  return {
    signal: AbortSignal.any([context.cancellationSignal, stop.signal]),
    async fence() {
      if (!(await holdsFence(pool, key, fence)))
        throw new OvertakenError('The run goes on without this attempt');
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
