import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { closeHorizon } from '../../db/horizon.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { type BackfillRow, findBackfill, progressOf } from '../../exports/rows/backfills.ts';
import type { BatchExportRow, NewBatchExport } from '../../exports/rows/batch-exports.ts';
import { startRun } from '../../exports/rows/runs.ts';
import { listBackfillIntervals } from '../../exports/runs/backfills.ts';
import { MAX_JITTER } from '../../intervals/index.ts';
import type { ExportBackfillResult } from '../../workflows/export-backfill.ts';
import { EXPORT_BACKFILL, EXPORT_RUN, searchAttributes } from '../../workflows/names.ts';
import { eventually } from '../support/eventually.ts';
import { insertEvents } from '../support/rows.ts';
import { exportedUuids, exportWorldForFile, fillHour, hour } from './support.ts';

const world = exportWorldForFile({ rhythm: { pause: () => 300 } });

const now = async ({ project_id, id }: BackfillRow) =>
  (await findBackfill(world.pool, { projectId: project_id, backfillId: id })) as BackfillRow;

/** The result of the last of its histories. */
async function finished(backfill: BackfillRow): Promise<ExportBackfillResult> {
  return world.client.workflow.getHandle(backfill.workflow_id).result();
}

async function fill(row: BatchExportRow, start: string | null, end: string | null) {
  const backfill = await world.backfill(row, start, end);
  await world.schedules.exports.startBackfill(row, backfill);
  return { backfill, result: await finished(backfill), now: await now(backfill) };
}

const lake = (directory: string, given: Partial<NewBatchExport> = {}) =>
  world.create('File', { directory, prefix: '{year}/{month}/{day}', file_format: 'JSONLines' }, given);

const intervalsOf = async (row: BatchExportRow) =>
  (await world.runsOf(row))
    .map((run) => [run.data_interval_start, run.data_interval_end, run.status])
    .sort((one, other) => ((one[1] as string) < (other[1] as string) ? -1 : 1));

