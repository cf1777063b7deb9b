import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { diagnoseTemporal } from '../../schedules/diagnose.ts';
import type { RunningWorker } from '../../worker/worker.ts';
import type { MaintenanceReport } from '../../workflows/maintenance.ts';
import { VERIFY_INTERVAL, VERIFY_TAKEN } from '../../workflows/names.ts';
import { exportedUuids, exportWorldForFile, fillHour, hour, hourly } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { bundleOf } from '../support/workflow-bundles.ts';

const world = exportWorldForFile({ worker: false });
/** No workflow stays in memory, so each of its steps replays its history, on whichever worker takes it. */
const NONE = 0;

/** The version before: maintenance and notices ended otherwise, and no run told of rows that it left out. */
const BEFORE = [
  {
    file: 'export-run.ts',
    from: '  for (const notice of result.notices ?? []) await tell(notice);\n',
    to: '',
  },
  { file: 'maintenance.ts', from: '    if (isCancellation(error)) throw error;\n', to: '' },
  { file: 'notice.ts', from: '    if (isCancellation(error)) throw error;\n', to: '' },
];
/** A version that waits a little before it verifies, without saying so by a patch: it cannot replay what others began. */
const OTHER = [
  {
    file: 'verify-interval.ts',
    from: '  try {\n    report = await queue.inTurn(compare',
    to: '  await condition(() => false, 10);\n  try {\n    report = await queue.inTurn(compare',
  },
];

const maintain = (): Promise<MaintenanceReport> =>
  world.client.workflow.execute('maintenance', {
    taskQueue: world.config.SLUICE_TASK_QUEUE,
    workflowId: `maintenance-${randomUUID()}`,
    args: [],
  });
const taskFailures = async (workflowId: string): Promise<number> => {
  const { events } = await world.client.workflow.getHandle(workflowId).fetchHistory();
  return (events ?? []).filter((one) => one.workflowTaskFailedEventAttributes).length;
};
const tasksOf = async () =>
  (await diagnoseTemporal(world.config)).find(({ check }) => check === 'workflow tasks');

describe('a worker of the version before and one of this version, side by side', () => {
  let older: RunningWorker;
  let newer: RunningWorker;
  let row: BatchExportRow;

  beforeAll(async () => {
    older = await world.startWorker({}, { bundle: await bundleOf(BEFORE), inMemory: NONE });
    newer = await world.startWorker({}, { inMemory: NONE });
  });

  test('finish the runs, backfills and maintenance of each other, and no task fails', async () => {
    const uuids: string[] = [];
    for (let n = 0; n < 12; n += 1) uuids.push(...(await fillHour(world.pool, n, 10)));
    row = await world.create('File', { directory: 'rolling' });
    const backfill = await world.backfill(row, hour(0), hour(12));
    await world.schedules.exports.startBackfill(row, backfill);
    const [reports, runs] = await Promise.all([
      Promise.all([maintain(), maintain(), maintain()]),
      Promise.all([0, 1, 2, 3].map(async (n) => world.run(await anotherOf(n), hourly(n)))),
    ]);
    for (const { failed } of reports) expect(failed).toEqual([]);
    for (const { run } of runs) expect(run).toMatchObject({ status: 'Completed', records_completed: 10 });
    await world.client.workflow.getHandle(backfill.workflow_id).result();
    const backfilled = await world.runsOf(row);
    expect(backfilled.map(({ status }) => status)).toEqual(Array(12).fill('Completed'));
    expect(exportedUuids(path.join(world.root, 'rolling'))).toEqual([...uuids].sort());
    for (const id of [backfill.workflow_id, ...backfilled.map((one) => one.workflow_id)]) {
      expect(await taskFailures(id)).toBe(0);
    }
    expect(await tasksOf()).toMatchObject({ ok: true });
  });

  test('and when the older one stops in the middle, the newer one goes on with what it had begun', async () => {
    const backfill = await world.backfill(row, hour(0), hour(12));
    await world.schedules.exports.startBackfill(row, backfill);
    await eventually(async () => (await world.runsOf(row)).length > 13);
    await older.stop();
    await world.client.workflow.getHandle(backfill.workflow_id).result();
    const again = (await world.runsOf(row)).filter((one) => one.backfill_id === backfill.id);
    expect(again.map(({ status }) => status)).toEqual(Array(12).fill('Completed'));
    expect(await taskFailures(backfill.workflow_id)).toBe(0);
    await newer.stop();
  });

  const anotherOf = (n: number) => world.create('File', { directory: `single-${n}` });
});

describe('a worker with other code that takes over', () => {
  test('breaks tasks, which doctor shows; once it has stopped, the workflows go on', async () => {
    const right = await world.startWorker();
    await fillHour(world.pool, 20, 10);
    const row = await world.create('File', { directory: 'broken' });
    await world.run(row, hourly(20));
    const handle = await world.client.workflow.start(VERIFY_INTERVAL, {
      taskQueue: world.config.SLUICE_TASK_QUEUE,
      workflowId: `verify-${randomUUID()}`,
      args: [{ exportId: row.id, interval: hourly(20) }],
    });
    // It has its report, and waits for somebody who takes it.
    await eventually(async () =>
      (await handle.fetchHistory()).events?.some((one) => one.activityTaskCompletedEventAttributes),
    );
    await right.stop();
    const wrong = await world.startWorker({}, { bundle: await bundleOf(OTHER), inMemory: NONE });
    await handle.signal(VERIFY_TAKEN);
    await eventually(async () => (await tasksOf())?.ok === false);
    expect((await tasksOf())?.sentence).toMatch(
      new RegExp(
        `^1 of \\d+ running workflows stand still, .*: ${handle.workflowId} \\(verifyInterval, attempt \\d+\\)\\.`,
      ),
    );
    await wrong.stop();
    await world.startWorker();
    expect(await handle.result()).toMatchObject({ verdict: 'same' });
    expect(await tasksOf()).toMatchObject({ ok: true });
  });
});
