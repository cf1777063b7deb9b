import { randomUUID } from 'node:crypto';
import { appendFile, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { backUp } from '../../backup/backup.ts';
import type { BackupManifest } from '../../backup/manifest.ts';
import { restore } from '../../backup/restore.ts';
import { tablesInOrder } from '../../backup/tables.ts';
import { createIngest } from '../../capture/ingest.ts';
import { SEALING_SIZES, sealEventIds } from '../../db/event-id-sealing.ts';
import { findEvent } from '../../db/events.ts';
import type { Pool } from '../../db/pool.ts';
import { createPool } from '../../db/pool.ts';
import { PRODUCTS } from '../../products.ts';
import { sealedColumns } from '../../tenancy/product.ts';
import { capturedEvent } from '../capture/support.ts';
import { createTenant } from '../support/api.ts';
import { databaseForFile, withDatabase } from '../support/database.ts';
import { insertFunctionOf } from '../support/function-rows.ts';
import { idsOf } from '../support/routes.ts';

const database = databaseForFile();
let directory: string;
let backup: string;
const report = () => undefined;
const sealed = sealedColumns(PRODUCTS);

/** Everything in the database, as text. */
async function contents(pool: Pool): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const { name } of await tablesInOrder(pool)) {
    const { rows } = await pool.query(`select t::text as row from ${pg.escapeIdentifier(name)} t order by 1`);
    found[name] = rows.map((row) => row.row);
  }
  return found;
}

async function withEmptyDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const name = `empty_${process.pid}_${Date.now()}`;
  const url = new URL(database.url);
  await database.pool.query(`create database ${name} template template0`);
  url.pathname = `/${name}`;
  try {
    return await work(url.href);
  } finally {
    await database.pool.query(`drop database ${name} with (force)`);
  }
}

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'sluice-backup-'));
  backup = path.join(directory, 'first');
  for (const name of ['Anna', 'Änne "the\ttab"', 'Bob\\N']) await createTenant(database.pool, name);
  await backUp({ url: database.url, directory: backup, sealed, report });
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