describe('a backfill', () => {
  test('exports each interval of its range once, by a run of its own', async () => {
    const project_id = 31;
    const row = await lake('range', { project_id });
    const uuids = (
      await Promise.all([0, 1, 3, 6].map((n) => fillHour(world.pool, n, 50, project_id)))
    ).flat();
    await fillHour(world.pool, 7, 10, project_id);
    const { result, now: after, backfill } = await fill(row, hour(0), hour(7));
    expect(result).toEqual({ status: 'Completed', total: 7, completed: 7, failed: 0, cancelled: 0 });
    expect(after).toMatchObject({
      status: 'Completed',
      total_runs: 7,
      total_records_count: 200,
      finished_runs: 7,
    });
    expect(progressOf(after)).toEqual({ total_runs: 7, finished_runs: 7, progress: 1 });
    expect(exportedUuids(`${world.root}/range`)).toEqual([...uuids].sort());
    expect(await intervalsOf(row)).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map((n) => [
        hour(n).replace('.000', ''),
        hour(n + 1).replace('.000', ''),
        'Completed',
      ]),
    );
    const described = await world.client.workflow.getHandle(backfill.workflow_id).describe();
    expect(described.typedSearchAttributes.get(searchAttributes.kind)).toBe('export-backfill');
    const run = (await world.runsOf(row)).find(
      (one) => Date.parse(one.data_interval_end) === Date.parse(hour(1)),
    );
    expect(run).toMatchObject({
      backfill_id: backfill.id,
      workflow_id: `${row.id}-${hour(1)}-${backfill.id}`,
    });
    const child = await world.client.workflow.getHandle(run!.workflow_id).describe();
    expect(child.typedSearchAttributes.get(searchAttributes.export)).toBe(row.id);
    expect((await world.logsOf(row)).map((one) => one.message)).toEqual(
      expect.arrayContaining([
        `Starting backfill of range ${hour(0)} - ${hour(7)}, 7 runs`.replaceAll('.000Z', 'Z'),
        'Backfill finished successfully: 7 of 7 intervals completed',
      ]),
    );
  });

  test('goes on with a new history, and forgets nothing', async () => {
    const project_id = 32;
    const row = await lake('histories', { project_id });
    const uuids = (
      await Promise.all([0, 1, 2, 3, 4].map((n) => fillHour(world.pool, n, 20, project_id)))
    ).flat();
    const backfill = await world.backfill(row, hour(0), hour(5));
    const handle = await world.client.workflow.start(EXPORT_BACKFILL, {
      workflowId: backfill.workflow_id,
      taskQueue: world.config.SLUICE_TASK_QUEUE,
      args: [{ exportId: row.id, backfillId: backfill.id, runsPerHistory: 2 }],
    });
    expect(await handle.result()).toEqual({
      status: 'Completed',
      total: 5,
      completed: 5,
      failed: 0,
      cancelled: 0,
    });
    const first = await world.client.workflow
      .getHandle(backfill.workflow_id, handle.firstExecutionRunId)
      .describe();
    expect(first.status.name).toBe('CONTINUED_AS_NEW');
    expect(exportedUuids(`${world.root}/histories`)).toEqual([...uuids].sort());
    expect(await world.runsOf(row)).toHaveLength(5);
  });

  test('without a beginning is one run of everything', async () => {
    const project_id = 33;
    const row = await lake('whole', { project_id });
    const uuids = (await Promise.all([0, 5].map((n) => fillHour(world.pool, n, 20, project_id)))).flat();
    const { now: after } = await fill(row, null, hour(6));
    expect(after).toMatchObject({
      status: 'Completed',
      total_runs: 1,
      total_records_count: 40,
      adjusted_start_at: null,
    });
    expect(await intervalsOf(row)).toEqual([[null, hour(6).replace('.000', ''), 'Completed']]);
    expect(exportedUuids(`${world.root}/whole`)).toEqual([...uuids].sort());
  });

  test('begins at the first data', async () => {
    const project_id = 34;
    const row = await lake('raised', { project_id });
    await fillHour(world.pool, 9, 5, project_id);
    const { now: after } = await fill(row, hour(-24 * 40), hour(11));
    expect(after).toMatchObject({ status: 'Completed', total_runs: 2, total_records_count: 5 });
    expect(after.adjusted_start_at).toBe(hour(9).replace('.000', ''));
    expect(await world.runsOf(row)).toHaveLength(2);
  });

  test('is not stopped by a run that fails, and says in the end that one did', async () => {
    const project_id = 35;
    const row = await lake('failing', { project_id });
    const other = await lake('failing', { project_id, name: 'Other', write_store: null });
    await fillHour(world.pool, 0, 5, project_id);
    // The manifest of another export is in the way of the second hour.
    await world.run(other, { start: hour(1), end: hour(2) });
    const { result, now: after } = await fill(row, hour(0), hour(3));
    expect(result).toEqual({ status: 'Failed', total: 3, completed: 2, failed: 1, cancelled: 0 });
    expect(after).toMatchObject({ status: 'Failed', latest_error: '2 of 3 intervals completed; 1 failed.' });
    expect((await intervalsOf(row)).map((one) => one[2])).toEqual(['Completed', 'Failed', 'Completed']);
  });

  test('waits for a run that exports one of its intervals already', async () => {
    const project_id = 36;
    const row = await lake('busy', { project_id });
    const [uuid] = await fillHour(world.pool, 0, 1, project_id);
    // It lasts: nobody works on its queue.
    const live = await world.client.workflow.start(EXPORT_RUN, {
      workflowId: `live-${row.id}`,
      taskQueue: 'nobody',
    });
    const key = { projectId: project_id, exportId: row.id };
    const { run } = await startRun(world.pool, {
      ...{ ...key, start: hour(0), end: hour(1) },
      ...{ workflowId: live.workflowId, workflowRunId: live.firstExecutionRunId },
    });
    const backfill = await world.backfill(row, hour(0), hour(2));
    await world.schedules.exports.startBackfill(row, backfill);
    await eventually(async () => (await now(backfill)).finished_runs === 1);
    expect((await intervalsOf(row)).map((one) => one[2])).toEqual(['Starting', 'Completed']);
    await live.terminate('over');
    expect(await finished(backfill)).toMatchObject({ status: 'Completed', completed: 2 });
    expect((await world.runsOf(row)).find((one) => one.id === run.id)?.status).toBe('Terminated');
    expect(exportedUuids(`${world.root}/busy`)).toEqual([uuid]);
  });

  test('that is cancelled ends its runs first', async () => {
    const project_id = 37;
    const row = await lake('cancelled', { project_id });
    await fillHour(world.pool, 0, 5, project_id);
    const live = await world.client.workflow.start(EXPORT_RUN, {
      workflowId: `live-${row.id}`,
      taskQueue: 'nobody',
    });
    const key = { projectId: project_id, exportId: row.id };
    await startRun(world.pool, {
      ...{ ...key, start: hour(2), end: hour(3) },
      ...{ workflowId: live.workflowId, workflowRunId: live.firstExecutionRunId },
    });
    const backfill = await world.backfill(row, hour(0), hour(8));
    await world.schedules.exports.startBackfill(row, backfill);
    await eventually(async () => (await now(backfill)).finished_runs >= 2);
    await world.schedules.exports.cancelBackfill(backfill);
    await expect(finished(backfill)).rejects.toThrow();
    const handle: WorkflowHandle = world.client.workflow.getHandle(backfill.workflow_id);
    expect((await handle.describe()).status.name).toBe('CANCELLED');
    expect(await now(backfill)).toMatchObject({ status: 'Cancelled', finished_at: expect.any(String) });
    const query = `${searchAttributes.export.name} = '${row.id}' and ExecutionStatus = 'Running'`;
    await eventually(async () => {
      const running: string[] = [];
      for await (const one of world.client.workflow.list({ query })) running.push(one.workflowId);
      return running.length === 0;
    });
    const open = (await world.runsOf(row)).filter((one) => one.finished_at === null);
    expect(open.map((one) => one.workflow_id)).toEqual([live.workflowId]);
    await live.terminate();
    await world.schedules.exports.cancelBackfill(backfill);
  });

  test('is not completed where more intervals were over than were counted, and one of them failed', async () => {
    const project_id = 42;
    const row = await lake('more', { project_id });
    await fillHour(world.pool, 0, 5, project_id);
    // Something else lies where the manifest of the second hour goes.
    const folder = path.join(world.root, 'more/2026/03/02');
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      path.join(folder, '2026-03-02T01:00:00+00:00-2026-03-02T02:00:00+00:00_manifest.json'),
      'not ours',
    );
    const backfill = await world.backfill(row, hour(0), hour(2));
    const counted = { after: null, total: 1, completed: 0, failed: 0, cancelled: 0 };
    const result = await world.client.workflow.execute(EXPORT_BACKFILL, {
      workflowId: backfill.workflow_id,
      taskQueue: world.config.SLUICE_TASK_QUEUE,
      args: [{ exportId: row.id, backfillId: backfill.id, from: counted }],
    });
    expect(result).toMatchObject({ status: 'Failed', completed: 1, failed: 1 });
  });

  test('of a range that is not over leaves the rest to the schedule', async () => {
    const row = await lake('future', { project_id: 38 });
    const hourNow = Math.floor(Date.now() / 3_600_000) * 3_600_000;
    const iso = (instant: number) => new Date(instant).toISOString();
    const { now: after } = await fill(row, iso(hourNow - 3_600_000), iso(Date.now()));
    expect(after).toMatchObject({ status: 'Completed', total_runs: 1 });
    expect((await world.runsOf(row)).map((one) => one.data_interval_end)).toEqual([
      iso(hourNow).replace('.000', ''),
    ]);
    const none = await fill(row, iso(hourNow), iso(hourNow + 60_000));
    expect(none.result).toEqual({ status: 'Completed', total: 0, completed: 0, failed: 0, cancelled: 0 });
  });

  test('whose export is deleted ends', async () => {
    const row = await lake('deleted', { project_id: 39 });
    const backfill = await world.backfill(row, hour(0), hour(2));
    await world.pool.query('update batch_exports set deleted_at = clock_timestamp() where id = $1', [row.id]);
    await world.schedules.exports.startBackfill(row, backfill);
    expect((await finished(backfill)).status).toBe('Cancelled');
    expect(await world.runsOf(row)).toEqual([]);
  });

  test('that was lost with its workflow goes on after the intervals it has done', async () => {
    const project_id = 40;
    const row = await lake('lost', { project_id });
    await fillHour(world.pool, 0, 5, project_id);
    const { backfill } = await fill(row, hour(0), hour(3));
    await world.pool.query(
      `update batch_export_backfills set status = 'Running', finished_at = null where id = $1`,
      [backfill.id],
    );
    await world.pool.query(
      'delete from batch_export_runs where batch_export_id = $1 and data_interval_end = $2',
      [row.id, hour(2)],
    );
    // What is done is passed over in one step: a history has room for so many steps only.
    const from = { exportId: row.id, backfillId: backfill.id, after: null, limit: 1 };
    expect(await listBackfillIntervals({ pool: world.pool }, from)).toEqual({
      intervals: [{ start: hour(1), end: hour(2), done: false }],
      ...{ skipped: 1, last: hour(2) },
    });
    await world.schedules.exports.startBackfill(row, backfill);
    expect(await finished(backfill)).toMatchObject({ status: 'Completed', total: 3, completed: 3 });
    expect(await world.runsOf(row)).toHaveLength(3);
  });
});

