import { setTimeout as pause } from 'node:timers/promises';
import { type Actor, requestOf } from '../../tenancy/actor.ts';
import type { ExportCommandDependencies } from './dependencies.ts';

/** How many milliseconds Temporal has to follow, and for how many of them a command waits. */
const PATIENCE = 10_000;
const ANSWER_WITHIN = 3_000;
/** How many it has while it is known to be away. */
const SHORT_PATIENCE = 500;

/**
 * Makes Temporal follow what was committed. A command does not fail if Temporal does not: the row is the truth, and
 * maintenance makes up within a minute for what Temporal missed. A slow Temporal does not hold up the command for long.
 */
export async function follow(
  { temporal, logger }: Pick<ExportCommandDependencies, 'temporal' | 'logger'>,
  actor: Actor,
  what: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const patience = temporal.isReachable() ? PATIENCE : SHORT_PATIENCE;
  const told = temporal.within(patience, work).catch((error) => {
    const about = { ...requestOf(actor), err: error, what };
    logger.warn(about, 'Temporal did not take the change; maintenance makes up for it within a minute');
  });
  const enough = new AbortController();
  const waited = pause(Math.min(patience, ANSWER_WITHIN), undefined, { signal: enough.signal });
  await Promise.race([told, waited.catch(() => undefined)]);
  enough.abort();
}
