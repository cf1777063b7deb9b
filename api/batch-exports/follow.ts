import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import type { ApiDependencies } from '../dependencies.ts';

/** Milliseconds that Temporal has for it, and those of them that the answer waits. */
const PATIENCE = 10_000;
const ANSWER_WITHIN = 3_000;
/** The same while Temporal is known to be away. */
const SHORT_PATIENCE = 500;

/**
 * Lets Temporal follow what was committed. Whether it does is not for the request: the row is the truth, and maintenance
 * mends within a minute what Temporal missed. The answer does not wait long for one that is slow.
 */
export async function follow(
  { schedules }: Pick<ApiDependencies, 'schedules'>,
  request: FastifyRequest,
  what: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const patience = schedules.isReachable() ? PATIENCE : SHORT_PATIENCE;
  const told = schedules.within(patience, work).catch((error) => {
    request.log.warn({ err: error, what }, 'Temporal did not follow; maintenance will see to it');
  });
  const enough = new AbortController();
  const waited = pause(Math.min(patience, ANSWER_WITHIN), undefined, { signal: enough.signal });
  await Promise.race([told, waited.catch(() => undefined)]);
  enough.abort();
}

/** Waits for all of them, also when one fails: nothing of them goes on behind the back of who asked. */
export async function allOf(works: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
}
