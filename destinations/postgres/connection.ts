import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { egressRefusal } from '../../egress/egress-refused.ts';
import { NoAnswerError, secondsText, within } from '../../egress/no-answer.ts';
import type { RunControl, Surroundings } from '../destination.ts';
import { DestinationError, type DestinationErrorCode, networkError, withoutSecrets } from '../errors.ts';
import { type Limits, limitsOf, noAnswerFrom, requestLimit } from '../limits.ts';
import type { PostgresConfig } from './config.ts';
import { CheckedConnection, WireError } from './wire.ts';

const REFUSED =
  'the server refuses this user or password: correct them in the configuration of the export, or at the server';

/** What is wrong, and what the operator can do, by SQLSTATE or by its class of two characters. */
const STATES: Record<string, [DestinationErrorCode, string]> = {
  '08': ['interrupted', 'the connection broke'],
  '22': ['rejected', 'a value does not fit its column'],
  '23': ['rejected', 'a row breaks a constraint of the table: lift it, or name another table'],
  '25006': ['denied', 'the server is read-only: name the one that is written to'],
  '28': ['denied', REFUSED],
  '3D000': ['missing', 'there is no such database: create it, or name another one'],
  '3F000': ['missing', 'there is no such schema: create it, or name another one'],
  '40': ['conflict', 'another transaction stood in the way'],
  '42': ['mismatch', 'the table is not one that this can be written to: change it, or name another one'],
  '42501': [
    'denied',
    'the user lacks a right: it needs usage of the schema, create there or insert, select, update on the table, and temporary on the database',
  ],
  '42P01': ['missing', 'there is no such table'],
  '53': ['unavailable', 'the server lacks resources'],
  '53100': ['full', 'the disk of the server is full: make room'],
  '54': ['rejected', 'a value or the table is beyond what the server can hold'],
  '55': ['conflict', 'somebody else uses the table'],
  '57': ['unavailable', 'the server stopped, or cancelled the work'],
  '58': ['unavailable', 'the server has trouble with its disk'],
  XX: ['unavailable', 'the server has an internal error'],
};

export function place(config: PostgresConfig): string {
  return `Postgres at ${config.host}:${config.port}, table ${JSON.stringify(`${config.schema}.${config.table_name}`)}`;
}

export function stateOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Which value of a COPY the server could not read, if it says so: rows count from 1. */
function spotOf({ where }: { where?: unknown }): string {
  const found = /^COPY [^\n]*, line (\d+), column ([^\n]+?)(?:: "|$)/m.exec(
    typeof where === 'string' ? where : '',
  );
  return found ? `, row ${found[1]}, column ${JSON.stringify(found[2]?.slice(0, 100))}` : '';
}

/** Turns an error of the server or of the connection into a DestinationError. */
export function postgresError(error: unknown, config: PostgresConfig): DestinationError {
  if (error instanceof WireError)
    return new DestinationError('unavailable', `${place(config)}: ${error.message}`);
  if (error instanceof DestinationError) return error;
  const where = place(config);
  const said = withoutSecrets((error as Error).message.slice(0, 64 * 1024), [
    config.password,
    config.user,
  ]).slice(0, 500);
  const state = stateOf(error);
  if (state !== undefined && state !== 'EPIPE') {
    const [code, text] = STATES[state] ??
      STATES[state.slice(0, 2)] ?? ['unexpected' as const, 'unexpected error'];
    return new DestinationError(
      code,
      `${where}${spotOf(error as { where?: unknown })}: ${text} (${said}, SQLSTATE ${state})`,
      { cause: error },
    );
  }
  const below = networkError(error, where);
  if (below) return below;
  if (/SASL|password must be a string|authentication/i.test(said))
    return new DestinationError('denied', `${where}: ${REFUSED}`, { cause: error });
  if (/connection (terminated|ended)|connection error|not queryable|SSL connection/i.test(said))
    return new DestinationError('interrupted', `${where}: the connection broke`, { cause: error });
  return new DestinationError('unexpected', `${where}: ${said}`, { cause: error });
}

