import { availableParallelism } from 'node:os';
import { type Pool, type Transaction, transaction } from './pool.ts';
import { type Asker, Turns } from './turns.ts';

const STATEMENT_TIMEOUT = '15s';

const turns = new WeakMap<Pool, Turns>();

/** A project has half of the turns at most, and no more turns than half of the processor's cores. */
export const shares = (atOnce: number, cores = availableParallelism()) => ({
  atOnce,
  perAsker: Math.max(1, Math.floor(Math.min(atOnce, cores) / 2)),
});

/**
 * Runs work that may keep a connection busy for as long as its caller likes. Each connection of the pool is a turn, and
 * projects share the turns fairly. Such work must not wait for other such work. The pool is for such work alone:
 * everybody else uses another one.
 */
export function inTurn<T>(pool: Pool, asker: Asker, work: () => Promise<T>): Promise<T> {
  const shared = turns.get(pool) ?? new Turns(shares(pool.options.max));
  turns.set(pool, shared);
  return shared.take(asker, work);
}

/**
 * Runs queries whose cost the caller of the API decides. They change nothing, and Postgres ends those that take too
 * long, or whose caller is gone.
 */
export function reading<T>(pool: Pool, asker: Asker, work: (client: Transaction) => Promise<T>): Promise<T> {
  return inTurn(pool, asker, () =>
    transaction(
      pool,
      async (client) => {
        await client.query(`set transaction read only; set local statement_timeout = '${STATEMENT_TIMEOUT}'`);
        return work(client);
      },
      asker.signal,
    ),
  );
}

/** Returns whether a query was ended because it took too long. */
export function isStatementTimeout(error: unknown): boolean {
  return (error as { code?: string }).code === '57014';
}

/** Returns a pattern for LIKE that matches this text only. */
export const literalPattern = (text: string) => text.replace(/[\\%_]/g, '\\$&');

/** Returns a pattern for LIKE that matches whatever begins with this text. */
export const prefixPattern = (text: string) => `${literalPattern(text)}%`;

/** A page of a list ends before it has more than this, whatever its limit. */
export const PAGE_BYTES = 16 * 1024 * 1024;

/**
 * Returns the condition for the rows of a page that fit into it, and for the first one. Each has its `number`, and as
 * `bytes` the size of all rows up to it.
 */
export const fits = (table: string) => `(${table}.bytes <= ${PAGE_BYTES} or ${table}.number = 1)`;
