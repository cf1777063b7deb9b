import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { exportHealth, intervalMap } from '../../exports/reads/health.ts';
import { type BatchExportRow, type NewBatchExport, setPaused } from '../../exports/rows/batch-exports.ts';
import { listChecks, recordChecks } from '../../exports/rows/checks.ts';
import { markRunEnded, startRun } from '../../exports/rows/runs.ts';
import { scheduledWorkflowId } from '../../exports/rules/workflow-ids.ts';
import { registerHealthMetrics } from '../../exports/runs/metrics.ts';
import { upkeepId } from '../../schedules/upkeep.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { EXPORT_RUN, RECONCILE_EXPORTS, searchAttributes } from '../../workflows/names.ts';
import type { ReconcileReport } from '../../workflows/reconcile-exports.ts';
import { eventually } from '../support/eventually.ts';
import { insertEvents } from '../support/rows.ts';
import { type ExportWorld, exportedUuids, exportWorldForFile, HOUR } from './support.ts';

interface Notice {
  event: string;
  export: { id: string };
  details: Record<string, unknown>;
}
const notices: Notice[] = [];
const receiver = createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    notices.push(JSON.parse(text));
    response.end();
  });
});
beforeAll(() => new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve)));
afterAll(() => new Promise((resolve) => void receiver.close(resolve)));
const webhook = () => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;

const told = (row: BatchExportRow, event: string) =>
  eventually(async () =>
    notices.find((one) => one.export.id === row.id && one.event === `batch_export.${event}`),
  );

// An hour that ends while the tests run would be one more that is due.
await eventually(async () => HOUR - (Date.now() % HOUR) > 40_000);
const thisHour = Math.floor(Date.now() / HOUR) * HOUR;
const iso = (instant: number) => new Date(instant).toISOString();
/** The n-th of the hours before this one. */
const ago = (n: number) => ({ start: iso(thisHour - n * HOUR), end: iso(thisHour - (n - 1) * HOUR) });

async function reconcile(world: ExportWorld): Promise<ReconcileReport> {
  return world.client.workflow.execute(RECONCILE_EXPORTS, {
    workflowId: `reconcile-${randomUUID()}`,
    taskQueue: world.config.SLUICE_TASK_QUEUE,
  });
}

/** Only what the test asks for is to be counted. */
async function withoutSchedule(world: ExportWorld): Promise<void> {
  const workflowId = upkeepId('reconciliation', world.config.SLUICE_TASK_QUEUE);
  const handle = world.client.workflow.getHandle(workflowId);
  // Not in the middle of its first round.
  await eventually(async () => (await handle.describe()).raw.pendingActivities?.length === 0);
  await handle.terminate();
}

/** An export that has been due for `hours` hours. */
async function lake(
  world: ExportWorld,
  name: string,
  project_id: number,
  hours: number,
  given: Partial<NewBatchExport> = {},
) {
  const config = { directory: name, prefix: 'p', file_format: 'JSONLines' };
  const row = await world.create('File', config, { project_id, ...given });
  const { rows } = await world.pool.query(
    `update batch_exports set scheduled_from = $2, created_at = $2, last_updated_at = $2 where id = $1 returning *`,
    [row.id, iso(thisHour - hours * HOUR)],
  );
  return rows[0] as BatchExportRow;
}

async function fill(world: ExportWorld, project_id: number, n: number, count: number): Promise<string[]> {
  const start = Date.parse(ago(n).start);
  const events = Array.from({ length: count }, (_, index) => ({
    ...{ project_id, uuid: uuidv7(), event: 'e' },
    timestamp: iso(start + Math.floor((index * HOUR) / count)),
  }));
  await insertEvents(world.pool, events);
  return events.map((one) => one.uuid);
}

const statesOf = async (world: ExportWorld, row: BatchExportRow) =>
  (await intervalMap(world.pool, row, { start: thisHour - 6 * HOUR, end: thisHour }, Date.now())).map(
    (one) => one.state,
  );
const untilStates = (world: ExportWorld, row: BatchExportRow, states: string[]) =>
  eventually(async () => JSON.stringify(await statesOf(world, row)) === JSON.stringify(states));
const keyOf = (row: BatchExportRow) => ({ projectId: row.project_id, exportId: row.id });
const window = { after: iso(thisHour - 24 * HOUR), until: iso(thisHour) };