describe('a backup', () => {
  test('restored into an empty database gives the same rows, and numbering goes on', async () => {
    const before = await contents(database.pool);
    expect(before.users).toHaveLength(3);
    await withEmptyDatabase(async (url) => {
      await restore({ url, directory: backup, encryptionKeyIds: [], report });
      const pool = createPool({ url, size: 2, name: 'test' });
      try {
        expect(await contents(pool)).toEqual(before);
        const tenant = await createTenant(pool, 'After the restore');
        const { rows } = await database.pool.query('select max(id) as id from users');
        expect(tenant.userId).toBe(rows[0].id + 1);
      } finally {
        await pool.end();
      }
    });
  });

  test('has no queries in the background and no results, which are kept for an hour', async () => {
    await withDatabase(async (other) => {
      const { projectId } = await createTenant(other.pool, 'Zoe');
      await other.pool.query(
        `insert into background_queries (project_id, id, state, expires_at, result)
         values ($1, 'a', 'completed', now() + interval '1 hour', '018f0000-0000-7000-8000-000000000001')`,
        [projectId],
      );
      await other.pool.query(
        `insert into background_query_parts values ($1, '018f0000-0000-7000-8000-000000000001', 1, 'secret')`,
        [projectId],
      );
      const directoryOf = path.join(directory, 'background');
      await backUp({ url: other.url, directory: directoryOf, sealed, report });
      const { tables }: BackupManifest = JSON.parse(
        await readFile(path.join(directoryOf, 'manifest.json'), 'utf8'),
      );
      expect(
        tables.map(({ name }) => name).filter((name) => /^background_|notice_secret/.test(name)),
      ).toEqual([]);
      await withEmptyDatabase(async (url) => {
        await restore({ url, directory: directoryOf, encryptionKeyIds: [], report });
        const pool = createPool({ url, size: 1, name: 'test' });
        try {
          const found = await pool.query(
            `select (select count(*)::int from background_queries) as queries, (select count(*)::int from notice_secret) as secrets`,
          );
          expect(found.rows).toEqual([{ queries: 0, secrets: 1 }]);
        } finally {
          await pool.end();
        }
      });
    });
  });

  test('has the ids that are sealed, with their filters', async () => {
    await withDatabase(async (other) => {
      const uuids = Array.from({ length: 900 }, () => randomUUID());
      const send = async (pool: Pool) => {
        const ingest = createIngest({ pool });
        const events = uuids.map((uuid) => capturedEvent({ uuid }));
        try {
          return await ingest.submit({ projectId: 1, events });
        } finally {
          await ingest.close();
        }
      };
      expect((await send(other.pool)).stored).toBe(900);
      const work = { signal: new AbortController().signal, beat: () => undefined };
      expect(await sealEventIds(other.pool, work, { ...SEALING_SIZES, segment: 500, slice: 400 })).toBe(500);
      const sealedBackup = path.join(directory, 'sealed');
      await backUp({ url: other.url, directory: sealedBackup, sealed, report });
      await withEmptyDatabase(async (url) => {
        await restore({ url, directory: sealedBackup, encryptionKeyIds: [], report });
        const pool = createPool({ url, size: 3, name: 'test' });
        try {
          const { rows } = await pool.query(
            `select (select count(*)::int from event_ids) as left,
               array(select number from event_id_filter_sets) as filters,
               array(select distinct number from filtered_event_ids(array_fill(1, array[900]), $1)) as found`,
            [uuids],
          );
          expect(rows).toEqual([{ left: 400, filters: [1], found: [1] }]);
          expect(await send(pool)).toMatchObject({ stored: 0, duplicates: 900 });
          const sealedId = await pool.query(
            `select encode(substr(ids, 1, 16), 'hex')::uuid as uuid from event_id_blocks limit 1`,
          );
          const found = await findEvent(pool, { projectId: 1 }, sealedId.rows[0].uuid);
          expect(found?.uuid).toBe(sealedId.rows[0].uuid);
        } finally {
          await pool.end();
        }
      });
    });
  });

  test('of functions has them as they were, and nothing that waited is sent again unasked', async () => {
    const tenant = await createTenant(database.pool, 'Functions');
    await insertFunctionOf(database.pool, tenant);
    const { id } = idsOf(tenant);
    const { projectId } = tenant;
    await database.pool.query(
      "update functions set enabled = true, type = 'internal_destination', enabled_at = '2026-01-01' where id = $1",
      [id],
    );
    await database.pool.query(
      `insert into function_internal_events (project_id, event, distinct_id, properties) values ($1, 'one', 'x', '{}')`,
      [projectId],
    );
    await database.pool.query(
      `insert into function_batches (xid, events, projects, partition, keys) values ('7', 1, array[$1::int], 'events_default', '')`,
      [projectId],
    );
    const { rows: before } = await database.pool.query(
      'select id from function_queue where project_id = $1 order by id',
      [projectId],
    );
    expect(before.length).toBeGreaterThan(0);
    const to = path.join(directory, 'functions');
    await backUp({ url: database.url, directory: to, sealed, report });
    const told: string[] = [];
    const restored = PRODUCTS.flatMap((one) => (one.restored ? [one.restored] : []));
    const versions = 'select project_id, version::int from function_projects order by 1';
    const functions = 'select id, enabled_at, updated_at, version from functions order by 1';
    await withEmptyDatabase(async (url) => {
      await restore({
        url,
        directory: to,
        encryptionKeyIds: [],
        restored,
        report: (line) => told.push(line),
      });
      const pool = createPool({ url, size: 2, name: 'test' });
      try {
        for (const query of [versions, functions]) {
          expect((await pool.query(query)).rows).toEqual((await database.pool.query(query)).rows);
        }
        for (const table of ['function_queue', 'function_batches', 'function_internal_events']) {
          expect([table, (await pool.query(`select from ${table}`)).rowCount]).toEqual([table, 0]);
        }
        const { rows } = await pool.query(
          "select id, status, error from function_invocations where error like 'A backup was restored%' order by id",
        );
        expect(rows.map((row) => [row.id, row.status])).toEqual(before.map((row) => [row.id, 'cancelled']));
        // Triggers work again.
        await pool.query('update functions set name = $1', ['after']);
        expect((await pool.query(versions)).rows).not.toEqual((await database.pool.query(versions)).rows);
      } finally {
        await pool.end();
      }
    });
    expect(told.at(-1)).toBe(
      `${before.length} invocations of functions waited when the backup was made. They are cancelled, so that nothing is sent twice.`,
    );
  });

  test('is as of one moment although rows are added meanwhile', async () => {
    const writer = new pg.Client({ connectionString: database.url });
    await writer.connect();
    let writing = true;
    const adding = (async () => {
      for (let n = 0; writing; n += 1) {
        await writer.query('insert into wizard_sessions (hash, expires_at) values ($1, now())', [`h${n}`]);
        await writer.query(
          `insert into activity_log (id, scope, item_id, activity) values (gen_random_uuid(), 'Test', $1, 'created')`,
          [`h${n}`],
        );
      }
    })();
    const target = path.join(directory, 'busy');
    const manifest = await backUp({ url: database.url, directory: target, sealed, report });
    writing = false;
    await adding;
    await writer.end();
    const rows = (name: string) => manifest.tables.find((table) => table.name === name)?.rows ?? Number.NaN;
    // Each session is written just before its log entry: of one moment, at most one entry is still missing.
    const difference = rows('wizard_sessions') - rows('activity_log');
    expect([0, 1]).toContain(difference);
  });

  test('appears only when it is whole, and replaces nothing', async () => {
    await expect(backUp({ url: database.url, directory: backup, sealed, report })).rejects.toThrow(
      `${backup} exists already; name a directory that does not.`,
    );
    const target = path.join(directory, 'unreachable');
    await expect(
      backUp({ url: 'postgres://u@127.0.0.1:1/x', directory: target, sealed, report }),
    ).rejects.toThrow();
    expect((await readdir(directory)).filter((name) => name.startsWith('unreachable'))).toEqual([]);
  });
});

