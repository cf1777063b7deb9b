import { setTimeout as pause } from 'node:timers/promises';
import { closeHorizon, readHorizon } from '../../db/horizon.ts';
import type { Pool } from '../../db/pool.ts';
import type { Attempt } from './attempt.ts';

/** How long writers are made to wait for the horizon, in milliseconds: short at first, for they wait with every request. */
const SHORTEST_LOCK = 50;
const LONGEST_LOCK = 2_000;
/** Somebody else may be closing it. */
const BETWEEN = 100;

/** Resolves when nothing can be added any more to what came in before `end`, in milliseconds since 1970. */
export async function untilFinal(
  pool: Pool,
  end: number,
  attempt: Pick<Attempt, 'signal' | 'moved'>,
): Promise<void> {
  const passed = (closed: string | undefined) => closed !== undefined && Date.parse(closed) >= end;
  for (let lock = SHORTEST_LOCK; ; lock = Math.min(lock * 2, LONGEST_LOCK)) {
    attempt.signal.throwIfAborted();
    if (passed(await readHorizon(pool)) || passed(await closeHorizon(pool, lock))) return;
    attempt.moved();
    await pause(BETWEEN, undefined, { signal: attempt.signal }).catch(() => attempt.signal.throwIfAborted());
  }
}
