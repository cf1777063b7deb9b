// What is asked of Temporal, and in which order, while rows change and requests fail.
import { expect, test } from '@jest/globals';
import { stopWorkflows } from '../../exports/ending.ts';
import { updateBatchExport } from '../../exports/rows/batch-exports.ts';
import { syncRow } from '../../exports/sync-row.ts';
import { databaseForFile } from '../support/database.ts';
import { keyOf, newExport } from './rows/support.ts';

const database = databaseForFile();
const workflow = (id: string) => ({ workflow_id: id, workflow_run_id: id });

test('runs are stopped after the backfills that start them, also if one of these cannot be reached', async () => {
  const asked: string[] = [];
  const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const temporal = {
    cancelBackfill: ({ workflow_id }: { workflow_id: string }) => {
      asked.push(workflow_id);
      return (answers[asked.length - 1] as PromiseWithResolvers<void>).promise;
    },
    cancelRun: async ({ workflow_id }: { workflow_id: string }) => {
      asked.push(workflow_id);
    },
  };
  const stopped = stopWorkflows(
    temporal,
    [workflow('backfill 1'), workflow('backfill 2')],
    [workflow('run 1'), workflow('run 2')],
  );
  const failure = expect(stopped).rejects.toThrow('Temporal is away');
  await new Promise(setImmediate);
  expect(asked).toEqual(['backfill 1', 'backfill 2']);
  answers[0]?.reject(new Error('Temporal is away'));
  await new Promise(setImmediate);
  expect(asked).toHaveLength(2);
  answers[1]?.resolve();
  await failure;
  expect(asked).toEqual(['backfill 1', 'backfill 2', 'run 1', 'run 2']);
});

test('a schedule follows its row, also if that changes meanwhile', async () => {
  const row = await newExport(database.pool, { name: 'first' });
  const names = ['second', 'third'];
  const synced: string[] = [];
  const temporal = {
    sync: async ({ name }: { name: string }) => {
      synced.push(name);
      const next = names.shift();
      if (next) await updateBatchExport(database.pool, keyOf(row), { name: next });
      return synced.length === 1;
    },
    remove: async () => true,
  };
  expect(await syncRow(database.pool, temporal, row.id)).toBe(true);
  expect(synced).toEqual(['first', 'second', 'third']);
});

test('the schedule of an export without a row is removed', async () => {
  const temporal = { sync: async () => true, remove: async () => true };
  expect(await syncRow(database.pool, temporal, '01a209ea-f174-73c3-92e0-f88a91da1020')).toBe(true);
});
