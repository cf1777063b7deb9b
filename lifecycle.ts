import { randomUUID } from 'node:crypto';
import os from 'node:os';
import type { Config } from './config.ts';
import { ConfigError, loadConfig } from './config.ts';
import { announceKeys, findLatestRotation, withdrawKeys } from './db/encryption-keys.ts';
import { type Address, createPool, type Pool, type PoolOptions } from './db/pool.ts';
import { givenAddresses } from './db/roles/address.ts';
import type { DatabaseRoles, SecondWall } from './db/roles/roles.ts';
import { waitForDatabase } from './db/wait.ts';
import { type Keyring, marksOf } from './secrets/envelope.ts';
import { openKeys } from './secrets/key-source.ts';
import { createLogger, type Logger } from './telemetry/logger.ts';
import { Gauge, type Registry } from './telemetry/metrics.ts';

export interface ProcessContext {
  config: Config;
  logger: Logger;
  /** Returns whether the process was told to stop. */
  isDraining: () => boolean;
  /** Aborted when the process is told to stop. Code that waits listens to it, so that the process can end. */
  stopping: AbortSignal;
  keys: ProcessKeys;
  database: {
    url: string;
    /** The address of the database for a role. The reader has none before the database is prepared. */
    addressOf(role: Role): Address;
    /** Creates a pool of connections, by default as the server. `name` is shown in pg_stat_activity. */
    connect(
      name: string,
      options: Pick<PoolOptions, 'size' | 'patience' | 'limits' | 'makesWay'> & { role?: Role },
    ): Pool;
    /**
     * Resolves when the database is reachable and up to date, and its roles are known. Calls `onAway` if it has to wait
     * for the database.
     */
    prepare(onAway?: () => void): Promise<void>;
    /** Adds a metric that tells whether the second wall is up. */
    registerMetrics(registry: Registry): void;
  };
}

/** Who connects: the `server` runs statements of our own, the `reader` what is compiled from texts of users. */
export type Role = 'server' | 'reader';

export interface ProcessKeys {
  /** Undefined: there are none. The keys of a file change with it. */
  keyring: Keyring | undefined;
  /** Tells others which keys this process holds, until it stops. Resolves when that is known. */
  announce(pool: Pool): Promise<void>;
  /** Ends that. */
  withdraw(): Promise<void>;
}

export interface RunningProcess {
  /** Finishes what is in flight and closes everything. */
  stop(): Promise<void>;
}

/** The exit status for a wrong setting or a wrong database. Starting the process again does not help. */
export const EXIT_CONFIGURATION = 78;
const GRACE_SECONDS = 1;

function databaseOf(config: Config, logger: Logger, stopping: AbortSignal): ProcessContext['database'] {
  const url = config.DATABASE_URL;
  if (!url) {
    throw new Error('DATABASE_URL is not set. `npm start` runs a Postgres of its own; otherwise set it.');
  }
  const addresses = givenAddresses(url, config);
  let roles: DatabaseRoles | undefined;
  const addressOf = (role: Role) => () => {
    if (roles) return roles[role];
    if (role === 'server') return url;
    throw new Error('The database is not prepared yet.');
  };
  return {
    url,
    addressOf,
    connect: (name, { role = 'server', ...options }) =>
      createPool({
        url: addressOf(role),
        ...options,
        name,
        onError: (error) => logger.warn({ err: error }, 'a connection to Postgres broke'),
      }),
    async prepare(onAway) {
      const log = (message: string) => logger.info(message);
      const mayMigrate = config.SLUICE_MIGRATE;
      roles = await waitForDatabase({ addresses, mayMigrate, stopping, log, onAway });
      tellOfWall(logger, roles.wall);
    },
    registerMetrics(registry) {
      new Gauge({
        name: 'sluice_second_wall',
        help: '1 if Postgres itself keeps what users write within their project, 0 if the second wall is off',
        registers: [registry],
        collect() {
          if (roles) this.set(roles.wall.up ? 1 : 0);
          else this.reset();
        },
      });
    },
  };
}

/** How often a process says which keys it holds, and how long that counts, in milliseconds. */
const ANNOUNCE_EVERY = 3_000;
const ANNOUNCED_FOR = 30_000;

