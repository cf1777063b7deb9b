import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { ScheduleNotFoundError } from '@temporalio/client';
import type { TypedSearchAttributes } from '@temporalio/common';
import { transaction } from '../../db/pool.ts';
import { moveConfiguration } from '../../db/project-tables.ts';
import { EXPORTS } from '../../exports/manifest.ts';
import { findBackfill, insertBackfill } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, deleteBatchExport, setPaused } from '../../exports/rows/batch-exports.ts';
import { insertLogs, listLogs } from '../../exports/rows/logs.ts';
import { findRun } from '../../exports/rows/run-lists.ts';
import { startRun } from '../../exports/rows/runs.ts';
import { backfillWorkflowId } from '../../exports/rules/workflow-ids.ts';
import { isItsTurn } from '../../exports/runs/upkeep.ts';
import type { MaintenanceReport } from '../../workflows/maintenance.ts';
import { EXPORT_KIND, searchAttributes } from '../../workflows/names.ts';
import { eventually } from '../support/eventually.ts';
import { workerForFile } from '../support/worker.ts';
import { hours, keyOf, newExport, runOf } from './rows/support.ts';

const world = workerForFile();
const { database } = world;

/** What the schedule does every minute, now. */
async function maintain(): Promise<MaintenanceReport> {
  const report: MaintenanceReport = await world.client.workflow.execute('maintenance', {
    taskQueue: world.config.SLUICE_TASK_QUEUE,
    workflowId: `maintenance-${randomUUID()}`,
  });
  expect(report.failed).toEqual([]);
  return report;
}

const handle = (id: string) => world.client.schedule.getHandle(id);
const described = (id: string) => handle(id).describe();
const isGone = (id: string) =>
  described(id).then(
    () => false,
    (error) => error instanceof ScheduleNotFoundError,
  );
const listed = (id: string) => eventually(async () => (await world.schedules.exports.list()).has(id));
/** Not begun: nothing fires during the test. */
const idle = { start_at: '2999-01-01T00:00:00Z' };
const everyMinutes = async ({ id }: BatchExportRow) =>
  (await described(id)).spec.intervals?.map((one) => one.every);

