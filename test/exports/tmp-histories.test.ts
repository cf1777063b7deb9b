import path from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import type { ExportRunInput } from '../../exports/temporal.ts';
import { saveHistory } from '../../scripts/save-history.ts';
import { EXPORT_RUN } from '../../workflows/names.ts';
import { eventually } from '../support/eventually.ts';
import { silentServerForFile } from '../support/silent-server.ts';
import { exportWorldForFile, fillHour, hourly } from './support.ts';

const silent = silentServerForFile();
const world = exportWorldForFile({
  settings: () => ({ SLUICE_EXPORT_CONCURRENCY: '2', SLUICE_TASK_QUEUE: 'sluice' }),
  patience: { attempts: 1, delay: () => 0 },
});
const FOLDER = path.join(import.meta.dirname, '../workflows/histories');
const save = (workflowId: string, runId: string | undefined, name: string) =>
  saveHistory(world.client, { workflowId, ...(runId ? { runId } : {}) }, path.join(FOLDER, `${name}.json`));
beforeAll(() => fillHour(world.pool, 0, 3));

test('histories', async () => {
  const dead = await world.create('S3', silent.s3('dead'));
  const trying = await world.start(dead, hourly(0));
  await eventually(async () => silent.asked().length === 1);
  const fine = await world.create('File', { directory: 'fine' });
  const waiting = await world.start(fine, hourly(0));
  const waitsOf = async (n: number) =>
    eventually(async () => {
      const { rows } = await world.pool.query(
        'select from batch_export_places where waiting_since is not null',
      );
      return rows.length === n;
    });
  await waitsOf(1);
  const long = await world.create('File', { directory: 'long' });
  const input: ExportRunInput = { exportId: long.id, interval: hourly(0), waitsPerHistory: 1 };
  const options = { workflowId: `${long.id}-long`, taskQueue: world.config.SLUICE_TASK_QUEUE };
  const handle = await world.client.workflow.start(EXPORT_RUN, { ...options, args: [input] });
  await eventually(async () => {
    const now = await world.client.workflow.getHandle(options.workflowId).describe();
    return now.runId !== handle.firstExecutionRunId;
  });
  await trying.cancel();
  silent.drop();
  expect(await waiting.result()).toMatchObject({ status: 'Completed' });
  expect(await handle.result()).toMatchObject({ status: 'Completed' });
  await save(waiting.workflowId, undefined, 'export-run-that-waited');
  await save(options.workflowId, handle.firstExecutionRunId, 'export-run-that-continues');
  await save(options.workflowId, undefined, 'export-run-that-was-continued');

  const row = await world.create('S3', silent.s3('dead-backfill'));
  const backfill = await world.backfill(row, hourly(0).start, hourly(0).end);
  await world.schedules.exports.startBackfill(row, backfill);
  await eventually(async () => silent.asked().length === 1);
  const verifying = world.schedules.exports.verify(fine, hourly(0), { waitMilliseconds: 90_000 });
  await waitsOf(1);
  await world.client.workflow.getHandle(backfill.workflow_id).cancel();
  silent.drop();
  expect(await verifying).toMatchObject({ verdict: 'same' });
  const found = await eventually(async () => {
    const query = `WorkflowType = 'verifyInterval' and ExecutionStatus = 'Completed'`;
    for await (const one of world.client.workflow.list({ query })) return one;
    return undefined;
  });
  await save(found.workflowId, found.runId, 'verify-interval-that-waited');
});
