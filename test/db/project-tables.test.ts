import { describe, expect, test } from '@jest/globals';
import {
  deleteConfiguration,
  deleteSomeData,
  moveConfiguration,
  type ProjectTable,
} from '../../db/project-tables.ts';
import { PRODUCTS } from '../../products.ts';
import { projectTables } from '../../tenancy/product.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();
const TABLES = projectTables(PRODUCTS);

describe('the list of tables that belong to a project', () => {
  test('has every table with a project_id, and no other', async () => {
    const { rows } = await database.pool.query(
      `select c.relname as name from pg_class c
       join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attname = 'project_id' and not a.attisdropped
       where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
    );
    expect(TABLES.map((one) => one.name).sort()).toEqual(rows.map((row) => row.name));
  });

  test('tables of data and configuration reference nothing outside the project', async () => {
    const { rows } = await database.pool.query(
      `select conrelid::regclass::text as name, pg_get_constraintdef(oid) as definition from pg_constraint
       where contype = 'f' and conrelid::regclass::text = any($1)`,
      [TABLES.filter((one) => one.kind === 'data').map((one) => one.name)],
    );
    expect(rows.filter((row) => !row.definition.includes('(project_id'))).toEqual([]);
  });
});

describe('what is done with them', () => {
  const tables: ProjectTable[] = [
    { name: 'some_data', kind: 'data' },
    { name: 'more_data', kind: 'data' },
    { name: 'some_configuration', kind: 'configuration' },
    { name: 'some_history', kind: 'history' },
  ];
  const rowsOf = async (table: string) =>
    (await database.pool.query(`select project_id from ${table} order by 1`)).rows.map(
      (row) => row.project_id,
    );

  async function fillTables() {
    for (const { name } of tables) {
      await database.pool.query(
        `drop table if exists ${name}; create table ${name} (project_id integer not null)`,
      );
      await database.pool.query(
        `insert into ${name} select p from generate_series(1, 3) p, generate_series(1, 4)`,
      );
    }
  }

  test('data is deleted bit by bit until nothing is left, and what was still written beside it', async () => {
    await fillTables();
    const counts: number[] = [];
    for (;;) {
      counts.push(await deleteSomeData(database.pool, 2, 3, tables));
      if (counts.at(-1) === 0) break;
    }
    expect(counts).toEqual([3, 1, 3, 1, 3, 1, 0]);
    const without2 = [1, 1, 1, 1, 3, 3, 3, 3];
    expect(await rowsOf('some_data')).toEqual(without2);
    expect(await rowsOf('more_data')).toEqual(without2);
    expect(await rowsOf('some_configuration')).toEqual(without2);
    expect(await rowsOf('some_history')).toHaveLength(12);
  });

  test('configuration is deleted at once, and moved all at once', async () => {
    await fillTables();
    await deleteConfiguration(database.pool, 2, tables);
    expect(await rowsOf('some_configuration')).toEqual([1, 1, 1, 1, 3, 3, 3, 3]);
    expect(await rowsOf('some_data')).toHaveLength(12);
    const swap = new Map([
      [1, 3],
      [3, 5],
      [2, 2],
    ]);
    expect(await moveConfiguration(database.pool, swap, tables)).toBe(8);
    expect(await rowsOf('some_configuration')).toEqual([3, 3, 3, 3, 5, 5, 5, 5]);
  });
});
