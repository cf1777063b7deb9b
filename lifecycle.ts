import type { Config } from './config.ts';
import { ConfigError, loadConfig } from './config.ts';
import { createPool, type Pool, type PoolOptions } from './db/pool.ts';
import { waitForDatabase } from './db/wait.ts';
import { createLogger, type Logger } from './telemetry/logger.ts';

export interface ProcessContext {
  config: Config;
  logger: Logger;
  /** Returns whether the process was told to stop. */
  isDraining: () => boolean;
  /** Aborted when the process is told to stop. Code that waits listens to it, so that the process can end. */
  stopping: AbortSignal;
  database: {
    url: string;
    /** Creates a pool of connections. `name` is shown in pg_stat_activity. */
    connect(name: string, options: Pick<PoolOptions, 'size' | 'patience' | 'limits'>): Pool;
    /** Resolves when the database is reachable and up to date. */
    prepare(): Promise<void>;
  };
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
  return {
    url,
    connect: (name, options) =>
      createPool({
        ...options,
        url,
        name,
        onError: (error) => logger.warn({ err: error }, 'a connection to Postgres broke'),
      }),
    prepare: () =>
      waitForDatabase({
        url,
        mayMigrate: config.SLUICE_MIGRATE,
        stopping,
        log: (message) => logger.info(message),
      }),
  };
}

/**
 * Runs a process of Sluice: reads the settings, starts it, and stops it in order on SIGTERM, on SIGINT or when its
 * supervisor is gone. A second signal ends it at once.
 */
export async function runProcess(
  name: string,
  start: (context: ProcessContext) => Promise<RunningProcess>,
): Promise<void> {
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
    running = await start({ config, logger, isDraining: () => stopping.aborted, stopping, database });
    process.send?.({ ready: true });
  } catch (error) {
    if (abort.signal.aborted) return;
    logger.fatal({ err: error }, (error as Error).message);
    process.exit(EXIT_CONFIGURATION);
  }
}
