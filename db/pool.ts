import pg from 'pg';
import { abandonConnection } from './abandon-connection.ts';
import { lowerPriority } from './backend-priority.ts';

export type Pool = pg.Pool;
/** What a query needs: the pool, or the client of a transaction. */
export type Queryable = Pick<pg.Pool, 'query'>;
export type Transaction = pg.PoolClient;

// bigint columns are counts here and stay below 2^53; timestamps keep their microseconds as text.
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === 20 && format !== 'binary') return Number;
    if (oid === 1184 && format !== 'binary') return timestampToIso;
    return pg.types.getTypeParser(oid, format as 'text');
  },
} as pg.CustomTypesConfig;

/**
 * Converts `2024-01-02 03:04:05.123456+00` to ISO 8601 in UTC, and leaves out a fraction that is zero. 1 BC becomes the
 * year 0.
 */
function timestampToIso(text: string): string {
  const match = /^(\d{4})(-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00( BC)?$/.exec(text);
  if (!match || (match[5] && match[1] !== '0001')) return text;
  const fraction = match[4] ? `.${match[4].padEnd(6, '0')}` : '';
  return `${match[5] ? '0000' : match[1]}${match[2]}T${match[3]}${fraction}Z`;
}

/** The URL of a database, which may become known, or change, while a pool exists. */
export type Address = string | (() => string);

export interface PoolOptions {
  url: Address;
  size: number;
  /** Shown in pg_stat_activity. */
  name: string;
  onError?: (error: Error) => void;
  /** Milliseconds after which a query without an answer is given up. */
  patience?: number;
  /** Milliseconds after which the wait for a connection is given up: 5,000 unless told. */
  connecting?: number;
  /** How long Postgres lets the connections of this pool work and wait. Without it, without end. */
  limits?: PoolLimits | undefined;
  /** Whether its queries make way for those of other pools where Postgres runs on the same machine. */
  makesWay?: boolean;
}

/** Bounds in milliseconds that Postgres itself keeps. */
export interface PoolLimits {
  /** For the wait for a lock. */
  lock?: number;
  statement?: number;
  /** For a whole transaction. Only Postgres 17 and newer keep it. */
  transaction?: number;
  /** How often Postgres looks, while it works, whether the connection is still open. */
  clientCheck?: number;
}

function settingsOf({ lock, statement, clientCheck }: PoolLimits = {}): string {
  const settings = {
    timezone: 'UTC',
    idle_in_transaction_session_timeout: 60_000,
    lock_timeout: lock,
    statement_timeout: statement,
    client_connection_check_interval: clientCheck,
  };
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return given.map(([name, value]) => `-c ${name}=${value}`).join(' ');
}

/** Older servers refuse a connection that sets a name that they do not know, so this one is set afterwards. */
const limitTransactions = (milliseconds: number) => `do $$ begin
  if current_setting('server_version_num')::int >= 170000 then set transaction_timeout = ${milliseconds}; end if;
end $$`;

/** A class of connections. Each connection asks for the address when it is made. */
function clientAt(address: Address): typeof pg.Client {
  const current = typeof address === 'string' ? () => address : address;
  return class extends pg.Client {
    constructor(config: pg.ClientConfig) {
      super({ ...config, connectionString: current() });
    }
  };
}

export function createPool(options: PoolOptions): Pool {
  const longest = options.limits?.transaction;
  const pool = new pg.Pool({
    Client: clientAt(options.url),
    max: options.size,
    application_name: `sluice-${options.name}`,
    connectionTimeoutMillis: options.connecting ?? 5_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    ...(options.patience === undefined ? {} : { query_timeout: options.patience }),
    ...(longest === undefined
      ? {}
      : {
          // The driver waits for the promise, whatever its types say.
          onConnect: async (client) => {
            await client.query(limitTransactions(longest));
          },
        }),
    options: settingsOf(options.limits),
    types,
  });
  // An idle connection that breaks (Postgres restarted) must not end the process; the pool drops it.
  pool.on('error', (error) => options.onError?.(error));
  if (options.makesWay) pool.on('connect', lowerPriority);
  return pool;
}

export interface TransactionOptions {
  /** When it is aborted, the connection is closed and its reason thrown: so only for a transaction that changes nothing. */
  signal?: AbortSignal | undefined;
  /** The statements that begin it, where it needs settings of its own. */
  begin?: string;
}

/** Runs `work` in a transaction on one connection: commits its result, or rolls back and throws. */
export async function transaction<T>(
  pool: Pool,
  work: (client: Transaction) => Promise<T>,
  { signal, begin = 'begin' }: TransactionOptions = {},
): Promise<T> {
  signal?.throwIfAborted();
  const client = await pool.connect();
  let broken: Error | undefined;
  // Without a listener, a connection lost between two queries would end the process.
  const onError = (error: Error) => {
    broken = error;
  };
  const abort = () => {
    broken = signal?.reason as Error;
    abandonConnection(client, broken);
  };
  client.on('error', onError);
  signal?.addEventListener('abort', abort);
  try {
    signal?.throwIfAborted();
    await client.query(begin);
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    // If the connection broke between two queries, the second one only says that there is none.
    const cause = broken ?? error;
    if (!broken) {
      await client.query('rollback').catch((failure: Error) => {
        broken = failure;
      });
    }
    throw signal?.aborted ? signal.reason : cause;
  } finally {
    signal?.removeEventListener('abort', abort);
    client.off('error', onError);
    client.release(broken);
  }
}

/** Runs `work` in a transaction of a connection that the caller has: commits its result, or rolls back and throws. */
export async function within<T>(client: Transaction, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

const UNAVAILABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '53100',
  '25006',
  '08000',
  '08001',
  '08003',
  '08004',
  '08006',
  // A transaction took too long, or did nothing for too long.
  '25P03',
  '25P04',
  // The transaction lost a conflict with another one.
  '40001',
  '40P01',
  '55P03',
]);
const UNAVAILABLE_TEXT =
  /connection terminated|query read timeout|timeout exceeded when trying to connect|client has encountered a connection error|connection ended unexpectedly|not queryable/i;

/** Returns whether an error says that Postgres cannot be used right now, so that the same work may succeed later. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: string }).code;
  if (error instanceof AggregateError) return error.errors.some(isDatabaseUnavailable);
  return (code !== undefined && UNAVAILABLE_CODES.has(code)) || UNAVAILABLE_TEXT.test(error.message);
}

/** Returns whether a statement waited too long for a lock that somebody else holds. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: string } | undefined)?.code === '55P03';
}
