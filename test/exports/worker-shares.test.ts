// What one piece of work in a worker may take from the others.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createPool, type Pool, transaction } from '../../db/pool.ts';
import { insertBackfill } from '../../exports/rows/backfills.ts';
import { insertBatchExport } from '../../exports/rows/batch-exports.ts';
import { sizeBackfill } from '../../exports/runs/backfills.ts';
import type { RunDependencies } from '../../exports/runs/dependencies.ts';
import { repairExportSchedules } from '../../exports/runs/upkeep.ts';
import { createCompiler, type ModelCompiler } from '../../models/index.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually, PATIENCE } from '../support/eventually.ts';

// Hooks run in the order of their definition: this one before the database goes.
afterAll(async () => {
  await Promise.all([pool?.end(), sizingPool?.end(), compiler?.close()]);
});
const database = databaseForFile();
const logger = createLogger({ name: 'test', level: 'silent' });
const EXPORTS = 40;
let anna: Tenant;
let pool: Pool;
let sizingPool: Pool;
let compiler: ModelCompiler;

beforeAll(async () => {
  const { url } = database;
  anna = await createTenant(database.pool, 'Anna');
  compiler = createCompiler({ threads: 1, timeoutMs: PATIENCE });
  pool = createPool({ url, size: 1, name: 'bookkeeping' });
  sizingPool = createPool({ url, size: 1, name: 'sizing' });
});

const createExport = (n: number) =>
  insertBatchExport(database.pool, {
    ...{ project_id: anna.projectId, name: `Export ${n}`, model: 'events', interval: 'hour' },
    ...{ destination_type: 'NoOp', config: {} },
  });

test('finding out the size of a backfill takes no connection from the bookkeeping', async () => {
  const row = await createExport(0);
  const range = { start: '2026-01-01T00:00:00Z', end: '2026-01-01T03:00:00Z' };
  const key = { projectId: anna.projectId, exportId: row.id };
  const begun = await transaction(database.pool, (client) =>
    insertBackfill(client, { ...key, ...range, workflowId: 'w', totalRuns: null }, 1),
  );
  if (begun.outcome !== 'started') throw new Error(begun.outcome);
  const reference = { exportId: row.id, backfillId: begun.backfill.id };
  const sized = await transaction(database.pool, async (holder) => {
    await holder.query('lock table events in access exclusive mode');
    const sizing = sizeBackfill({ pool, sizingPool, compiler, logger }, reference, { beat: () => undefined });
    await eventually(async () => {
      const { rows } = await database.pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows.length === 1;
    });
    expect([pool.idleCount, sizingPool.idleCount]).toEqual([1, 0]);
    return { sizing };
  });
  expect(await sized.sizing).not.toBeNull();
});

test('comparing very many schedules leaves room for other work in between', async () => {
  for (let n = 1; n < EXPORTS; n += 1) await createExport(n);
  const { rows } = await database.pool.query('select id from batch_exports');
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  const turns: number[] = [];
  const matches = () => {
    turns.push(turn);
    return true;
  };
  const temporal = {
    list: async () => new Map(rows.map(({ id }) => [id, { matches }])),
    sync: async () => false,
  } as unknown as RunDependencies['temporal'];
  count();
  const work = { signal: new AbortController().signal, beat: () => undefined };
  await repairExportSchedules({ pool: database.pool, temporal, logger }, work);
  isOver = true;
  expect(turns).toHaveLength(EXPORTS);
  expect(new Set(turns).size).toBe(EXPORTS);
});
