import { setTimeout as pause } from 'node:timers/promises';
import { migrate, requireCurrent } from './migrate.ts';
import { isDatabaseUnavailable } from './pool.ts';
import type { GivenAddresses } from './roles/address.ts';
import { keepSqlAccess } from './roles/keep-sql-access.ts';
import { type DatabaseRoles, ensureRoles, findRoles } from './roles/roles.ts';

const PAUSE_MILLISECONDS = 500;

/** Migrates the database and makes its roles. */
export async function setUpDatabase(
  addresses: GivenAddresses,
  log?: (message: string) => void,
): Promise<DatabaseRoles> {
  await migrate(addresses.ownerUrl ?? addresses.url, log ? { log } : {});
  const roles = await ensureRoles(addresses);
  await keepSqlAccess(addresses).catch((error) => {
    if (isDatabaseUnavailable(error)) throw error;
    log?.(`SQL access was not looked after: ${(error as Error).message}`);
  });
  return roles;
}

/**
 * Waits until the database can be reached. Then sets it up, or only checks its version if changing it is not allowed.
 * Throws if the version is wrong or a migration fails, with a sentence that says why.
 */
export async function waitForDatabase(options: {
  addresses: GivenAddresses;
  mayMigrate: boolean;
  stopping: AbortSignal;
  log: (message: string) => void;
  /** Called each time that the database cannot be reached. */
  onAway?: (() => void) | undefined;
}): Promise<DatabaseRoles> {
  let told = false;
  for (;;) {
    options.stopping.throwIfAborted();
    try {
      if (options.mayMigrate) return await setUpDatabase(options.addresses, options.log);
      await requireCurrent(options.addresses.url);
      return await findRoles(options.addresses);
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      if (!told) options.log(`waiting for Postgres: ${(error as Error).message || 'connection refused'}`);
      told = true;
      options.onAway?.();
      await pause(PAUSE_MILLISECONDS, undefined, { signal: options.stopping });
    }
  }
}
