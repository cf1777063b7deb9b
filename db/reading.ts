import { type Pool, type Transaction, transaction } from './pool.ts';

const STATEMENT_TIMEOUT = '15s';
/** Milliseconds that a query waits for its turn. */
const PATIENCE = 10_000;

/** Too many queries whose cost their callers decide are under way, so this one did not get its turn. */
export class TooManyReadsError extends Error {
  override readonly name = 'TooManyReadsError';
}

interface Line {
  free: number;
  readonly waiting: Set<() => void>;
}
const lines = new WeakMap<Pool, Line>();

async function join(line: Line): Promise<void> {
  if (line.free > 0) {
    line.free -= 1;
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      line.waiting.delete(turn);
      reject(new TooManyReadsError('Too many queries are under way at the moment. Try again.'));
    }, PATIENCE);
    const turn = () => {
      clearTimeout(timer);
      resolve();
    };
    line.waiting.add(turn);
  });
}

function leave(line: Line): void {
  const [next] = line.waiting;
  if (next === undefined) {
    line.free += 1;
    return;
  }
  line.waiting.delete(next);
  next();
}

/**
 * Runs work that may keep a connection busy for as long as its caller likes. It waits for its turn, so that half of the
 * pool is left to everybody else. Such work must not wait for other such work.
 */
export async function inTurn<T>(pool: Pool, work: () => Promise<T>): Promise<T> {
  const line = lines.get(pool) ?? { free: Math.max(1, Math.floor(pool.options.max / 2)), waiting: new Set() };
  lines.set(pool, line);
  await join(line);
  try {
    return await work();
  } finally {
    leave(line);
  }
}

/**
 * Runs queries whose cost the caller of the API decides. They change nothing, and Postgres ends those that take too
 * long.
 */
export function reading<T>(pool: Pool, work: (client: Transaction) => Promise<T>): Promise<T> {
  return inTurn(pool, () =>
    transaction(pool, async (client) => {
      await client.query(`set transaction read only; set local statement_timeout = '${STATEMENT_TIMEOUT}'`);
      return work(client);
    }),
  );
}

/** Returns whether a query was ended because it took too long. */
export function isStatementTimeout(error: unknown): boolean {
  return (error as { code?: string }).code === '57014';
}

/** Returns a pattern for LIKE that matches whatever begins with this text. */
export const prefixPattern = (text: string) => `${text.replace(/[\\%_]/g, '\\$&')}%`;
