import { describe, expect, test } from '@jest/globals';
import type { Connection } from '@temporalio/client';
import pg from 'pg';
import { readMigrations } from '../../db/migrate.ts';
import { missingSearchAttributes } from '../../schedules/search-attributes.ts';
import { databaseForFile, type TestDatabase, withDatabase } from '../support/database.ts';
import { allocateNamespace, connectTo, type TestNamespace } from '../support/temporal.ts';

describe('the database bracket', () => {
  const database = databaseForFile();

  test('gives a migrated database', async () => {
    const { rows } = await database.pool.query('select count(*)::int as applied from migrations');
    expect(rows).toEqual([{ applied: readMigrations().length }]);
  });

  test('drops the database afterwards', async () => {
    const url = await withDatabase(async (one) => {
      await one.pool.query('select 1');
      return one.url;
    });
    await expect(new pg.Client({ connectionString: url }).connect()).rejects.toMatchObject({ code: '3D000' });
  });

  test('two databases know nothing of each other', async () => {
    await withDatabase(async (one) => {
      await one.pool.query('create table only_here ()');
      await withDatabase(async (other) => {
        const { rows } = await other.pool.query(`select to_regclass('only_here') as found`);
        expect(rows).toEqual([{ found: null }]);
      });
    });
  });

  test('fails when a connection of the pool was not given back', async () => {
    const leak = withDatabase(async ({ pool }) => {
      const client = await pool.connect();
      client.on('error', () => undefined);
      await client.query('select 42');
    });
    await expect(leak).rejects.toThrow(/left 1 connection\(s\).*1 of them borrowed.*select 42/s);
  });

  test('fails when a connection of another pool was left open', async () => {
    let client: pg.Client | undefined;
    const forget = async ({ url }: TestDatabase) => {
      client = new pg.Client({ connectionString: url, application_name: 'forgotten' });
      client.on('error', () => undefined);
      await client.connect();
    };
    const leak = withDatabase(forget, { patience: 100 });
    await expect(leak).rejects.toThrow(/left 1 connection\(s\).*forgotten/s);
    await client?.end();
  });
});

test('every test gets a Temporal namespace of its own, and there are always more', async () => {
  // More than are there from the beginning.
  const taken = Array.from({ length: 20 }, () => allocateNamespace());
  expect(new Set(taken.map(({ namespace }) => namespace)).size).toBe(taken.length);
  const last = taken.at(-1) as TestNamespace;
  expect(last.address).toMatch(/^127\.0\.0\.1:\d+$/);
  const client = await connectTo(last);
  expect(await missingSearchAttributes(client.connection as Connection, last.namespace)).toEqual([]);
  await client.connection.close();
});