test('at the seam of a backfill and the schedule each event is exported once', async () => {
  const project_id = 41;
  const row = await lake('seam', { project_id });
  // Events that happened earlier and came in later: by the time they happened they would be in both, or in none.
  const uuids: string[] = [];
  for (let n = 0; n < 6; n += 1) {
    const events = Array.from({ length: 40 }, (_, index) => {
      const inserted = Date.parse(hour(n)) + Math.floor((index * 3_600_000) / 40);
      const shift = (index % 5) * 1_800_000 * (index % 2 === 0 ? 1 : -1);
      return {
        project_id,
        uuid: uuidv7(),
        event: 'e',
        timestamp: new Date(inserted - shift).toISOString(),
        inserted_at: new Date(inserted).toISOString(),
      };
    });
    uuids.push(...events.map((one) => one.uuid));
    await insertEvents(world.pool, events);
  }
  await closeHorizon(world.pool, 1_000);
  // The schedule runs hours 3 to 5 while the backfill does hours 0 to 3: one of them is in both.
  await world.schedules.exports.sync(row);
  const live = world.client.schedule.getHandle(row.id);
  // An hour's time comes with the export's jitter.
  const end = new Date(Date.parse(hour(6)) + MAX_JITTER);
  const past = { start: new Date(hour(4)), end, overlap: 'ALLOW_ALL' as const };
  const [{ result }] = await Promise.all([fill(row, hour(0), hour(4)), live.backfill(past)]);
  await eventually(async () => {
    const done = (await world.runsOf(row)).filter((run) => run.status === 'Completed');
    return new Set(done.map((run) => run.data_interval_end)).size === 6;
  });
  expect((await world.runsOf(row)).filter((run) => run.backfill_id === null)).not.toHaveLength(0);
  expect(result.status).toBe('Completed');
  expect(exportedUuids(`${world.root}/seam`)).toEqual([...uuids].sort());
});