describe('a restore refuses', () => {
  const damaged = async (change: (copy: string) => Promise<void>) => {
    const copy = await mkdtemp(path.join(directory, 'damaged-'));
    await cp(backup, copy, { recursive: true });
    await change(copy);
    return copy;
  };
  const editManifest = (edit: (manifest: BackupManifest) => void) =>
    damaged(async (copy) => {
      const file = path.join(copy, 'manifest.json');
      const manifest = JSON.parse(await readFile(file, 'utf8'));
      edit(manifest);
      await writeFile(file, JSON.stringify(manifest));
    });

  const cases: [string, () => Promise<string>, RegExp][] = [
    [
      'a changed file',
      () => damaged((copy) => appendFile(path.join(copy, 'users.copy.zst'), 'x')),
      /users\.copy\.zst does not match its checksum/,
    ],
    [
      'a missing file',
      () => damaged((copy) => rm(path.join(copy, 'projects.copy.zst'))),
      /incomplete: .*projects\.copy\.zst/,
    ],
    [
      'a directory that is no backup',
      () => damaged((copy) => rm(path.join(copy, 'manifest.json'))),
      /is not a backup/,
    ],
    [
      'a manifest of another format',
      () => editManifest((manifest) => Object.assign(manifest, { format: 2 })),
      /not a manifest of this version: format/,
    ],
    [
      'a backup of a newer version',
      () =>
        editManifest((manifest) =>
          manifest.migrations.push(...Array(99).fill({ id: 1, name: 'x', hash: 'x' })),
        ),
      /made by a newer Sluice/,
    ],
    [
      'a backup of a changed schema',
      () => editManifest((manifest) => Object.assign(manifest.migrations[0] as object, { hash: 'x' })),
      /made by another Sluice: its migration 1/,
    ],
    [
      'secrets without their key',
      () => editManifest((manifest) => Object.assign(manifest, { encryption_key_ids: ['k7'] })),
      /sealed with the key k7, which this installation does not have/,
    ],
  ];

  test.each(cases)('%s, and changes nothing', async (_name, make, message) => {
    const copy = await make();
    await withEmptyDatabase(async (url) => {
      await expect(restore({ url, directory: copy, encryptionKeyIds: ['k1'], report })).rejects.toThrow(
        message,
      );
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query(
        `select count(*)::int as count from pg_tables where schemaname = 'public'`,
      );
      await client.end();
      expect(rows[0].count).toBe(0);
    });
  });

  test('a database that is not empty', async () => {
    await withDatabase(async (other) => {
      await createTenant(other.pool, 'Somebody');
      const before = await contents(other.pool);
      await expect(
        restore({ url: other.url, directory: backup, encryptionKeyIds: [], report }),
      ).rejects.toThrow(/The database is not empty/);
      expect(await contents(other.pool)).toEqual(before);
    });
  });

  test('to leave half a restore behind when a row cannot be stored', async () => {
    await withDatabase(async (other) => {
      await other.pool.query(`alter table projects add constraint none check (name = '')`);
      await expect(
        restore({ url: other.url, directory: backup, encryptionKeyIds: [], report }),
      ).rejects.toThrow(/violates check/);
      const after = await contents(other.pool);
      expect(Object.values(after).flat()).toEqual([]);
    });
  });
});