async function attempt(
  config: PostgresConfig,
  socket: Socket,
  tls: boolean,
  signal: AbortSignal,
): Promise<pg.Client> {
  const ssl = tls ? { rejectUnauthorized: !config.has_self_signed_cert } : false;
  const options: pg.ClientConfig & { connection: pg.Connection } = {
    connection: new CheckedConnection({ stream: () => socket, ssl, keepAlive: true }),
    host: config.host.trim(),
    port: config.port,
    user: config.user,
    // A function, since for an empty text the client would look for a password of the user who runs Sluice.
    password: () => config.password,
    database: config.database,
    ssl,
    application_name: 'sluice-export',
  };
  const client = new pg.Client(options);
  // Without a listener, a connection that breaks between two queries would crash the process.
  client.on('error', () => undefined);
  const cut = () => socket.destroy();
  signal.addEventListener('abort', cut);
  try {
    await client.connect();
    signal.throwIfAborted();
    return client;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', cut);
  }
}

const offersNoTls = (error: unknown) => /does not support SSL/i.test((error as Error).message);

/**
 * Connects with TLS and checks the certificate. A connection without TLS is made only to a server that offers none and
 * that the operator has named in SLUICE_EGRESS_ALLOW.
 */
function connect(
  config: PostgresConfig,
  { egress, ...surroundings }: Surroundings,
  signal: AbortSignal | undefined,
): Promise<pg.Client> {
  const where = `${config.host.trim()}:${config.port}`;
  const message = (limit: string) => `cannot connect to ${where}: no answer within ${limit}`;
  return within(limitsOf(surroundings).answer, message, signal, async (stop) => {
    try {
      return await attempt(config, egress.socket(), true, stop);
    } catch (error) {
      if (!offersNoTls(error)) throw error;
    }
    stop.throwIfAborted();
    try {
      return await attempt(config, egress.socket({ listedOnly: true }), false, stop);
    } catch (error) {
      if (!egressRefusal(error)) throw error;
      throw new DestinationError(
        'untrusted',
        `${place(config)}: the server offers no TLS. Only servers that SLUICE_EGRESS_ALLOW names may do without.`,
        { cause: error },
      );
    }
  });
}

const streamOf = (client: pg.Client) =>
  (client as unknown as { connection: { stream: Socket } }).connection.stream;

/** What a server that does not answer is doing, as far as another connection to it can tell. */
type Doing = 'working' | 'nothing' | 'unknown';

/** A connection whose statements end: those of a few rows soon, all others when the server no longer works on them. */
export class Session {
  readonly client: pg.Client;
  readonly #config: PostgresConfig;
  readonly #surroundings: Surroundings;
  readonly #limits: Limits;
  readonly #onWait: RunControl['onWait'];
  /** Which process of which server serves the transaction. A pooler may give the next transaction another one. */
  #backend: { pid: number; since: string } | undefined;

  constructor(
    client: pg.Client,
    config: PostgresConfig,
    surroundings: Surroundings,
    onWait?: RunControl['onWait'],
  ) {
    this.client = client;
    this.#config = config;
    this.#surroundings = surroundings;
    this.#limits = limitsOf(surroundings);
    this.#onWait = onWait;
  }

  /** Begins a transaction with these settings. */
  async begin(settings = ''): Promise<void> {
    await this.query(`begin; ${settings}`);
    const { rows } = await this.query<{ pid: number; since: string }>(
      'select pg_backend_pid() as pid, pg_postmaster_start_time()::text as since',
    );
    this.#backend = rows[0];
  }

  /** Runs a statement that any server answers at once. */
  async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>> {
    const over = this.#onWait?.(place(this.#config));
    return within(this.#limits.answer, noAnswerFrom('the server'), undefined, () =>
      this.client.query<Row>(text, values),
    ).finally(over);
  }

