import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { type SealedColumn, sealedKeyIds } from '../db/sealed-columns.ts';
import { BackupError, type BackupManifest, MANIFEST_FILE } from './manifest.ts';
import { type BackupTable, sequences, tablesInOrder } from './tables.ts';

export interface BackupOptions {
  url: string;
  /** Must not exist yet. It appears only when the backup is complete. */
  directory: string;
  /** Columns with secrets: the backup names the keys that open them. */
  sealed: readonly SealedColumn[];
  report: (line: string) => void;
}

/** Creates a stream that counts and hashes the bytes that pass through it. */
function meter(): { stream: Transform; bytes: () => number; sha256: () => string } {
  const hash = createHash('sha256');
  let bytes = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  return { stream, bytes: () => bytes, sha256: () => hash.digest('hex') };
}

async function backUpTable(
  client: pg.Client,
  directory: string,
  table: BackupTable,
): Promise<BackupManifest['tables'][number]> {
  const file = `${table.name}.copy.zst`;
  const columns = table.columns.map(pg.escapeIdentifier).join(', ');
  const rows = client.query(
    copyTo(`copy (select ${columns} from ${pg.escapeIdentifier(table.name)}) to stdout (format binary)`),
  );
  const measured = meter();
  await pipeline(
    rows,
    createZstdCompress(),
    measured.stream,
    createWriteStream(path.join(directory, file), { mode: 0o600 }),
  );
  const handle = await open(path.join(directory, file), 'r');
  await handle.sync();
  await handle.close();
  return {
    name: table.name,
    columns: table.columns,
    file,
    rows: rows.rowCount ?? 0,
    bytes: measured.bytes(),
    sha256: measured.sha256(),
  };
}

/** Writes the contents of the database as of one moment. The installation keeps working meanwhile. */
export async function backUp(options: BackupOptions): Promise<BackupManifest> {
  const directory = path.resolve(options.directory);
  if (await stat(directory).catch(() => undefined)) {
    throw new BackupError(`${directory} exists already; name a directory that does not.`);
  }
  const draft = `${directory}.partial`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true, mode: 0o700 });
  const client = new pg.Client({ connectionString: options.url, application_name: 'sluice-backup' });
  client.on('error', () => {
    // The running statement fails with the same error.
  });
  try {
    await client.connect();
    await client.query('begin isolation level repeatable read, read only');
    // A user whom row-level security holds gets an error instead of a part of the rows.
    await client.query('set local row_security = off');
    const tables: BackupManifest['tables'] = [];
    for (const table of await tablesInOrder(client)) {
      const done = await backUpTable(client, draft, table);
      options.report(`  ${done.name}: ${done.rows} rows, ${done.bytes} bytes`);
      tables.push(done);
    }
    const { rows: migrations } = await client.query('select id, name, hash from migrations order by id');
    const manifest: BackupManifest = {
      format: 1,
      created_at: new Date().toISOString(),
      migrations,
      encryption_key_ids: await sealedKeyIds(client, options.sealed),
      tables,
      sequences: (await sequences(client)).map(({ name, value }) => ({ name, value: Number(value) })),
    };
    await client.query('commit');
    await writeFile(path.join(draft, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`, {
      mode: 0o600,
      flush: true,
    });
    await rename(draft, directory);
    return manifest;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  } finally {
    await client.end();
  }
}
