import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { Turns } from '../../db/turns.ts';

/** How many changes of the flags of one project may wait. */
const MOST_WAITING = 200;

const turns = new WeakMap<Pool, Turns>();

/**
 * Lets the changes of a project's flags happen one after the other in this process. They would wait for each other's lock
 * anyway, and each would keep a connection meanwhile that other projects need.
 */
export function inFlagTurn<T>(pool: Pool, projectId: number, work: () => Promise<T>): Promise<T> {
  const shared =
    turns.get(pool) ??
    new Turns({
      ...{ atOnce: Math.ceil(pool.options.max / 2), perAsker: 1, waitingPerAsker: MOST_WAITING },
    });
  turns.set(pool, shared);
  return shared.take({ projectId }, work);
}

/** Changes flags of a project in a transaction, when it is their turn. */
export const flagTransaction = <T>(
  pool: Pool,
  projectId: number,
  work: (client: Transaction) => Promise<T>,
): Promise<T> => inFlagTurn(pool, projectId, () => transaction(pool, work));
