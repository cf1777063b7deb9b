import pg from 'pg';
import { migrationState } from './migrate.ts';
import { secondsBehind } from './person-carrying.ts';

export interface DatabaseReport {
  version: number;
  applied: number;
  known: number;
  organizations: number;
  users: number;
  /** How far Postgres's clock is ahead of this machine's. */
  clockSkewSeconds: number;
  bytes: number;
  /** The memory that Postgres keeps pages in. */
  bufferBytes: number;
  /** How large its log may grow between two checkpoints. */
  logBytes: number;
  /** How old the copied properties of persons are. Null: there are none. */
  personsBehindSeconds: number | null;
  /** How many connections Postgres accepts from users like this one. */
  connections: number;
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
         extract(epoch from clock_timestamp())::float8 as now, pg_database_size(current_database())::float8 as bytes,
         pg_size_bytes(current_setting('shared_buffers'))::float8 as "bufferBytes",
         pg_size_bytes(current_setting('max_wal_size'))::float8 as "logBytes",
         current_setting('max_connections')::int
           - (select sum(setting::int)::int from pg_settings
              where name in ('superuser_reserved_connections', 'reserved_connections')) as connections`,
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
    const personsBehindSeconds = applied === known ? await secondsBehind(client) : null;
    const { now: _, ...found } = rows[0];
    return { ...found, applied, known, clockSkewSeconds, ...counts, personsBehindSeconds };
  } finally {
    await client.end();
  }
}
