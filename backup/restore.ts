import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { migrate, migrationState, readMigrations } from '../db/migrate.ts';
import type { Queryable } from '../db/pool.ts';
import { BackupError, type BackupManifest, readBackupManifest } from './manifest.ts';
import { tablesInOrder } from './tables.ts';

export interface RestoreOptions {
  url: string;
  directory: string;
  /** Ids of the keys that this installation has. */
  encryptionKeyIds: string[];
  /** What products do after their rows are there; see tenancy/product.ts. */
  restored?: readonly ((queryable: Queryable) => Promise<string | undefined>)[];
  report: (line: string) => void;
}

async function requireWhole(directory: string, manifest: BackupManifest): Promise<void> {
  for (const table of manifest.tables) {
    const hash = createHash('sha256');
    const file = path.join(directory, table.file);
    try {
      await pipeline(createReadStream(file), hash);
    } catch (error) {
      throw new BackupError(
        `The backup is incomplete: ${file} cannot be read (${(error as Error).message}).`,
      );
    }
    if (hash.digest('hex') !== table.sha256) {
      throw new BackupError(`The backup is damaged: ${file} does not match its checksum in the manifest.`);
    }
  }
}

/** Refuses a backup whose migrations are not the first migrations of this version. */
function requireKnownMigrations(manifest: BackupManifest): void {
  const known = readMigrations();
  if (manifest.migrations.length > known.length) {
    throw new BackupError(
      `The backup was made by a newer Sluice (${manifest.migrations.length} migrations, this version knows ${known.length}).`,
    );
  }
  const different = manifest.migrations.find((one, index) => known[index]?.hash !== one.hash);
  if (different) {
    throw new BackupError(
      `The backup was made by another Sluice: its migration ${different.id} (${different.name}) differs from ` +
        'the one in this version.',
    );
  }
}

async function requireEmpty(client: pg.Client): Promise<void> {
  for (const { name } of await tablesInOrder(client)) {
    const { rowCount } = await client.query(`select 1 from ${pg.escapeIdentifier(name)} limit 1`);
    if (rowCount) {
      throw new BackupError(
        `The database is not empty (${name} has rows). A backup can only be restored into an empty one. Choose ` +
          'another data directory (SLUICE_DATA_DIR) or database (DATABASE_URL).',
      );
    }
  }
}

async function fill(
  client: pg.Client,
  directory: string,
  manifest: BackupManifest,
  report: RestoreOptions['report'],
) {
  // What rows set off has happened already.
  const triggers = async (state: 'disable' | 'enable') => {
    for (const { name } of manifest.tables) {
      await client.query(`alter table ${pg.escapeIdentifier(name)} ${state} trigger user`);
    }
  };
  await triggers('disable');
  for (const table of manifest.tables) {
    const columns = table.columns.map(pg.escapeIdentifier).join(', ');
    const sink = client.query(
      copyFrom(`copy ${pg.escapeIdentifier(table.name)} (${columns}) from stdin (format binary)`),
    );
    await pipeline(createReadStream(path.join(directory, table.file)), createZstdDecompress(), sink);
    if (sink.rowCount !== table.rows) {
      throw new BackupError(
        `${table.name}: ${sink.rowCount} rows were restored, the backup has ${table.rows}.`,
      );
    }
    report(`  ${table.name}: ${table.rows} rows`);
  }
  await triggers('enable');
  for (const { name, value } of manifest.sequences) {
    await client.query('select setval($1::regclass, $2)', [`public.${pg.escapeIdentifier(name)}`, value]);
  }
}

/** Restores a backup into an empty database, completely or not at all, and migrates the database to this version. */
export async function restore(options: RestoreOptions): Promise<BackupManifest> {
  const manifest = readBackupManifest(options.directory);
  const lacking = manifest.encryption_key_ids.filter((id) => !options.encryptionKeyIds.includes(id));
  if (lacking.length > 0) {
    throw new BackupError(
      `The backup holds secrets sealed with the key${lacking.length > 1 ? 's' : ''} ${lacking.join(', ')}, which this ` +
        'installation does not have. Put the old encryption-keys file into the data directory, or set SLUICE_ENCRYPTION_KEYS.',
    );
  }
  requireKnownMigrations(manifest);
  await requireWhole(options.directory, manifest);

  const client = new pg.Client({ connectionString: options.url, application_name: 'sluice-restore' });
  client.on('error', () => {
    // The running statement fails with the same error.
  });
  await client.connect();
  try {
    const { applied } = await migrationState(client);
    if (applied > manifest.migrations.length) {
      throw new BackupError(
        `The database has ${applied} migrations, the backup ${manifest.migrations.length}; restore into a new database.`,
      );
    }
    await migrate(options.url, { migrations: readMigrations().slice(0, manifest.migrations.length) });
    await requireEmpty(client);
    await client.query('begin');
    await fill(client, options.directory, manifest, options.report);
    for (const hook of options.restored ?? []) {
      const told = await hook(client);
      if (told !== undefined) options.report(told);
    }
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    await client.end();
  }
  await migrate(options.url);
  return manifest;
}
