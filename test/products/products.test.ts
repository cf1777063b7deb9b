import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { createActivities } from '../../activities/index.ts';
import { createMaintenanceActivities } from '../../activities/maintenance.ts';
import { LOCKS } from '../../db/locks.ts';
import { CORE_TABLES } from '../../db/project-tables.ts';
import { PRODUCTS } from '../../products.ts';
import type { MaintenanceStep } from '../../tenancy/product.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();
const root = path.resolve(import.meta.dirname, '../..');
const twice = <T>(list: readonly T[]) => list.filter((one, index) => list.indexOf(one) !== index);

describe('the manifests', () => {
  test('are of products that have a folder and a page', () => {
    for (const { name, docs } of PRODUCTS) {
      expect([name, existsSync(path.join(root, name, 'manifest.ts'))]).toEqual([name, true]);
      expect([docs, existsSync(path.join(root, docs))]).toEqual([docs, true]);
    }
  });

  test('claim nothing that another one or the core has', () => {
    expect(twice(PRODUCTS.map((one) => one.name))).toEqual([]);
    expect(twice([...CORE_TABLES, ...PRODUCTS.flatMap((one) => one.tables)].map((one) => one.name))).toEqual(
      [],
    );
    expect(twice(PRODUCTS.flatMap((one) => one.scopes))).toEqual([]);
  });

  test('give no number of an advisory lock a second meaning', () => {
    const kinds = PRODUCTS.flatMap((one) => Object.values(one.lockKinds ?? {}));
    expect(twice([...Object.values(LOCKS), ...kinds])).toEqual([]);
    for (const kind of kinds) expect(kind).toBeLessThan(2 ** 31);
  });

  test('name columns with secrets that there are, in tables of their own', async () => {
    for (const { tables, sealed } of PRODUCTS) {
      for (const { table, column } of sealed) {
        expect(tables.map((one) => one.name)).toContain(table);
        const { rowCount } = await database.pool.query(
          'select 1 from information_schema.columns where table_name = $1 and column_name = $2',
          [table, column],
        );
        expect([table, column, rowCount]).toEqual([table, column, 1]);
      }
    }
  });
});

describe('the steps of maintenance', () => {
  type Dependencies = Parameters<typeof createActivities>[0];
  const withSteps = (maintenance: MaintenanceStep<unknown>[]) => {
    const product = { name: 'one', docs: '', tables: [], sealed: [], scopes: [], maintenance };
    return { products: [product], exports: {}, schedules: {} } as unknown as Dependencies;
  };
  const step = (name: string, after?: string): MaintenanceStep<unknown> => ({
    name,
    summary: 'things done',
    ...(after ? { after } : {}),
    run: async () => 0,
  });

  test('are listed with what follows what, each as an activity', async () => {
    const activities = createMaintenanceActivities(withSteps([step('first'), step('second', 'first')]));
    const listed = await activities.listMaintenanceSteps();
    expect(Object.keys(activities)).toEqual(expect.arrayContaining(listed.map(({ name }) => name)));
    expect(listed.slice(-2)).toEqual([
      { name: 'first', summary: 'things done' },
      { name: 'second', summary: 'things done', after: 'first' },
    ]);
    expect(listed).toContainEqual(
      expect.objectContaining({ name: 'deleteProjectData', after: 'stopDeletedProjects' }),
    );
  });

  test.each([
    [
      'has the name of another one',
      [step('first'), step('first')],
      'two steps of maintenance are called first',
    ],
    [
      'has the name of a step of the core',
      [step('expireSessions')],
      'two steps of maintenance are called expireSessions',
    ],
    [
      'follows one that comes later',
      [step('first', 'second'), step('second')],
      'the step first of maintenance comes after second',
    ],
    ['follows itself', [step('first', 'first')], 'the step first of maintenance comes after first'],
  ])('stop the worker when one %s', (_what, steps, message) => {
    expect(() => createActivities(withSteps(steps))).toThrow(message);
  });

  test('stop the worker when one has the name of another activity', () => {
    expect(() => createActivities(withSteps([step('sendNotice')]))).toThrow(
      'the step sendNotice of maintenance has the name of another activity',
    );
  });
});
