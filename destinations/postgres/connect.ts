import type { Socket } from 'node:net';
import pg from 'pg';
import { egressRefusal } from '../../egress/egress-refused.ts';
import type { Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { PATIENCE, patiently } from '../retry.ts';
import type { PostgresConfig } from './config.ts';
import { place, postgresError } from './errors.ts';

const CONNECT_MILLISECONDS = 30_000;
const CONNECT_ATTEMPTS = 5;

async function attempt(config: PostgresConfig, socket: () => Socket, tls: boolean): Promise<pg.Client> {
  const client = new pg.Client({
    host: config.host.trim(),
    port: config.port,
    user: config.user,
    // A function: for an empty text, the client would look for the password of whoever runs Sluice.
    password: () => config.password,
    database: config.database,
    ssl: tls ? { rejectUnauthorized: !config.has_self_signed_cert } : false,
    stream: socket,
    application_name: 'sluice-export',
    connectionTimeoutMillis: CONNECT_MILLISECONDS,
    keepAlive: true,
  });
  // Without a listener, a connection that breaks between two queries would end the process.
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
 * Connects with TLS, and to nobody whose certificate is not trusted. Only to a server that the operator named in
 * SLUICE_EGRESS_ALLOW, and that offers no TLS, does it speak without.
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

/** Runs `work` with a connection of its own, which a cancellation ends at once: the server rolls back. */
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
