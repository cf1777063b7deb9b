import pg from 'pg';
import { migrationState } from './migrate.ts';

export interface DatabaseReport {
  version: number;
  applied: number;
  known: number;
  organizations: number;
  users: number;
  /** How far Postgres's clock is ahead of this machine's. */
  clockSkewSeconds: number;
  bytes: number;
}

/** Inspects the database without changing it. Throws if the database cannot be reached. */
export async function diagnoseDatabase(url: string): Promise<DatabaseReport> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice-doctor',
    connectionTimeoutMillis: 5_000,
  });
  client.on('error', () => {
    // The running query fails with the same error.
  });
  await client.connect();
  try {
    const { rows } = await client.query(
      `select current_setting('server_version_num')::int / 10000 as version,
         extract(epoch from clock_timestamp())::float8 as now, pg_database_size(current_database())::float8 as bytes`,
    );
    const clockSkewSeconds = rows[0].now - Date.now() / 1000;
    const { applied, known } = await migrationState(client);
    const counts =
      applied > 0
        ? (
            await client.query(
              `select (select count(*)::int from organizations) as organizations,
                 (select count(*)::int from users where is_active) as users`,
            )
          ).rows[0]
        : { organizations: 0, users: 0 };
    return { version: rows[0].version, bytes: rows[0].bytes, applied, known, clockSkewSeconds, ...counts };
  } finally {
    await client.end();
  }
}
