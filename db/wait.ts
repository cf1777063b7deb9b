import { setTimeout as pause } from 'node:timers/promises';
import { migrate, requireCurrent } from './migrate.ts';
import { isDatabaseUnavailable } from './pool.ts';

const PAUSE_MILLISECONDS = 500;

/**
 * Waits until the database can be reached. Then migrates it, or only checks its version if migrating is not allowed.
 * Throws if the version is wrong or a migration fails, with a sentence that says why.
 */
export async function waitForDatabase(options: {
  url: string;
  mayMigrate: boolean;
  stopping: AbortSignal;
  log: (message: string) => void;
}): Promise<void> {
  let told = false;
  for (;;) {
    options.stopping.throwIfAborted();
    try {
      if (options.mayMigrate) await migrate(options.url, { log: options.log });
      else await requireCurrent(options.url);
      return;
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      if (!told) options.log(`waiting for Postgres: ${(error as Error).message || 'connection refused'}`);
      told = true;
      await pause(PAUSE_MILLISECONDS, undefined, { signal: options.stopping });
    }
  }
}
