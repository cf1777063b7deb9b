import type { Socket } from 'node:net';
import pg from 'pg';
import { egressRefusal } from '../../egress/egress-refused.ts';
import type { Surroundings } from '../destination.ts';
import { DestinationError, type DestinationErrorCode, networkError, withoutSecrets } from '../errors.ts';
import { PATIENCE, patiently } from '../retry.ts';
import type { PostgresConfig } from './config.ts';

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

/** Turns an error of the server or of the connection into a DestinationError. */
export function postgresError(error: unknown, config: PostgresConfig): DestinationError {
  if (error instanceof DestinationError) return error;
  const where = place(config);
  const said = withoutSecrets((error as Error).message, [config.password, config.user]).slice(0, 500);
  const state = stateOf(error);
  if (state !== undefined && state !== 'EPIPE') {
    const [code, text] = STATES[state] ??
      STATES[state.slice(0, 2)] ?? ['unexpected' as const, 'unexpected error'];
    return new DestinationError(code, `${where}: ${text} (${said}, SQLSTATE ${state})`, { cause: error });
  }
  const below = networkError(error, where);
  if (below) return below;
  if (/timeout expired|timeout exceeded/i.test(said))
    return new DestinationError('timed-out', `${where}: the connection could not be made in time`, {
      cause: error,
    });
  if (/SASL|password must be a string|authentication/i.test(said))
    return new DestinationError('denied', `${where}: ${REFUSED}`, { cause: error });
  if (/connection (terminated|ended)|connection error|not queryable|SSL connection/i.test(said))
    return new DestinationError('interrupted', `${where}: the connection broke`, { cause: error });
  return new DestinationError('unexpected', `${where}: ${said}`, { cause: error });
}

const CONNECT_MILLISECONDS = 30_000;
const CONNECT_ATTEMPTS = 5;

async function attempt(config: PostgresConfig, socket: () => Socket, tls: boolean): Promise<pg.Client> {
  const client = new pg.Client({
    host: config.host.trim(),
    port: config.port,
    user: config.user,
    // A function, since for an empty text the client would look for a password of the user who runs Sluice.
    password: () => config.password,
    database: config.database,
    ssl: tls ? { rejectUnauthorized: !config.has_self_signed_cert } : false,
    stream: socket,
    application_name: 'sluice-export',
    connectionTimeoutMillis: CONNECT_MILLISECONDS,
    keepAlive: true,
  });
  // Without a listener, a connection that breaks between two queries would crash the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.end().catch(() => undefined);
    throw error;
  }
}

const offersNoTls = (error: unknown) => /does not support SSL/i.test((error as Error).message);

/**
 * Connects with TLS and checks the certificate. A connection without TLS is made only to a server that offers none and
 * that the operator has named in SLUICE_EGRESS_ALLOW.
 */
async function connectOnce(config: PostgresConfig, { egress }: Surroundings): Promise<pg.Client> {
  try {
    return await attempt(config, () => egress.socket(), true);
  } catch (error) {
    if (!offersNoTls(error)) throw error;
  }
  try {
    return await attempt(config, () => egress.socket({ listedOnly: true }), false);
  } catch (error) {
    if (!egressRefusal(error)) throw error;
    throw new DestinationError(
      'untrusted',
      `${place(config)}: the server offers no TLS. Only servers that SLUICE_EGRESS_ALLOW names may do without.`,
      { cause: error },
    );
  }
}

/** Runs `work` with a connection of its own. A cancellation closes it at once, and the server rolls back. */
export async function withConnection<T>(
  config: PostgresConfig,
  surroundings: Surroundings,
  signal: AbortSignal | undefined,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const patience = surroundings.patience ?? PATIENCE;
  const client = await patiently(
    async () => {
      try {
        return await connectOnce(config, surroundings);
      } catch (error) {
        throw postgresError(error, config);
      }
    },
    signal,
    { ...patience, attempts: Math.min(patience.attempts, CONNECT_ATTEMPTS) },
  );
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  const cut = () => stream.destroy();
  signal?.addEventListener('abort', cut);
  try {
    signal?.throwIfAborted();
    return await work(client);
  } catch (error) {
    cut();
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', cut);
    await client.end().catch(() => undefined);
  }
}