describe('with repair', () => {
  const world = exportWorldForFile({ settings: () => ({ SLUICE_NOTICE_WEBHOOK: webhook() }) });
  beforeAll(() => withoutSchedule(world));

  test('intervals without a run are told of, counted, and started again', async () => {
    const row = await lake(world, 'repaired', 61, 6);
    const uuids = [
      ...(await fill(world, 61, 6, 5)),
      ...(await fill(world, 61, 4, 7)),
      ...(await fill(world, 61, 1, 3)),
    ];
    // The last hour is late at most, and its schedule may yet come.
    const before = await exportHealth(world.pool, row, Date.now());
    expect(before).toMatchObject({ missing: expect.any(Number), lag_intervals: 6, lag_seconds: 6 * 3600 });
    expect([4, 5]).toContain(before.missing);
    const report = await reconcile(world);
    expect(report).toMatchObject({ exports: 1, missing: before.missing, repaired: before.missing });
    const rest = Array.from({ length: 6 - before.missing }, () => expect.stringMatching(/late|running/));
    await eventually(
      async () => (await statesOf(world, row)).filter((one) => one === 'done').length === before.missing,
    );
    expect(await statesOf(world, row)).toEqual([...Array(before.missing).fill('done'), ...rest]);
    expect((await told(row, 'missing')).details).toMatchObject({
      intervals: before.missing,
      started_again: before.missing,
    });
    expect((await told(row, 'lagging')).details).toMatchObject({ intervals: 6, seconds: 6 * 3600 });
    const messages = (await world.logsOf(row)).map((one) => one.message);
    expect(messages).toContain(`The interval ${ago(6).start} - ${ago(6).end} is missing: There was no run.`);
    expect(messages).toContain(
      `The interval ${ago(6).start} - ${ago(6).end} is missing and was started again`,
    );
    for (let n = 6 - before.missing; n > 0; n -= 1) await world.run(row, ago(n)).catch(() => undefined);
    await untilStates(world, row, Array(6).fill('done'));
    expect(exportedUuids(`${world.root}/repaired`)).toEqual([...uuids].sort());
    const again = await reconcile(world);
    expect(again).toMatchObject({ missing: 0, late: 0, repaired: 0, differ: 0 });
    const checks = await listChecks(world.pool, keyOf(row), window);
    expect(checks.map((one) => one.state)).toEqual(Array(6).fill('same'));
    expect(await exportHealth(world.pool, row, Date.now())).toEqual({
      ...{ missing: 0, late: 0, differs: 0, lag_intervals: 0, lag_seconds: 0 },
    });
    expect(notices.filter((one) => one.export.id === row.id)).toHaveLength(2);
  });

  test('what somebody cancelled, what is on its way, and a paused export are left alone', async () => {
    const [cancelled, coming, paused] = [
      await lake(world, 'left-1', 62, 3),
      await lake(world, 'left-2', 62, 3),
      await lake(world, 'left-3', 62, 3),
    ];
    const { run } = await startRun(world.pool, {
      ...{ ...keyOf(cancelled), ...ago(3), workflowId: 'a', workflowRunId: randomUUID() },
    });
    await markRunEnded(world.pool, { projectId: 62, runId: run.id }, 'Cancelled', null);
    // What its schedule started waits for a worker.
    const scheduled = await world.client.workflow.start(EXPORT_RUN, {
      workflowId: scheduledWorkflowId(coming.id, ago(3).end),
      taskQueue: 'nobody',
    });
    await setPaused(world.pool, keyOf(paused), true);
    for (const row of [cancelled, coming, paused])
      await world.pool.query('select 1 where $1::text is not null', [row.id]);
    await reconcile(world);
    expect((await statesOf(world, cancelled))[3]).toBe('missing');
    expect(await world.runsOf(cancelled)).toHaveLength(1);
    expect(await world.runsOf(coming)).toEqual([]);
    // Nobody is told of what is on its way.
    expect(await listChecks(world.pool, keyOf(coming), window)).toEqual([]);
    expect(await world.runsOf(paused)).toEqual([]);
    expect((await listChecks(world.pool, keyOf(paused), window))[0]).toMatchObject({
      state: 'missing',
      repairs: 0,
    });
    await scheduled.terminate();
  });

  test('rows that are others than those that were exported are told of, once, until they are exported again', async () => {
    const row = await lake(world, 'differs', 63, 1);
    await fill(world, 63, 1, 20);
    await world.run(row, ago(1)).catch(() => undefined);
    await world.pool.query(
      'delete from events where project_id = 63 and uuid in (select uuid from events where project_id = 63 limit 4)',
    );
    const report = await reconcile(world);
    expect(report.differ).toBe(1);
    expect((await statesOf(world, row)).at(-1)).toBe('differs');
    expect((await told(row, 'differs')).details).toEqual({ exported: 20, in_database: 16 });
    expect(await exportHealth(world.pool, row, Date.now())).toMatchObject({ differs: 1, lag_intervals: 0 });
    const once = await listChecks(world.pool, keyOf(row), window);
    await reconcile(world);
    expect(await listChecks(world.pool, keyOf(row), window)).toEqual(once);
    await world.run(row, ago(1)).catch(() => undefined);
    expect((await statesOf(world, row)).at(-1)).toBe('done');
    expect((await reconcile(world)).differ).toBe(0);
    const [check] = await listChecks(world.pool, keyOf(row), window);
    expect(check).toMatchObject({ state: 'same', source_rows: 16, problem: null });
  });

  test('what could not be written down is told of nevertheless, once', async () => {
    const row = await lake(world, 'told-once', 68, 6, { end_at: ago(3).end });
    // Where all fail, the pass itself does.
    await lake(world, 'told-otherwise', 69, 1);
    await setPaused(world.pool, keyOf(row), true);
    const failAt = async (name: string) => {
      await world.pool.query(
        `create or replace function refuse_row() returns trigger language plpgsql as $$
         begin raise exception 'as if the worker were killed here'; end $$`,
      );
      await world.pool.query(
        `create trigger refuse_row before insert or update on ${name} for each row
         when (new.batch_export_id = '${row.id}') execute function refuse_row()`,
      );
      expect((await reconcile(world)).failed).toBe(1);
      await world.pool.query(`drop trigger refuse_row on ${name}`);
    };
    await failAt('batch_export_checks');
    await failAt('batch_export_health');
    await reconcile(world);
    await reconcile(world);
    expect((await told(row, 'missing')).details).toMatchObject({ intervals: 4, started_again: 0 });
    await told(row, 'lagging');
    const running = async () => {
      const query = `${searchAttributes.export.name} = '${row.id}' and ExecutionStatus = 'Running'`;
      for await (const one of world.client.workflow.list({ query })) return one;
      return undefined;
    };
    await eventually(async () => (await running()) === undefined);
    expect(notices.filter((one) => one.export.id === row.id)).toHaveLength(2);
    const messages = (await world.logsOf(row)).map((one) => one.message);
    expect(messages.filter((one) => one.includes(`${ago(6).start} - ${ago(6).end} is missing`))).toHaveLength(
      1,
    );
  });

  test('one that waits for its next turn has it, also when all until its end was looked at', async () => {
    const row = await lake(world, 'turns', 67, 4);
    const nothing = { runId: null, sourceRows: null, contentHash: null, problem: null };
    const { start, end } = ago(4);
    await recordChecks(world.pool, [
      { ...keyOf(row), start, end, state: 'missing', ...nothing },
      { ...keyOf(row), start: null, end, state: 'same', ...nothing },
    ]);
    await world.pool.query(
      `update batch_export_checks set repairs = 1, repaired_at = now() - interval '11 minutes'
       where batch_export_id = $1 and data_interval_start is not null`,
      [row.id],
    );
    await reconcile(world);
    const runs = () => world.runsOf(row);
    await eventually(async () =>
      (await runs()).some((one) => Date.parse(one.data_interval_end) === Date.parse(end)),
    );
  });

  test('an export that cannot be looked at keeps none of the others from it', async () => {
    const broken = await lake(world, 'broken', 66, 4, { interval: 'day', timezone: 'Nowhere/Land' });
    const row = await lake(world, 'whole', 66, 4);
    const report = await reconcile(world);
    expect(report.failed).toBe(1);
    await world.pool.query('delete from batch_exports where id = $1', [broken.id]);
    expect((await listChecks(world.pool, keyOf(row), window)).length).toBeGreaterThanOrEqual(2);
  });

  test('metrics show it', async () => {
    const registry = createRegistry('test');
    registerHealthMetrics(registry, world.pool);
    const row = await lake(world, 'metrics', 64, 4);
    await startRun(world.pool, {
      ...keyOf(row),
      ...ago(4),
      workflowId: 'a',
      workflowRunId: randomUUID(),
    }).then(({ run }) => markRunEnded(world.pool, { projectId: 64, runId: run.id }, 'Cancelled', null));
    await reconcile(world);
    const text = await registry.metrics();
    expect(text).toMatch(/sluice_export_intervals\{state="missing",process="test"\} [1-9]/);
    expect(text).toMatch(
      new RegExp(
        `sluice_export_behind_seconds\\{project="64",export="${row.id}",destination="File",process="test"\\} 14400`,
      ),
    );
    const uncheckedFor = async () =>
      Number(
        /sluice_export_unchecked_seconds\{process="test"\} (.+)/.exec(await registry.metrics())?.[1] ??
          Number.NaN,
      );
    await world.pool.query(
      `update batch_export_health set checked_at = checked_at - interval '1 day' where batch_export_id = $1`,
      [row.id],
    );
    expect(await uncheckedFor()).toBeGreaterThan(86_000);
    await reconcile(world);
    expect(await uncheckedFor()).toBeLessThan(3_600);
  });
});

describe('without repair', () => {
  const world = exportWorldForFile({ settings: () => ({ SLUICE_EXPORT_REPAIR: 'false' }) });
  beforeAll(() => withoutSchedule(world));

  test('intervals that are missing are found, and that is all', async () => {
    const row = await lake(world, 'found', 65, 4);
    const report = await reconcile(world);
    expect(report.missing).toBeGreaterThanOrEqual(2);
    expect(report.repaired).toBe(0);
    expect(await world.runsOf(row)).toEqual([]);
  });
});
