import { setTimeout as pause } from 'node:timers/promises';
import { type Actor, requestOf } from '../../tenancy/actor.ts';
import type { ExportCommandDependencies } from './dependencies.ts';

/** How long the calls to Temporal may take, and how long a command waits for them, in milliseconds. */
const PATIENCE = 10_000;
const ANSWER_WITHIN = 3_000;
/** How long the calls may take while Temporal is known to be away. */
const SHORT_PATIENCE = 500;

/**
 * Brings a committed change to Temporal. A failure does not fail the command: the rows are the truth, and maintenance
 * repeats the change within a minute. If Temporal is slow, the command does not wait for it.
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
    logger.warn(about, 'Temporal did not accept the change; maintenance repeats it within a minute');
  });
  const enough = new AbortController();
  const waited = pause(Math.min(patience, ANSWER_WITHIN), undefined, { signal: enough.signal });
  await Promise.race([told, waited.catch(() => undefined)]);
  enough.abort();
}
