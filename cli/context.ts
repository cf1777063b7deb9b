import type { Config } from '../config.ts';
import { createPool, type Pool } from '../db/pool.ts';
import type { GivenAddresses } from '../db/roles/address.ts';
import type { ExportTemporal } from '../exports/temporal.ts';
import { type Keyring, parseKeyring } from '../secrets/envelope.ts';
import { ensureKeyFile, keyFile, readKeyFile, writeKeyFile } from '../secrets/key-file.ts';
import { withInstallationDatabase } from '../stack/borrow-postgres.ts';
import { createLogger } from '../telemetry/logger.ts';
import type { KeyPlace } from '../tenancy/encryption-keys.ts';
import { CommandError, UsageError } from './command-error.ts';
import { inert, inertJson } from './inert.ts';
import { absentTemporal, settingsOf, whyNoTemporal } from './installation.ts';

export { CommandError, UsageError };

/** Prints a line. Names and messages in it may come from anybody, so it stays one line that moves no cursor and changes no color. */
export const say = (line: string) => process.stdout.write(`${inert(line)}\n`);
export const sayJson = (value: unknown, indent?: number) =>
  process.stdout.write(`${inertJson(JSON.stringify(value, null, indent))}\n`);
/** Prints progress and remarks to standard error. Standard output carries results only, so that users can pipe it. */
export const remark = (text: string) => process.stderr.write(`${text.split('\n').map(inert).join('\n')}\n`);
/** Hears what does not fail a command. */
export const REMARKS = { warn: (_about: object, message: string) => void remark(message) };
/** Hears why a command fails. Its refusal says only that Temporal is not available, whatever Temporal answered. */
export const CAUSES = {
  warn: ({ err }: { err?: unknown }, message: string) => void remark(`${message}: ${causeOf(err)}`),
};

/** The innermost message: the errors of Temporal's client wrap what the server answered. */
function causeOf(error: unknown): string {
  const { message, details, cause } = error as { message?: string; details?: string; cause?: unknown };
  return cause ? causeOf(cause) : (details ?? message ?? String(error));
}

/** The settings of the installation that the command works on. */
export const settings = (): Config => settingsOf(process.env);

/** Gives the work the database of the installation: the address of its owner, and all that are given. */
export function withUrl<T>(
  work: (url: string, config: Config, database: GivenAddresses) => Promise<T>,
): Promise<T> {
  const config = settings();
  return withInstallationDatabase(config, remark, (url, database) => work(url, config, database));
}

export function withPool<T>(
  work: (pool: Pool, config: Config, database: GivenAddresses) => Promise<T>,
): Promise<T> {
  return withUrl(async (url, config, database) => {
    const pool = createPool({ url, size: 2, name: 'cli' });
    try {
      return await work(pool, config, database);
    } finally {
      await pool.end();
    }
  });
}

/** Gives the work the Temporal of the installation. `needed`: without Temporal there is nothing that the work can do. */
export async function withTemporal<T>(
  config: Config,
  needed: boolean,
  work: (temporal: ExportTemporal) => Promise<T>,
): Promise<T> {
  if (config.TEMPORAL_ADDRESS === undefined) {
    const reason = whyNoTemporal(config);
    if (needed) throw new CommandError(reason);
    remark(reason);
    return work(absentTemporal(reason));
  }
  // Most commands need no Temporal, and its client takes longer to load than they run.
  const { createSchedules } = await import('../schedules/schedules.ts');
  const schedules = createSchedules(config, createLogger({ name: 'cli', level: 'silent' }));
  try {
    if (!(await schedules.reach()) && needed) {
      throw new CommandError('Temporal does not answer, or denies access; `npx sluice doctor` says more.');
    }
    return await work(schedules.exports);
  } finally {
    await schedules.close();
  }
}

/** Returns where the keys of this installation are: in a setting, in the file of a setting, or in the data directory. */
export function keyPlace(config: Config): KeyPlace {
  const text = config.SLUICE_ENCRYPTION_KEYS;
  if (text !== undefined) return { name: 'SLUICE_ENCRYPTION_KEYS', read: () => parseKeyring(text) };
  if (config.SLUICE_ENCRYPTION_KEY_FILE === undefined) ensureKeyFile(config.SLUICE_DATA_DIR);
  const file = config.SLUICE_ENCRYPTION_KEY_FILE ?? keyFile(config.SLUICE_DATA_DIR);
  return {
    name: file,
    read: () => parseKeyring(readKeyFile(file)),
    write: (keyring) => writeKeyFile(file, keyring),
  };
}

/** The keys for the secrets of this installation. */
export const keyringOf = (config: Config): Keyring => keyPlace(config).read();

export const encryptionKeyIds = (config: Config): string[] => [...keyringOf(config).keys.keys()];
