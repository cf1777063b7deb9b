import { describe, expect, test } from '@jest/globals';
import { deleteProjectRows } from '../../db/project-data.ts';
import { deleteConfiguration, moveConfiguration, type ProjectTable } from '../../db/project-tables.ts';
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
    for await (const rows of deleteProjectRows(database.pool, 2, 3, tables)) counts.push(rows);
    expect(counts).toEqual([3, 1, 3, 1, 3, 1]);
    const without2 = [1, 1, 1, 1, 3, 3, 3, 3];
    expect(await rowsOf('some_data')).toEqual(without2);
    expect(await rowsOf('more_data')).toEqual(without2);
    expect(await rowsOf('some_configuration')).toEqual(without2);
    expect(await rowsOf('some_history')).toHaveLength(12);
  });

  test('what is stored behind the place where a deletion is, and before it, is deleted too', async () => {
    await database.pool.query(
      `drop table if exists ordered_data; create table ordered_data (project_id integer, name text, at timestamptz, primary key (project_id, name, at))`,
    );
    const store = (names: string[]) =>
      database.pool.query(
        `insert into ordered_data select p, name, now() from unnest($1::text[]) name, generate_series(1, 2) p`,
        [names],
      );
    await store(['b', "it's", 'c', 'd', 'é', '']);
    const counts: number[] = [];
    for await (const rows of deleteProjectRows(database.pool, 2, 4, [
      { name: 'ordered_data', kind: 'data' },
    ])) {
      counts.push(rows);
      if (counts.length === 1) await store(['a', 'z']);
    }
    // The last one finds what came in before the place.
    expect(counts).toEqual([4, 3, 1]);
    const { rows } = await database.pool.query(
      'select project_id, count(*)::int as rows from ordered_data group by 1',
    );
    expect(rows).toEqual([{ project_id: 1, rows: 8 }]);
  });

  test('each table of projects has an index to find rows in order, or few rows', async () => {
    const { rows } = await database.pool.query(
      `select t.name from unnest($1::text[]) t (name)
       where not exists (select from pg_index i
         where i.indrelid = t.name::regclass and i.indnkeyatts > 1 and i.indpred is null and i.indexprs is null
           and (select a.attname from pg_attribute a where a.attrelid = i.indrelid and a.attnum = i.indkey[0]) = 'project_id')`,
      [TABLES.filter((one) => one.kind === 'data').map((one) => one.name)],
    );
    // These have few rows of a project. A block has hundreds of ids.
    expect(rows.map(({ name }) => name).sort()).toEqual([
      ...['cohort_counts', 'event_id_blocks', 'function_internal_events', 'function_late_batches'],
      ...['function_projects', 'person_words_read'],
    ]);
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
