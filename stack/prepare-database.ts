import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';
import { migrationState, readMigrations } from '../db/migrate.ts';
import { createPool, isDatabaseUnavailable } from '../db/pool.ts';
import type { GivenAddresses } from '../db/roles/address.ts';
import { type DatabaseRoles, findRoles } from '../db/roles/roles.ts';
import { setUpDatabase } from '../db/wait.ts';
import { bootstrap } from '../tenancy/bootstrap.ts';
import { type Report, StackProblem } from './problem.ts';

/** The content of `credentials.json` in the data directory, which tools and tests of the operator read. */
export interface Credentials {
  base_url: string;
  capture_url: string;
  /** Null if an external Temporal is used and TEMPORAL_UI_URL is not set. */
  temporal_ui_url: string | null;
  personal_api_key: string;
  project_api_key: string;
  organization_id: string;
  project_id: number;
}

export function credentialsFile(dataDir: string): string {
  return path.join(dataDir, 'credentials.json');
}

/** The credentials of an earlier start. Undefined if there are none or the file cannot be read. */
function readCredentials(dataDir: string): Credentials | undefined {
  try {
    const found = JSON.parse(readFileSync(credentialsFile(dataDir), 'utf8'));
    return typeof found?.personal_api_key === 'string' && typeof found.project_api_key === 'string'
      ? found
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Replaces the file in one step, so that a reader sees either the old or the new credentials. Only the owner can read
 * it.
 */
function writeCredentials(dataDir: string, credentials: Credentials): void {
  const file = credentialsFile(dataDir);
  const draft = `${file}.${process.pid}`;
  const handle = openSync(draft, 'w', 0o600);
  try {
    writeSync(handle, `${JSON.stringify(credentials, null, 2)}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(draft, file);
}

interface Addresses {
  base_url: string;
  temporal_ui_url: string | null;
}

export interface PreparedDatabase {
  /** Undefined if the installation was set up elsewhere, so that this data directory has no keys. */
  credentials: Credentials | undefined;
  firstStart: boolean;
  /** The addresses for the processes of Sluice. */
  roles: DatabaseRoles;
}

interface DatabaseToPrepare {
  database: GivenAddresses;
  dataDir: string;
  addresses: Addresses;
  /** Whether DATABASE_URL names the database, so that it is the operator's own. */
  external: boolean;
  /** The setting SLUICE_MIGRATE. */
  mayMigrate: boolean;
  report: Report;
}

/** Migrates the database, makes its roles, sets up an empty installation, and writes credentials.json. */
export async function prepareDatabase(options: DatabaseToPrepare): Promise<PreparedDatabase> {
  const { database, dataDir } = options;
  const url = database.ownerUrl ?? database.url;
  const pool = createPool({ url, size: 1, name: 'stack' });
  try {
    if (!options.mayMigrate) await requireMigrated(pool);
    const roles = options.mayMigrate
      ? await setUpDatabase(database, (line) => options.report(`  ${line}`))
      : await findRoles(database);
    const addresses = { ...options.addresses, capture_url: options.addresses.base_url };
    let written: Credentials | undefined;
    await bootstrap(pool, {}, (made) => {
      written = { ...addresses, ...made };
      writeCredentials(dataDir, ordered(written));
    });
    if (written) return { roles, credentials: written, firstStart: true };
    const known = readCredentials(dataDir);
    if (!known) return { roles, credentials: undefined, firstStart: false };
    // Ports may have changed since.
    const credentials = ordered({ ...known, ...addresses });
    if (JSON.stringify(credentials) !== JSON.stringify(known)) writeCredentials(dataDir, credentials);
    return { roles, credentials, firstStart: false };
  } catch (error) {
    if (!options.external || !isDatabaseUnavailable(error)) throw error;
    const { host } = new URL(url);
    throw new StackProblem(
      `The Postgres at ${host} (DATABASE_URL) cannot be used: ${describe(error)}. Start it, or unset DATABASE_URL so that Sluice runs its own Postgres.`,
      { cause: error },
    );
  } finally {
    await pool.end();
  }
}

function ordered(one: Credentials): Credentials {
  return {
    base_url: one.base_url,
    capture_url: one.capture_url,
    temporal_ui_url: one.temporal_ui_url,
    personal_api_key: one.personal_api_key,
    project_api_key: one.project_api_key,
    organization_id: one.organization_id,
    project_id: one.project_id,
  };
}

async function requireMigrated(pool: Parameters<typeof migrationState>[0]): Promise<void> {
  const { applied, known } = await migrationState(pool, readMigrations());
  if (applied < known) {
    throw new StackProblem(
      `The database has only ${applied} of ${known} migrations, and SLUICE_MIGRATE is false. Run \`npx sluice migrate\`, or set SLUICE_MIGRATE=true.`,
    );
  }
}

/**
 * The reason of an error. A failed connection to a name with several addresses gives an AggregateError without a
 * message.
 */
function describe(error: unknown): string {
  const { code, message } = error as Error & { code?: string };
  return message || code || String(error);
}

/** The hint for a person whose data directory has no keys of the installation. */
export function missingCredentialsHint(dataDir: string): string {
  return (
    `There is no ${credentialsFile(dataDir)}, and Sluice cannot show existing keys again. If you need a key, ` +
    'create one with "npx sluice key create".'
  );
}