describe('schedules are what their rows say', () => {
  test('one that was never made is made: its maker was killed after the row', async () => {
    const row = await newExport(database.pool, idle);
    const paused = await newExport(database.pool, { ...idle, paused: true });
    await maintain();
    expect((await described(row.id)).state.paused).toBe(false);
    expect((await described(paused.id)).state.paused).toBe(true);
  });

  test('one that somebody deleted, paused, unpaused or changed is mended', async () => {
    const rows = await Promise.all(
      [{}, {}, { paused: true }, {}, {}].map((given) => newExport(database.pool, { ...idle, ...given })),
    );
    const [deleted, paused, unpaused, changed, misled] = rows as [
      ...[BatchExportRow, BatchExportRow, BatchExportRow, BatchExportRow, BatchExportRow],
    ];
    for (const row of rows) await world.schedules.exports.sync(row);
    for (const { id } of rows) await listed(id);
    await handle(deleted.id).delete();
    await handle(paused.id).pause('by hand');
    await handle(unpaused.id).unpause('by hand');
    await handle(changed.id).update((one) => ({ ...one, spec: { intervals: [{ every: '7 days' }] } }));
    await handle(misled.id).update((one) => ({
      ...one,
      action: { ...one.action, args: [{ exportId: 'other' }] },
    }));
    await maintain();
    expect((await described(deleted.id)).state.paused).toBe(false);
    expect((await described(paused.id)).state.paused).toBe(false);
    expect((await described(unpaused.id)).state.paused).toBe(true);
    expect(await everyMinutes(changed)).toEqual([3_600_000]);
    expect((await described(misled.id)).action.args).toEqual([{ exportId: misled.id }]);
    expect((await maintain()).counts.repairExportSchedules).toBe(0);
  });

  test('one that cannot be made keeps none of the others from it', async () => {
    const broken = await newExport(database.pool, { ...idle, interval: 'day', timezone: 'Nowhere/Land' });
    const row = await newExport(database.pool, idle);
    const report: MaintenanceReport = await world.client.workflow.execute('maintenance', {
      taskQueue: world.config.SLUICE_TASK_QUEUE,
      workflowId: `maintenance-${randomUUID()}`,
    });
    expect(report.failed).toEqual(['repairExportSchedules']);
    expect((await described(row.id)).state.paused).toBe(false);
    await deleteBatchExport(database.pool, keyOf(broken));
    await maintain();
  });

  test('one that is over by its end_at stays over, and is not made again every minute', async () => {
    const row = await newExport(database.pool, { end_at: '2026-01-01T00:00:00Z' });
    await maintain();
    expect((await described(row.id)).info.nextActionTimes).toEqual([]);
    expect((await maintain()).counts.repairExportSchedules).toBe(0);
    expect(await described(row.id)).toBeDefined();
  });

  test('one whose row is gone, or deleted, goes; those of others stay', async () => {
    const row = await newExport(database.pool, idle);
    await world.schedules.exports.sync(row);
    const [left, foreign, named] = [randomUUID(), randomUUID(), 'by hand'];
    const kind = { typedSearchAttributes: [{ key: searchAttributes.kind, value: EXPORT_KIND }] };
    const make = (scheduleId: string, taskQueue: string) =>
      world.client.schedule.create({
        scheduleId,
        spec: {},
        action: { type: 'startWorkflow', workflowType: 'exportRun', taskQueue },
        ...kind,
      });
    await make(left, world.config.SLUICE_TASK_QUEUE);
    await make(foreign, 'of another installation');
    await make(named, world.config.SLUICE_TASK_QUEUE);
    for (const id of [row.id, left, foreign, named]) await listed(id);
    await deleteBatchExport(database.pool, keyOf(row));
    await maintain();
    expect([await isGone(row.id), await isGone(left)]).toEqual([true, true]);
    expect([await isGone(foreign), await isGone(named)]).toEqual([false, false]);
  });

  test('one whose export was paused, or moved to another project, without Temporal hearing of it', async () => {
    const row = await newExport(database.pool, { ...idle, project_id: 5 });
    await world.schedules.exports.sync(row);
    await listed(row.id);
    await setPaused(database.pool, keyOf(row), true);
    await moveConfiguration(database.pool, new Map([[5, 6]]), EXPORTS.tables);
    await maintain();
    const { state, action } = await described(row.id);
    expect(state).toMatchObject({ paused: true, note: expect.stringContaining('Paused in Sluice') });
    // Temporal shows the search attributes of a schedule some time after it has taken them.
    await eventually(
      async () => (await described(row.id)).typedSearchAttributes.get(searchAttributes.project) === 6,
    );
    const ofRuns = action.typedSearchAttributes as TypedSearchAttributes;
    expect(ofRuns.get(searchAttributes.project)).toBe(6);
  });
});

test('of very many exports each is looked at closely now and then', () => {
  const ids = Array.from({ length: 1_000 }, () => randomUUID());
  const turns = [0, 1, 2, 3, 4].map((minute) => ids.filter((id) => isItsTurn(id, 1_000, minute * 60_000)));
  expect(turns.flat().sort()).toEqual([...ids].sort());
  for (const turn of turns) expect(turn.length).toBeLessThan(400);
  expect(ids.every((id) => isItsTurn(id, 200, 12_345_678))).toBe(true);
});

