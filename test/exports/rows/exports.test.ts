import { describe, expect, test } from '@jest/globals';
import { transaction } from '../../../db/pool.ts';
import { sealedKeyIds } from '../../../db/sealed-columns.ts';
import { targetsCollide, type WriteTarget } from '../../../destinations/write-target.ts';
import { EXPORTS } from '../../../exports/manifest.ts';
import {
  type BatchExportFields,
  type BatchExportRow,
  deleteBatchExport,
  findBatchExportById,
  findBatchExportIn,
  listBatchExports,
  lockStoreWriters,
  pageBatchExports,
  setPaused,
  updateBatchExport,
} from '../../../exports/rows/batch-exports.ts';
import { generateKey, parseKeyring, seal } from '../../../secrets/envelope.ts';
import { databaseForFile } from '../../support/database.ts';
import { keyOf, newExport } from './support.ts';

const database = databaseForFile();
const find = (row: BatchExportRow) => findBatchExportIn(database.pool, [row.project_id], row.id);

describe('exports', () => {
  test('with very large filters make a list end early, and the next page begins where it ends', async () => {
    const { pool } = database;
    const filters = [{ type: 'event', key: 'a', operator: 'exact', value: 'x'.repeat(500_000) }];
    for (let index = 0; index < 40; index += 1) await newExport(pool, { project_id: 9_999, filters });
    const first = await listBatchExports(pool, [9_999], { limit: 1_000, offset: 0 });
    expect([first.count, first.rows.length]).toEqual([40, 33]);
    const second = await listBatchExports(pool, [9_999], { limit: 1_000, offset: 33 });
    expect(new Set([...first.rows, ...second.rows].map(({ id }) => id)).size).toBe(40);
  });

  test('are stored as they were given, and changed field by field', async () => {
    const { pool } = database;
    const given = {
      filters: [{ type: 'event', key: 'a', operator: 'exact', value: ["it's"] }],
      schema: {
        fields: [{ expression: 'event', alias: 'e' }],
        values: {},
        hogql_query: 'SELECT event AS e FROM events',
      },
      hogql_query: 'select event as e from events',
      start_at: '2026-01-01T00:00:00Z',
      interval_offset: 183_600,
      timezone: 'Asia/Kathmandu',
    };
    const row = await newExport(pool, given);
    expect(row).toMatchObject({
      ...given,
      ...{ project_id: 1, name: 'Lake', config: { directory: 'lake' }, paused: false, deleted_at: null },
      ...{ secrets: null, end_at: null, last_paused_at: null, write_store: null },
    });
    const patch: Partial<BatchExportFields> = { name: 'Pond', filters: null, end_at: '2027-01-01T00:00:00Z' };
    const changed = await updateBatchExport(pool, keyOf(row), patch);
    expect(changed).toEqual({ ...row, ...patch, last_updated_at: changed?.last_updated_at });
    expect(Date.parse(changed!.last_updated_at)).toBeGreaterThan(Date.parse(row.last_updated_at));
    expect(await find(row)).toEqual(changed);
    expect(await findBatchExportIn(pool, [2], row.id)).toBeUndefined();
    expect(await updateBatchExport(pool, { ...keyOf(row), projectId: 2 }, patch)).toBeUndefined();
  });

  test('are listed newest first, by project, without deleted ones', async () => {
    const { pool } = database;
    const rows = [];
    for (let n = 0; n < 5; n += 1)
      rows.push(await newExport(pool, { project_id: n === 4 ? 12 : 11, name: `${n}` }));
    await deleteBatchExport(pool, keyOf(rows[1]!));
    const names = async (projects: number[], limit: number, offset: number) => {
      const { count, rows: found } = await listBatchExports(pool, projects, { limit, offset });
      return [count, ...found.map((one) => one.name)];
    };
    expect(await names([11], 10, 0)).toEqual([3, '3', '2', '0']);
    expect(await names([11, 12], 2, 1)).toEqual([4, '3', '2']);
    expect(await names([13], 2, 0)).toEqual([0]);
    const all = [];
    for (let after: string | null = null; ; ) {
      const page = await pageBatchExports(pool, after, 2);
      all.push(...page);
      if (page.length < 2) break;
      after = page[1]!.id;
    }
    const { rows: live } = await pool.query(
      'select id from batch_exports where deleted_at is null order by id',
    );
    expect(all.map((one) => one.id)).toEqual(live.map((one) => one.id));
  });

  test('pausing twice is pausing once', async () => {
    const { pool } = database;
    const row = await newExport(pool);
    expect(await setPaused(pool, keyOf(row), true)).toBe(true);
    const paused = await find(row);
    expect(paused).toMatchObject({ paused: true, last_paused_at: expect.any(String) });
    expect(await setPaused(pool, keyOf(row), true)).toBe(false);
    expect(await find(row)).toEqual(paused);
    expect(await setPaused(pool, keyOf(row), false)).toBe(true);
    expect(await find(row)).toMatchObject({
      paused: false,
      last_paused_at: paused?.last_paused_at,
    });
  });

  test('a deleted one is found by workflows only, and its secrets are gone', async () => {
    const { pool } = database;
    const row = await newExport(pool, { secrets: 'slc1.k.a.b' });
    expect(await deleteBatchExport(pool, keyOf(row))).toBe(true);
    expect(await deleteBatchExport(pool, keyOf(row))).toBe(false);
    expect(await find(row)).toBeUndefined();
    expect(await updateBatchExport(pool, keyOf(row), { name: 'x' })).toBeUndefined();
    expect(await setPaused(pool, keyOf(row), true)).toBe(false);
    expect(await findBatchExportById(pool, row.id)).toMatchObject({
      secrets: null,
      deleted_at: expect.any(String),
    });
  });

  test('the keys that their secrets need are known to the backup', async () => {
    const keyring = parseKeyring(generateKey('current'));
    const id = '018f0000-0000-7000-8000-000000000001';
    await newExport(database.pool, {
      id,
      secrets: seal(keyring, '{"password":"x"}', `batch_exports/${id}/secrets`),
    });
    expect(await sealedKeyIds(database.pool, EXPORTS.sealed)).toEqual(['current']);
  });
});

describe('two exports that would write the same keys', () => {
  const target = (prefix: string): WriteTarget => ({
    ...{ store: 'file:/exports', model: 'events', interval: 'hour' },
    prefix,
  });

  /** As saving does it: look, compare, store. Answers whether it was stored. */
  const save = (projectId: number, prefix: string) =>
    transaction(database.pool, async (client) => {
      const mine = target(prefix);
      const others = await lockStoreWriters(client, mine.store);
      if (others.some((one) => targetsCollide(mine, one.write_target as WriteTarget))) return false;
      await newExport(client, { project_id: projectId, write_store: mine.store, write_target: mine });
      return true;
    });

  test('are never both stored, however many are saved at once', async () => {
    const results = await Promise.all(Array.from({ length: 8 }, (_, n) => save(21 + n, 'same/{year}')));
    expect(results.filter(Boolean)).toHaveLength(1);
    expect(await save(40, 'same/2026')).toBe(false);
    expect(await save(40, 'other/{year}')).toBe(true);
    const { rows } = await database.pool.query(
      'select project_id as "projectId", id as "exportId" from batch_exports where write_target ->> \'prefix\' = \'same/{year}\'',
    );
    await deleteBatchExport(database.pool, rows[0]);
    expect(await save(41, 'same/2026')).toBe(true);
  });
});
