// The attack: exports to a server that accepts connections and never answers take every place of the worker. Others get
// their turn nevertheless, and so do they.
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { uuidv7 } from '../../db/uuid.ts';
import { cancelRun } from '../../exports/commands/cancel.ts';
import type { BatchExportRow, NewBatchExport } from '../../exports/rows/batch-exports.ts';
import { announceWorker, sumPlaces, withdrawWorker } from '../../exports/rows/place-workers.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import { createAsking, keepPlaces } from '../../exports/runs/worker-place.ts';
import type { ExportRunInput } from '../../exports/temporal.ts';
import { SYSTEM } from '../../tenancy/actor.ts';
import { EXPORT_RUN } from '../../workflows/names.ts';
import { eventually } from '../support/eventually.ts';
import { silentServerForFile } from '../support/silent-server.ts';
import { exportWorldForFile, fillHour, hour, hourly, logger } from './support.ts';

const silent = silentServerForFile();
const world = exportWorldForFile({
  settings: () => ({ SLUICE_EXPORT_CONCURRENCY: '3' }),
  patience: { attempts: 1, delay: () => 0 },
  // Only an attempt that fails says that its export does not get on.
  rhythm: { pause: () => 50, stands: 3_600_000, places: { announce: 1_000, ask: 100, reservation: 600_000 } },
});
const PLACES = 2;

beforeAll(async () => {
  for (const project of [1, 2]) await fillHour(world.pool, 0, 3, project);
});

const dying: WorkflowHandle[] = [];
/** Ends what never would, and finds every place free again. */
afterEach(async () => {
  await eventually(async () => {
    // A busy Temporal may miss one.
    await Promise.all(dying.map((handle) => handle.cancel().catch(() => undefined)));
    silent.drop();
    const { rows } = await world.pool.query('select from batch_export_places');
    return rows.length === 0;
  });
  await Promise.all(dying.splice(0).map((handle) => handle.result().catch(() => undefined)));
});

