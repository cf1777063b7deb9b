import { expect, test } from '@jest/globals';
import { transaction } from '../../db/pool.ts';
import { findBackfill, insertBackfill } from '../../exports/rows/backfills.ts';
import { backfillWorkflowId } from '../../exports/rules/workflow-ids.ts';
import { exportedUuids, exportWorldForFile, fillHour, hour } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { programsForFile } from '../support/programs.ts';

const HOURS = 16;
const programs = programsForFile();
const world = exportWorldForFile({ worker: false });

async function startWorker() {
  const worker = programs.start('worker/main.ts', { ...world.variables, SLUICE_LOG_LEVEL: 'info' });
  await eventually(async () => worker.output().includes('the worker polls'));
  return worker;
}

test('a backfill whose worker is killed in the middle of it goes on with another one', async () => {
  const uuids: string[] = [];
  for (let n = 0; n < HOURS; n += 1) uuids.push(...(await fillHour(world.pool, n, 500)));
  const row = await world.create('File', { directory: 'lake', prefix: 'p', file_format: 'JSONLines' });
  const key = { projectId: row.project_id, exportId: row.id };
  const range = { start: hour(0), end: hour(HOURS) };
  const workflowId = backfillWorkflowId(row.id, range);
  const begun = await transaction(world.pool, (client) =>
    insertBackfill(client, { ...key, ...range, workflowId, totalRuns: null }, 1),
  );
  if (begun.outcome !== 'started') throw new Error(begun.outcome);
  const now = () => findBackfill(world.pool, { projectId: key.projectId, backfillId: begun.backfill.id });
  const first = await startWorker();
  await world.schedules.exports.startBackfill(row, begun.backfill);
  await eventually(async () => ((await now())?.finished_runs ?? 0) >= 2);
  first.kill('SIGKILL');
  await first.exited;
  const done = (await now())?.finished_runs ?? 0;
  expect(done).toBeLessThan(HOURS);
  await startWorker();
  expect(await world.client.workflow.getHandle(workflowId).result()).toMatchObject({
    ...{ status: 'Completed', total: HOURS, completed: HOURS, failed: 0, cancelled: 0 },
  });
  expect(await now()).toMatchObject({ status: 'Completed', total_records_count: uuids.length });
  expect(await world.runsOf(row)).toHaveLength(HOURS);
  expect(exportedUuids(`${world.root}/lake`)).toEqual(uuids.sort());
});