  /** Runs a statement that may take long, such as one over all rows. `what` completes "Waits for the server to …". */
  run<Row extends pg.QueryResultRow>(what: string, text: string): Promise<pg.QueryResult<Row>> {
    return this.whileWorking(what, () => this.client.query<Row>(text));
  }

  /**
   * Waits for what the server does, as long as it works on it. A server that has nothing to do for this connection, or
   * that cannot be reached any more, has fallen silent. `bytes` may still be on their way to it.
   */
  async whileWorking<T>(what: string, work: () => Promise<T>, bytes = 0): Promise<T> {
    const { answer, statement } = this.#limits;
    const least = requestLimit(this.#limits, bytes);
    const over = this.#onWait?.(`${place(this.#config)} to ${what}`);
    const began = performance.now();
    const result = work();
    try {
      for (;;) {
        const done = await settledWithin(answer, result);
        if (done) return await result;
        const waited = performance.now() - began;
        if (waited > statement)
          throw new NoAnswerError(`it took longer than ${secondsText(statement)} to ${what}`);
        if (waited < least || (await this.#doing()) !== 'nothing') continue;
        // The answer may have come while the other connection asked.
        if (await settledWithin(answer / 10, result)) return await result;
        throw new NoAnswerError(`the server fell silent: it was to ${what}, and does nothing any more`);
      }
    } finally {
      over?.();
    }
  }

  /** Asks the server over another connection what the process of this one does. */
  async #doing(): Promise<Doing> {
    let other: pg.Client | undefined;
    try {
      const asked = await connect(this.#config, this.#surroundings, undefined);
      other = asked;
      const { rows } = await within(this.#limits.answer, noAnswerFrom('the server'), undefined, () =>
        asked.query<{ same: boolean; state: string | null; event: string | null }>(
          `select pg_postmaster_start_time()::text = $2 as same, state, wait_event as event
           from (values (1)) as one left join pg_catalog.pg_stat_activity on pid = $1`,
          [this.#backend?.pid ?? 0, this.#backend?.since ?? ''],
        ),
      );
      const [found] = rows;
      // Another server behind the same address knows nothing of this one.
      if (!found?.same) return 'unknown';
      if (found.state === 'disabled') return 'unknown';
      return found.state === 'active' && found.event !== 'ClientRead' ? 'working' : 'nothing';
    } catch (error) {
      const { code } = postgresError(error, this.#config);
      return ['timed-out', 'unreachable', 'interrupted'].includes(code) ? 'nothing' : 'unknown';
    } finally {
      if (other) await close(other);
    }
  }
}

/** Answers whether a promise is settled within the time. */
async function settledWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  const enough = new AbortController();
  const settled = work.then(
    () => true,
    () => true,
  );
  const late = pause(milliseconds, false, { signal: enough.signal }).catch(() => false);
  return Promise.race([settled, late]).finally(() => enough.abort());
}

const CLOSING_MILLISECONDS = 1_000;

/** Says good-bye. A server that does not hang up then is not waited for. */
async function close(client: pg.Client): Promise<void> {
  const ended = client.end().catch(() => undefined);
  if (!(await settledWithin(CLOSING_MILLISECONDS, ended))) streamOf(client).destroy();
}

/** Runs `work` with a connection of its own. A cancellation closes it at once, and the server rolls back. */
export async function withConnection<T>(
  config: PostgresConfig,
  surroundings: Surroundings,
  { signal, onWait }: Pick<RunControl, 'signal' | 'onWait'>,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const over = onWait?.(place(config));
  const client = await connect(config, surroundings, signal)
    .catch((error) => {
      signal?.throwIfAborted();
      throw postgresError(error, config);
    })
    .finally(over);
  const cut = () => streamOf(client).destroy();
  signal?.addEventListener('abort', cut);
  try {
    signal?.throwIfAborted();
    return await work(new Session(client, config, surroundings, onWait));
  } catch (error) {
    cut();
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', cut);
    await close(client);
  }
}