let count = 0;
interface Dead {
  row: BatchExportRow;
  bucket: string;
  handle: WorkflowHandle;
}
/** A run to the server that never answers. */
async function dead(given: Partial<NewBatchExport> = {}): Promise<Dead> {
  count += 1;
  const bucket = `dead-${count}`;
  const row = await world.create('S3', silent.s3(bucket), given);
  const handle = await world.start(row, hourly(0));
  dying.push(handle);
  return { row, bucket, handle };
}
const fine = (given: Partial<NewBatchExport> = {}) => {
  count += 1;
  return world.create('File', { directory: `fine-${count}` }, given);
};
const runOf = async (row: BatchExportRow) => (await world.runsOf(row))[0];
/** Its workflow waits, and its activity does not ask any more. */
const waits = async (row: BatchExportRow) => {
  const { rowCount } = await world.pool.query(
    'select from batch_export_places where batch_export_id = $1 and waiting_since is not null and asking_until is null',
    [row.id],
  );
  return rowCount === 1;
};
const statusOf = async (row: BatchExportRow) => (await runOf(row))?.status;
const detailsOf = async (handle: WorkflowHandle) =>
  (await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails;

/** Fills all places with dead runs. */
async function fill(more: number): Promise<Dead[]> {
  const all: Dead[] = [];
  for (let n = 0; n < PLACES; n += 1) all.push(await dead());
  await eventually(async () => silent.asked().length === PLACES);
  for (let n = 0; n < more; n += 1) all.push(await dead());
  for (const one of all.slice(PLACES)) await eventually(() => waits(one.row));
  return all;
}
/** Lets the attempt at work that has lasted longest fail, and waits until another one has its place. */
async function letOneFail(): Promise<void> {
  const [bucket] = silent.asked();
  if (bucket === undefined) return;
  silent.drop(bucket);
  await eventually(async () => !silent.asked().includes(bucket) || silent.asked()[0] !== bucket);
}

test('dead exports hold up neither other projects nor their own, and get their turns themselves', async () => {
  const all = await fill(4);
  expect((await sumPlaces(world.pool))[0]).toMatchObject({ places: PLACES, taken: PLACES, waiting: 4 });
  const [stranger, own] = [await fine({ project_id: 2 }), await fine()];
  const handles = [await world.start(stranger, hourly(0)), await world.start(own, hourly(0))];
  for (const row of [stranger, own]) await eventually(() => waits(row));
  const details = await eventually(async () => {
    const text = await detailsOf(handles[1] as WorkflowHandle);
    return text.startsWith('**Running**') ? undefined : text;
  });
  expect(details).toMatch(/^\*\*Waiting for a place\*\* since 20/);
  expect((await runOf(own))?.waiting_since).toMatch(/^20/);
  expect(await statusOf(own)).toBe('Starting');

  // One attempt that fails is enough for the other project, whoever came before it.
  await letOneFail();
  expect(await (handles[0] as WorkflowHandle).result()).toMatchObject({ status: 'Completed', records: 3 });
  // The own project's turn comes after the dead ones that came before it, and before those whose attempts failed.
  for (let n = 0; n < 6 && (await statusOf(own)) !== 'Completed'; n += 1) {
    await letOneFail();
    await eventually(async () => silent.asked().length === PLACES || (await statusOf(own)) === 'Completed');
  }
  expect(await (handles[1] as WorkflowHandle).result()).toMatchObject({ status: 'Completed', records: 3 });
  expect((await runOf(own))?.waiting_since).toBeNull();

  // Meanwhile all dead ones go on, each with its turns.
  await eventually(async () => {
    silent.drop();
    return all.every(({ bucket }) => (silent.counts.get(bucket) ?? 0) >= 3);
  });
  for (const { row } of all) {
    const run = await runOf(row);
    expect(['Starting', 'Running']).toContain(run?.status);
    expect(run?.latest_error).not.toMatch(/place/);
  }
});

test('a verification and a backfill get their turn beside dead ones', async () => {
  const exported = await fine();
  expect((await world.run(exported, hourly(0))).result.status).toBe('Completed');
  const row = await world.create('S3', silent.s3('dead-backfill'));
  const backfill = await world.backfill(row, hour(0), hour(3));
  await world.schedules.exports.startBackfill(row, backfill);
  dying.push(world.client.workflow.getHandle(backfill.workflow_id));
  await eventually(async () => {
    const [, lane] = await sumPlaces(world.pool);
    return silent.asked().length === 1 && lane?.waiting === 2;
  });
  const verification = world.schedules.exports.verify(exported, hourly(0), { waitMilliseconds: 120_000 });
  const filled = await world.backfill(exported, hour(0), hour(2));
  await world.schedules.exports.startBackfill(exported, filled);
  const healthy = world.client.workflow.getHandle(filled.workflow_id);
  // No attempt of the dead one ends. Its place is given away a second time, to an export that has shown that it gets on.
  const [report, result] = await Promise.all([verification, healthy.result()]);
  expect(report).toMatchObject({ verdict: 'same' });
  expect(result).toMatchObject({ status: 'Completed', completed: 2 });
  expect(silent.counts.get('dead-backfill')).toBe(1);
});

test('each worker takes no more than its own places, whichever one Temporal asks first', async () => {
  const second = await world.startWorker();
  const all: Dead[] = [];
  for (let n = 0; n < 2 * PLACES + 1; n += 1) all.push(await dead());
  await eventually(async () => silent.asked().length === 2 * PLACES);
  const taken = async () => {
    const { rows } = await world.pool.query(
      'select count(*)::int as places from batch_export_places where worker is not null group by worker',
    );
    return rows.map((row) => row.places);
  };
  expect(await taken()).toEqual([PLACES, PLACES]);
  expect((await sumPlaces(world.pool))[0]).toMatchObject({ places: 2 * PLACES, waiting: 1 });
  // What it has to hand over waits for the other one.
  await second.stop();
  await eventually(async () => {
    const [lane] = await sumPlaces(world.pool);
    return lane?.places === PLACES && lane.taken === PLACES && lane.waiting === all.length - PLACES;
  });
});

test('a run that waits can be cancelled, by its workflow and by its row', async () => {
  const all = await fill(1);
  const [byWorkflow, byRow] = [await fine(), await fine()];
  const first = await world.start(byWorkflow, hourly(0));
  const second = await world.start(byRow, hourly(0));
  for (const row of [byWorkflow, byRow]) await eventually(() => waits(row));
  await first.cancel();
  expect((await world.finished(first)).run.status).toBe('Cancelled');
  const deps = { pool: world.pool, temporal: world.schedules.exports, logger };
  await cancelRun(deps, SYSTEM, (await runOf(byRow)) as RunRow);
  expect((await world.finished(second)).run.status).toBe('Cancelled');
  const { rows } = await world.pool.query('select batch_export_id from batch_export_places');
  expect(rows.map((row) => row.batch_export_id).sort()).toEqual(all.map(({ row }) => row.id).sort());
});

test('a signal that was lost is sent again', async () => {
  const [first, second] = await fill(0);
  const waiting = await fine();
  const handle = await world.start(waiting, hourly(0));
  await eventually(() => waits(waiting));
  const { exports } = world.schedules;
  const { callToPlace } = exports;
  let lost = 0;
  exports.callToPlace = async () => {
    lost += 1;
  };
  silent.drop(first?.bucket);
  await eventually(async () => lost > 0);
  expect(await statusOf(waiting)).toBe('Starting');
  exports.callToPlace = callToPlace;
  expect(await handle.result()).toMatchObject({ status: 'Completed' });
  // The other place was not given back meanwhile, which would have called whoever waits as well.
  const { rows } = await world.pool.query(
    'select attempts, worker is not null as works from batch_export_places where batch_export_id = $1',
    [second?.row.id],
  );
  expect(rows).toEqual([{ attempts: 1, works: true }]);
});

test('maintenance tells those who were not told, and forgets verifications whose workflow is gone', async () => {
  const [first] = await fill(0);
  const waiting = await fine();
  const handle = await world.start(waiting, hourly(0));
  await eventually(() => waits(waiting));
  const { exports } = world.schedules;
  const { callToPlace } = exports;
  // Nobody hears anything, whoever tells it.
  exports.callToPlace = async () => undefined;
  const gone = uuidv7();
  await announceWorker(world.pool, gone, { exports: 1, backfills: 0 }, 600_000);
  await world.pool.query(
    `insert into batch_export_places (project_id, id, batch_export_id, kind, lane, workflow_id, fence)
     select 1, gen_random_uuid(), $1, 'verification', 'backfills', 'gone', 0`,
    [waiting.id],
  );
  const work = { signal: new AbortController().signal, beat: () => undefined };
  const rhythm = { places: { reservation: 3_600_000, announce: 0 } };
  const deps = { pool: world.pool, logger, rhythm, asking: createAsking(world.pool) };
  // One is forgotten, and one is told: twice, if the place is new.
  expect(await keepPlaces({ ...deps, temporal: exports }, work)).toBeGreaterThanOrEqual(2);
  expect(await statusOf(waiting)).toBe('Starting');
  exports.callToPlace = callToPlace;
  await keepPlaces({ ...deps, temporal: exports }, work);
  // The place is that of a worker which is gone. It asks until there is one here.
  await withdrawWorker(world.pool, gone);
  silent.drop(first?.bucket);
  expect(await handle.result()).toMatchObject({ status: 'Completed' });
});

test('a run that waits again and again goes on with a new history, and stays the same run', async () => {
  const all = await fill(0);
  const start = async (row: BatchExportRow, name: string) => {
    const input: ExportRunInput = { exportId: row.id, interval: hourly(0), waitsPerHistory: 1 };
    const options = { workflowId: `${row.id}-${name}`, taskQueue: world.config.SLUICE_TASK_QUEUE };
    const handle = await world.client.workflow.start(EXPORT_RUN, { ...options, args: [input] });
    const reference = { workflow_id: handle.workflowId, workflow_run_id: handle.firstExecutionRunId };
    await eventually(async () => {
      const now = await world.client.workflow.getHandle(handle.workflowId).describe();
      return now.runId !== handle.firstExecutionRunId;
    });
    expect(await world.schedules.exports.fateOfRun(reference)).toBe('running');
    return { handle, reference };
  };
  const row = await fine();
  const first = await start(row, 'completes');
  expect(await waits(row)).toBe(true);
  silent.drop(all[0]?.bucket);
  expect(await first.handle.result()).toMatchObject({ status: 'Completed', records: 3 });
  expect(await world.runsOf(row)).toMatchObject([
    { status: 'Completed', workflow_run_id: first.reference.workflow_run_id },
  ]);
  expect(await world.schedules.exports.fateOfRun(first.reference)).toBe('completed');

  await eventually(async () => silent.asked().length === PLACES);
  // An export that has had a place does not wait for those that fail.
  const fresh = await fine();
  const second = await start(fresh, 'is-cancelled');
  await world.schedules.exports.cancelRun(second.reference);
  await expect(second.handle.result()).rejects.toThrow();
  expect((await world.runsOf(fresh)).map((run) => run.status)).toEqual(['Cancelled']);
});