function keysOf(config: Config, name: string, logger: Logger): ProcessKeys {
  const source = openKeys(config);
  const holder = { id: randomUUID(), process: name, host: os.hostname(), pid: process.pid };
  let timer: NodeJS.Timeout | undefined;
  let pool: Pool | undefined;
  let round: Promise<void> | undefined;
  let told = '';
  /** Logs a fault once, not with each round. */
  const tell = (message: string, err?: unknown) => {
    if (message !== '' && message !== told) logger.error({ err }, message);
    told = message;
  };
  async function announceTo(queryable: Pool): Promise<void> {
    try {
      source.refresh();
      const { keyring } = source;
      const keys = keyring ? marksOf(keyring) : [];
      await announceKeys(queryable, { ...holder, keys }, ANNOUNCED_FOR);
      const latest = await findLatestRotation(queryable);
      const lacks = latest && !keys.some((one) => one.fingerprint === latest.fingerprint);
      tell(
        lacks
          ? `this process lacks the encryption key ${latest.id} of the latest rotation; give it to it`
          : '',
      );
    } catch (error) {
      tell('the encryption keys could not be read or announced; trying again', error);
    }
  }
  return {
    keyring: source.keyring,
    async announce(given) {
      pool = given;
      await announceTo(given);
      timer = setInterval(() => {
        round ??= announceTo(given).finally(() => {
          round = undefined;
        });
      }, ANNOUNCE_EVERY).unref();
    },
    async withdraw() {
      clearInterval(timer);
      await round;
      if (pool) await withdrawKeys(pool, holder.id).catch(() => undefined);
    },
  };
}

function tellOfWall(logger: Logger, wall: SecondWall): void {
  if (!wall.up) {
    const remedy = wall.sql ? 'The SQL that puts it up is in this entry; docs/operations.md says more.' : '';
    logger.warn({ sql: wall.sql }, `second wall off: ${wall.reason}. ${remedy}`.trim());
  } else if (wall.sql) {
    logger.info(
      { sql: wall.sql },
      'the second wall is up, but the reader may call functions that it does not need; a superuser can close them',
    );
  }
}

/**
 * Runs a process of Sluice: reads the settings, starts it, and stops it in order on SIGTERM, on SIGINT or when its
 * supervisor is gone. A second signal ends it at once.
 */
export async function runProcess(
  name: string,
  start: (context: ProcessContext) => Promise<RunningProcess>,
): Promise<void> {
  // What the process writes is for nobody but its user.
  process.umask(0o077);
  let config: Config;
  try {
    config = loadConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(EXIT_CONFIGURATION);
  }
  const logger = createLogger({ name, level: config.SLUICE_LOG_LEVEL });
  const abort = new AbortController();
  let running: RunningProcess | undefined;

  async function stop(reason: string): Promise<void> {
    if (abort.signal.aborted) process.exit(1);
    abort.abort();
    logger.info({ reason }, 'stopping');
    const overdue = setTimeout(
      () => {
        logger.warn('stopping took too long; unfinished work is abandoned');
        process.exit(1);
      },
      (config.SLUICE_SHUTDOWN_SECONDS + GRACE_SECONDS) * 1000,
    );
    overdue.unref();
    try {
      await running?.stop();
      logger.info('stopped');
      process.exit(0);
    } catch (error) {
      logger.error({ err: error }, 'stopping failed');
      process.exit(1);
    }
  }
  process.on('SIGTERM', () => void stop('SIGTERM'));
  process.on('SIGINT', () => void stop('SIGINT'));
  process.on('disconnect', () => void stop('the supervisor is gone'));
  process.on('uncaughtException', (error) => {
    logger.fatal({ err: error }, 'unexpected failure');
    process.exit(1);
  });
  process.on('unhandledRejection', (error) => {
    logger.fatal({ err: error }, 'unexpected failure');
    process.exit(1);
  });

  try {
    const { signal: stopping } = abort;
    const database = databaseOf(config, logger, stopping);
    const keys = keysOf(config, name, logger);
    running = await start({ config, logger, isDraining: () => stopping.aborted, stopping, database, keys });
    process.send?.({ ready: true });
  } catch (error) {
    if (abort.signal.aborted) return;
    logger.fatal({ err: error }, (error as Error).message);
    process.exit(EXIT_CONFIGURATION);
  }
}
