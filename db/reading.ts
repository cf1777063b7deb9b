import { availableParallelism } from 'node:os';
import { abandonConnection } from './abandon-connection.ts';
import { backendOf, memoryOf } from './backend-priority.ts';
import { type Pool, type Transaction, transaction } from './pool.ts';
import { quoted } from './sql-literal.ts';
import { type Asker, Turns } from './turns.ts';

const STATEMENT_MILLISECONDS = 15_000;

const turns = new WeakMap<Pool, Turns>();

/**
 * A project has half of the turns at most, and no more turns than half of the processor's cores. One is kept for those who ask for
 * little.
 */
export const shares = (atOnce: number, cores = availableParallelism()) => ({
  atOnce,
  kept: 1,
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
export function reading<T>(
  pool: Pool,
  asker: Asker,
  work: (client: Transaction) => Promise<T>,
  settings: Readonly<Record<string, string>> = {},
): Promise<T> {
  const bounds = { timeoutMs: STATEMENT_MILLISECONDS, settings, signal: asker.signal };
  return inTurn(pool, asker, () => readOnly(pool, bounds, work));
}

/** How a transaction reads. */
export interface ReadBounds {
  /** The milliseconds of each of its statements. */
  timeoutMs: number;
  /** Settings of Postgres for this transaction. */
  settings?: Readonly<Record<string, string>>;
  /** Is aborted when nobody waits for the result any more. Postgres then stops. */
  signal?: AbortSignal | undefined;
  /** The memory that Postgres may take for it, where Postgres runs on the same machine. */
  mostMemory?: number;
}

/**
 * Postgres bounds what it sorts and joins, but not rows that are all alike: it cannot divide them when it joins them. A query that
 * is in order takes less.
 */
const MOST_MEMORY = 1024 ** 3;
const LOOK_MILLISECONDS = 500;

/** Postgres took too much memory for a query. */
export class TooMuchMemoryError extends Error {
  override readonly name = 'TooMuchMemoryError';
  /** As of a query that is refused for its size. */
  readonly code = '54000';

  constructor(bytes: number) {
    super(
      `The query takes more than ${bytes / 1024 ** 2} MiB of memory. Choose a shorter range of time, add conditions, or join ` +
        'by something that fewer rows have in common.',
    );
  }
}

/** Ends the connection of a client whose process takes too much memory. Returns how to stop looking. */
function watchMemory(client: Transaction, most: number): () => void {
  const backend = backendOf(client);
  if (!backend) return () => undefined;
  let isOver = false;
  const timer = setInterval(async () => {
    const bytes = await memoryOf(backend);
    if (bytes === undefined || bytes <= most || isOver) return;
    abandonConnection(client, new TooMuchMemoryError(most));
  }, LOOK_MILLISECONDS);
  return () => {
    isOver = true;
    clearInterval(timer);
  };
}

/** Runs statements in a transaction that changes nothing. */
export function readOnly<T>(
  pool: Pool,
  { timeoutMs, settings = {}, signal, mostMemory = MOST_MEMORY }: ReadBounds,
  work: (client: Transaction) => Promise<T>,
): Promise<T> {
  const given = Object.entries({
    ...settings,
    statement_timeout: String(Math.max(1, Math.floor(timeoutMs))),
  });
  const local = given.map(([name, value]) => `; set local ${name} = ${quoted(value)}`);
  const run = async (client: Transaction) => {
    const stop = watchMemory(client, mostMemory);
    try {
      return await work(client);
    } finally {
      stop();
    }
  };
  return transaction(pool, run, { signal, begin: `begin read only${local.join('')}` });
}

/**
 * SQLSTATEs of errors that a query itself causes, so that trying again does not help. Class 22 is about the data, 42 and 0A are
 * about the statement, and 54 is about something too large or too complex. 42501 says that the reader lacks a right, which is
 * not the fault of a user.
 */
const QUERY_STATES = /^(22|42(?!501)|54|0A).{3}$/;
/** A value of a gigabyte or more has no SQLSTATE of its own. */
const TOO_LARGE = /^invalid memory alloc request size/;

/** Returns whether Postgres refuses the query itself, so that trying again does not help. */
export function refusesQuery(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (typeof code === 'string' && QUERY_STATES.test(code)) || TOO_LARGE.test(String(message));
}

/** Returns whether a query was ended because it took too long. */
export function isStatementTimeout(error: unknown): boolean {
  return (error as { code?: string }).code === '57014';
}

/** A page of a list ends before it has more than this, whatever its limit. */
export const PAGE_BYTES = 16 * 1024 * 1024;

/**
 * Returns the condition for the rows of a page that fit into it, and for the first one. Each has its `number`, and as
 * `bytes` the size of all rows up to it.
 */
export const fits = (table: string) => `(${table}.bytes <= ${PAGE_BYTES} or ${table}.number = 1)`;
