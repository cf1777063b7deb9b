import { migrate, migrationState, readMigrations } from '../db/migrate.ts';
import { createPool, isDatabaseUnavailable } from '../db/pool.ts';
import { bootstrap } from '../tenancy/bootstrap.ts';
import { type Credentials, credentialsFile, readCredentials, writeCredentials } from './credentials.ts';
import { type Report, StackProblem } from './problem.ts';

export interface Addresses {
  base_url: string;
  temporal_ui_url: string | null;
}

export interface PreparedDatabase {
  /** Undefined if another machine set up the installation, so that this data directory has no keys. */
  credentials: Credentials | undefined;
  firstStart: boolean;
}

export interface DatabaseToPrepare {
  url: string;
  dataDir: string;
  addresses: Addresses;
  /** Whether DATABASE_URL names the database. */
  external: boolean;
  /** SLUICE_MIGRATE. */
  mayMigrate: boolean;
  report: Report;
}

/** Migrates the database, sets up an empty installation, and writes credentials.json. */
export async function prepareDatabase(options: DatabaseToPrepare): Promise<PreparedDatabase> {
  const { url, dataDir } = options;
  const pool = createPool({ url, size: 1, name: 'stack' });
  try {
    if (options.mayMigrate) await migrate(url, { log: (line) => options.report(`  ${line}`) });
    else await requireMigrated(pool);
    const addresses = { ...options.addresses, capture_url: options.addresses.base_url };
    let written: Credentials | undefined;
    await bootstrap(pool, {}, (made) => {
      written = { ...addresses, ...made };
      writeCredentials(dataDir, ordered(written));
    });
    if (written) return { credentials: written, firstStart: true };
    const known = readCredentials(dataDir);
    if (!known) return { credentials: undefined, firstStart: false };
    // Ports may have changed since.
    const credentials = ordered({ ...known, ...addresses });
    if (JSON.stringify(credentials) !== JSON.stringify(known)) writeCredentials(dataDir, credentials);
    return { credentials, firstStart: false };
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

/** A failed connection to a name with several addresses is an AggregateError without a message. */
function describe(error: unknown): string {
  const { code, message } = error as Error & { code?: string };
  return message || code || String(error);
}

/** The hint for a data directory without credentials.json, when the database already has keys. */
export function missingCredentialsHint(dataDir: string): string {
  return (
    `There is no ${credentialsFile(dataDir)}, and Sluice cannot show existing keys again. If you need a key, ` +
    'create one with "npx sluice key create".'
  );
}
