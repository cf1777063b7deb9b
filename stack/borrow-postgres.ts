import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../config.ts';
import { type GivenAddresses, givenAddresses } from '../db/roles/address.ts';
import { lockInstance } from './file-lock.ts';
import { readPassword } from './postgres/cluster.ts';
import { startPostgres } from './postgres.ts';
import { type Report, StackProblem } from './problem.ts';

/** The line of postmaster.pid that holds the port. */
const PORT_LINE = 3;

/** The URL of the embedded Postgres that `npm start` runs now; undefined if it does not run. */
export async function runningDatabaseUrl(dataDir: string): Promise<string | undefined> {
  const cluster = path.join(dataDir, 'postgres');
  const file = path.join(cluster, 'postmaster.pid');
  if (!existsSync(file)) return undefined;
  const port = readFileSync(file, 'utf8').split('\n')[PORT_LINE]?.trim();
  return port ? `postgres://postgres:${await readPassword(cluster)}@127.0.0.1:${port}/sluice` : undefined;
}

/**
 * Gives a command the URL of the installation's database, as its owner: the one in SLUICE_OWNER_DATABASE_URL or
 * DATABASE_URL, or the embedded Postgres. If the embedded Postgres does not run, it runs for the duration of the
 * command.
 */
export async function withInstallationDatabase<T>(
  config: Config,
  report: Report,
  work: (url: string, database: GivenAddresses) => Promise<T>,
): Promise<T> {
  if (config.DATABASE_URL) {
    const database = givenAddresses(config.DATABASE_URL, config);
    return work(database.ownerUrl ?? database.url, database);
  }
  const dataDir = config.SLUICE_DATA_DIR;
  let lock: ReturnType<typeof lockInstance>;
  try {
    lock = lockInstance(dataDir);
  } catch (error) {
    // Another process, usually `npm start`, already runs the embedded Postgres.
    const url = error instanceof StackProblem ? await runningDatabaseUrl(dataDir) : undefined;
    if (!url) throw error;
    return work(url, { url });
  }
  try {
    report('Starting the embedded Postgres for this command …');
    const postgres = await startPostgres({
      dataDir,
      cacheDir: config.SLUICE_CACHE_DIR,
      memoryMb: config.SLUICE_POSTGRES_MEMORY_MB,
      port: 0,
      report,
    });
    try {
      return await work(postgres.url, { url: postgres.url });
    } finally {
      await postgres.stop();
    }
  } finally {
    lock.release();
  }
}