describe('runs whose workflow is gone', () => {
  async function quietRun(n: number, reference: { workflowId?: string; workflowRunId?: string } = {}) {
    const row = await newExport(database.pool, idle);
    const { run } = await startRun(database.pool, runOf(keyOf(row), n, reference));
    await database.pool.query(
      `update batch_export_runs set last_updated_at = clock_timestamp() - interval '2 minutes' where id = $1`,
      [run.id],
    );
    return { row, run, now: () => findRun(database.pool, { projectId: run.project_id, runId: run.id }) };
  }

  /** A workflow that lasts: nobody works on its queue. */
  async function waiting() {
    const started = await world.client.workflow.start('exportRun', {
      workflowId: randomUUID(),
      taskQueue: 'nobody',
    });
    return { started, workflowId: started.workflowId, workflowRunId: started.firstExecutionRunId };
  }

  test('are ended, with a word of why, and their interval is free', async () => {
    const [lost, killed, alive] = [await quietRun(0), await waiting(), await waiting()];
    const terminated = await quietRun(1, killed);
    const running = await quietRun(2, alive);
    await killed.started.terminate('by hand');
    const young = await newExport(database.pool, idle);
    const { run: fresh } = await startRun(database.pool, runOf(keyOf(young), 0));
    await maintain();
    expect(await lost.now()).toMatchObject({
      status: 'Terminated',
      latest_error: 'Its workflow does not exist in Temporal any more.',
      finished_at: expect.any(String),
    });
    expect(await terminated.now()).toMatchObject({
      status: 'Terminated',
      latest_error: 'Its workflow was terminated in Temporal.',
    });
    expect((await running.now())?.status).toBe('Starting');
    expect((await findRun(database.pool, { projectId: 1, runId: fresh.id }))?.status).toBe('Starting');
    const logs = await listLogs(database.pool, { ...keyOf(lost.row), limit: 10 });
    expect(logs.map((one) => [one.level, one.run_id])).toEqual([['ERROR', lost.run.id]]);
    expect((await startRun(database.pool, runOf(keyOf(lost.row), 0))).outcome).toBe('started');
    await alive.started.terminate();
  });
});

test('history past its time is deleted', async () => {
  const row = await newExport(database.pool, idle);
  const say = (message: string) => insertLogs(database.pool, keyOf(row), null, [{ level: 'INFO', message }]);
  await say('old');
  await database.pool.query(
    `update batch_export_logs set timestamp = now() - interval '31 days' where message = 'old'`,
  );
  await say('new');
  await maintain();
  const left = await listLogs(database.pool, { ...keyOf(row), limit: 10 });
  expect(left.map((one) => one.message)).toEqual(['new']);
});

describe('backfills', () => {
  async function backfillOf(row: BatchExportRow, n: number) {
    const range = { start: hours(n), end: hours(n + 2) };
    const begun = await transaction(database.pool, (tx) =>
      insertBackfill(
        tx,
        { ...keyOf(row), ...range, workflowId: backfillWorkflowId(row.id, range), totalRuns: 2 },
        100,
      ),
    );
    if (begun.outcome !== 'started') throw new Error(begun.outcome);
    const { backfill } = begun;
    await database.pool.query(
      `update batch_export_backfills set created_at = clock_timestamp() - interval '2 minutes' where id = $1`,
      [backfill.id],
    );
    const key = { projectId: backfill.project_id, backfillId: backfill.id };
    return { backfill, now: () => findBackfill(database.pool, key) };
  }

  test('that nobody started are started: their maker was killed after the row', async () => {
    const row = await newExport(database.pool, { ...idle, destination_type: 'NoOp', config: {} });
    const one = await backfillOf(row, 0);
    await maintain();
    await eventually(async () => (await one.now())?.status === 'Completed');
    expect((await maintain()).counts.mendBackfills).toBe(0);
  });

  test('whose workflow was terminated are ended, and those of deleted exports too', async () => {
    const row = await newExport(database.pool, idle);
    const [one, gone] = [await backfillOf(row, 0), await newExport(database.pool, idle)];
    const other = await backfillOf(gone, 0);
    await world.client.workflow.start('exportBackfill', {
      workflowId: one.backfill.workflow_id,
      taskQueue: 'nobody',
      memo: { backfill: one.backfill.id },
    });
    await deleteBatchExport(database.pool, keyOf(gone));
    await maintain();
    expect((await one.now())?.status).toBe('Starting');
    await world.client.workflow.getHandle(one.backfill.workflow_id).terminate();
    await maintain();
    expect(await one.now()).toMatchObject({
      status: 'Terminated',
      latest_error: 'Its workflow was terminated in Temporal.',
    });
    expect(await other.now()).toMatchObject({
      status: 'Cancelled',
      latest_error: 'The batch export was deleted.',
    });
  });
});
