import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { PlainError } from '../values/plain-error.ts';
import { LOCKS } from './locks.ts';

export const MIGRATIONS_FOLDER = path.join(import.meta.dirname, 'migrations');
const MINIMUM_POSTGRES = 16;

export interface Migration {
  id: number;
  name: string;
  sql: string;
  hash: string;
}

/** The database cannot be migrated to this version. The message says why and what to do. */
export class MigrationError extends PlainError {
  override readonly name = 'MigrationError';
}

/** Reads the migrations `0001-name.sql` and so on. Their numbers must be consecutive from 1. */
export function readMigrations(folder = MIGRATIONS_FOLDER): Migration[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort();
  return files.map((file, index) => {
    const match = /^(\d{4})-([a-z0-9-]+)\.sql$/.exec(file);
    if (!match || Number(match[1]) !== index + 1) {
      throw new MigrationError(
        `${path.join(folder, file)}: migrations are named 0001-some-words.sql with consecutive numbers; ` +
          `expected ${String(index + 1).padStart(4, '0')} here`,
      );
    }
    const sql = readFileSync(path.join(folder, file), 'utf8');
    return {
      id: index + 1,
      name: match[2] as string,
      sql,
      hash: createHash('sha256').update(sql).digest('hex'),
    };
  });
}

export interface MigrationState {
  /** Migrations that the database has. */
  applied: number;
  /** Migrations that this code has. */
  known: number;
}

/** Returns how many migrations the database has, without changing it. */
export async function migrationState(
  queryable: Pick<pg.Pool, 'query'>,
  migrations = readMigrations(),
): Promise<MigrationState> {
  const exists = await queryable.query(`select to_regclass('public.migrations') is not null as exists`);
  if (!exists.rows[0].exists) return { applied: 0, known: migrations.length };
  const { rows } = await queryable.query('select coalesce(max(id), 0)::int as applied from migrations');
  return { applied: rows[0].applied, known: migrations.length };
}

/**
 * Migrates the database to this version, each migration in a transaction of its own. Any number of processes may call
 * this at once: one works, and the others wait and find nothing left to do.
 */
export async function migrate(
  url: string,
  options: { migrations?: Migration[]; log?: (message: string) => void } = {},
): Promise<MigrationState> {
  const migrations = options.migrations ?? readMigrations();
  const client = new pg.Client({ connectionString: url, application_name: 'sluice-migrate' });
  client.on('error', () => {
    // The running query fails with the same error.
  });
  await client.connect();
  try {
    await requirePostgres(client);
    await client.query('select pg_advisory_lock($1)', [LOCKS.migrate]);
    await client.query(`
      create table if not exists migrations (
        id integer primary key,
        name text not null,
        hash text not null,
        applied_at timestamptz not null default now()
      )`);
    const { rows } = await client.query<{ id: number; name: string; hash: string }>(
      'select id, name, hash from migrations order by id',
    );
    requireKnown(rows, migrations);
    for (const migration of migrations.slice(rows.length)) {
      options.log?.(`applying migration ${migration.id} (${migration.name})`);
      await apply(client, migration);
    }
    return { applied: migrations.length, known: migrations.length };
  } finally {
    await client.end();
  }
}

async function requirePostgres(client: pg.Client): Promise<void> {
  const { rows } = await client.query(`select current_setting('server_version_num')::int as version`);
  const major = Math.floor(rows[0].version / 10_000);
  if (major < MINIMUM_POSTGRES) {
    throw new MigrationError(
      `Sluice needs Postgres ${MINIMUM_POSTGRES} or newer; this server is version ${major}.`,
    );
  }
}

function requireKnown(applied: { id: number; name: string; hash: string }[], migrations: Migration[]): void {
  if (applied.length > migrations.length) {
    const newest = applied.at(-1);
    throw new MigrationError(
      `The database is newer than this Sluice: it has migration ${newest?.id} (${newest?.name}), this version knows ` +
        `${migrations.length}. Start the newer version, or restore a backup made with this one.`,
    );
  }
  for (const [index, row] of applied.entries()) {
    const migration = migrations[index] as Migration;
    if (row.id !== migration.id || row.hash !== migration.hash) {
      throw new MigrationError(
        `Migration ${row.id} (${row.name}) in the database differs from ${migration.name} in this version. ` +
          'A migration must never be changed after it was applied; restore the original file.',
      );
    }
  }
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(migration.sql);
    await client.query('insert into migrations (id, name, hash) values ($1, $2, $3)', [
      migration.id,
      migration.name,
      migration.hash,
    ]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw new MigrationError(
      `Migration ${migration.id} (${migration.name}) failed: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
}

/** Throws unless the database is exactly at this version. Processes that must not migrate (SLUICE_MIGRATE) call it. */
export async function requireCurrent(url: string, migrations = readMigrations()): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'sluice-migrate' });
  client.on('error', () => {
    // The running query fails with the same error.
  });
  await client.connect();
  try {
    const { applied, known } = await migrationState(client, migrations);
    if (applied === known) return;
    throw new MigrationError(
      applied > known
        ? `The database is newer than this Sluice: it has ${applied} migrations, this version knows ${known}.`
        : `The database lacks ${known - applied} of ${known} migrations and SLUICE_MIGRATE is false; apply them with \`npx sluice migrate\`.`,
    );
  } finally {
    await client.end();
  }
}
