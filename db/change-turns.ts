import { type Pool, type Transaction, transaction } from './pool.ts';
import { Turns } from './turns.ts';

/** How many changes of one project may wait. */
const MOST_WAITING = 200;

const turns = new WeakMap<Pool, Turns>();

/**
 * Lets changes of a project that lock the same happen one after the other in this process. They would wait for each other's lock
 * anyway, and each would keep a connection meanwhile that other projects need. Such work must not wait for other such work.
 */
export function inChangeTurn<T>(pool: Pool, projectId: number, work: () => Promise<T>): Promise<T> {
  const shared =
    turns.get(pool) ??
    new Turns({
      ...{ atOnce: Math.ceil(pool.options.max / 2), perAsker: 1, waitingPerAsker: MOST_WAITING },
    });
  turns.set(pool, shared);
  return shared.take({ projectId }, work);
}

/** Changes a project in a transaction, when it is its turn. */
export const changeTransaction = <T>(
  pool: Pool,
  projectId: number,
  work: (client: Transaction) => Promise<T>,
): Promise<T> => inChangeTurn(pool, projectId, () => transaction(pool, work));
