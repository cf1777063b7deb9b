import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { type Migration, migrate, migrationState, readMigrations, requireCurrent } from '../../db/migrate.ts';
import { withDatabase } from '../support/database.ts';

const known = readMigrations();
const extra = (id: number, sql: string, name = 'extra'): Migration => ({
  id,
  name,
  sql,
  hash: `hash of ${sql}`,
});
const folder = mkdtempSync(path.join(tmpdir(), 'sluice-migrations-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('migrations', () => {
  test('ten installers at once: each is applied once', async () => {
    await withDatabase(async ({ url, pool }) => {
      const next = [
        ...known,
        extra(known.length + 1, 'create table once (n integer); insert into once values (1)'),
        extra(known.length + 2, 'insert into once values (2)'),
      ];
      const lines: string[] = [];
      const states = await Promise.all(
        Array.from({ length: 10 }, () => migrate(url, { migrations: next, log: (line) => lines.push(line) })),
      );
      expect(states).toEqual(Array(10).fill({ applied: next.length, known: next.length }));
      expect((await pool.query('select n from once order by n')).rows).toEqual([{ n: 1 }, { n: 2 }]);
      expect(lines).toEqual([
        `applying migration ${known.length + 1} (extra)`,
        `applying migration ${known.length + 2} (extra)`,
      ]);
    });
  });

  test('ten installers of an empty database', async () => {
    await withDatabase(async ({ url, pool }) => {
      await pool.query('drop schema public, hq, sluice_sql cascade; create schema public');
      await Promise.all(Array.from({ length: 10 }, () => migrate(url)));
      expect(await migrationState(pool)).toEqual({ applied: known.length, known: known.length });
      expect((await pool.query('select count(*)::int as count from organizations')).rows).toEqual([
        { count: 0 },
      ]);
    });
  });

  test('a database newer than the code is refused', async () => {
    await withDatabase(async ({ url, pool }) => {
      await pool.query(`insert into migrations (id, name, hash) values ($1, 'from-the-future', 'x')`, [
        known.length + 1,
      ]);
      await expect(migrate(url)).rejects.toThrow(
        `The database is newer than this Sluice: it has migration ${known.length + 1} (from-the-future), this version ` +
          `knows ${known.length}. Start the newer version, or restore a backup made with this one.`,
      );
      await expect(requireCurrent(url)).rejects.toThrow(
        `The database is newer than this Sluice: it has ${known.length + 1} migrations, this version knows ${known.length}.`,
      );
    });
  });

  test('a migration that was changed after it was applied is refused', async () => {
    await withDatabase(async ({ url, pool }) => {
      await pool.query(`update migrations set hash = 'other' where id = 1`);
      await expect(migrate(url)).rejects.toThrow(
        'Migration 1 (tenancy) in the database differs from tenancy in this version. ' +
          'A migration must never be changed after it was applied; restore the original file.',
      );
    });
  });

  test('one that fails leaves nothing of itself, and the ones before it stay', async () => {
    await withDatabase(async ({ url, pool }) => {
      const n = known.length;
      const broken = [
        ...known,
        extra(n + 1, 'create table good ()'),
        extra(n + 2, 'create table half (); select 1/0'),
      ];
      await expect(migrate(url, { migrations: broken })).rejects.toThrow(
        `Migration ${n + 2} (extra) failed: division by zero`,
      );
      expect(
        (await pool.query(`select to_regclass('good') as good, to_regclass('half') as half`)).rows,
      ).toEqual([{ good: 'good', half: null }]);
      expect(await migrationState(pool)).toEqual({ applied: n + 1, known: n });
    });
  });

  test('without permission to migrate, a database that lacks some is refused', async () => {
    await withDatabase(async ({ url }) => {
      const next = [...known, extra(known.length + 1, 'select 1')];
      await expect(requireCurrent(url, next)).rejects.toThrow(
        `The database lacks 1 of ${known.length + 1} migrations and SLUICE_MIGRATE is false; apply them with \`npx sluice migrate\`.`,
      );
      await expect(requireCurrent(url)).resolves.toBeUndefined();
    });
  });

  test('files are numbered from 1 without gaps', () => {
    writeFileSync(path.join(folder, '0001-first.sql'), 'select 1');
    writeFileSync(path.join(folder, '0003-third.sql'), 'select 1');
    expect(() => readMigrations(folder)).toThrow(
      `${path.join(folder, '0003-third.sql')}: migrations are named 0001-some-words.sql with consecutive numbers; expected 0002 here`,
    );
  });
});
