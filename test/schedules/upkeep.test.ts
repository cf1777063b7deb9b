import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { ScheduleNotFoundError, type WorkflowHandle } from '@temporalio/client';
import { diagnoseTemporal } from '../../schedules/diagnose.ts';
import { ensureUpkeep, upkeepId } from '../../schedules/upkeep.ts';
import { searchAttributes, UPKEEP, UPKEEP_NOW } from '../../workflows/names.ts';
import type { UpkeepInput } from '../../workflows/upkeep.ts';
import { exportWorldForFile } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';

const world = exportWorldForFile();
const KINDS = ['maintenance', 'reconciliation', 'dispatch', 'retries'] as const;
const idOf = (of: UpkeepInput['of']) => upkeepId(of, world.config.SLUICE_TASK_QUEUE);
const handleOf = (of: UpkeepInput['of']) => world.client.workflow.getHandle(idOf(of));
/** What the page of a workflow shows. */
const shownBy = async (handle: WorkflowHandle): Promise<string> =>
  (await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata')).currentDetails ?? '';
const runIds = () => Promise.all(KINDS.map(async (of) => (await handleOf(of).describe()).runId));
const maintenance = async (hangs?: number) =>
  (await diagnoseTemporal(world.config, hangs)).find(({ check }) => check === 'maintenance');

describe('upkeep', () => {
  test('is four workflows that go on, and no schedule', async () => {
    expect(KINDS.map(idOf)).toEqual([
      ...['sluice-maintenance', 'sluice-export-reconcile'],
      ...['sluice-function-dispatch', 'sluice-function-retries'],
    ]);
    for (const of of KINDS) {
      await eventually(async () => (await shownBy(handleOf(of))).startsWith('**Done** at '));
      const { status, type, typedSearchAttributes, taskQueue } = await handleOf(of).describe();
      expect([status.name, type, taskQueue]).toEqual(['RUNNING', UPKEEP, world.config.SLUICE_TASK_QUEUE]);
      expect(typedSearchAttributes.get(searchAttributes.kind)).toBeDefined();
    }
    expect(await shownBy(handleOf('maintenance'))).toMatch(/^- \d+ schedules repaired$/m);
    const before = await runIds();
    await world.schedules.ensure();
    expect(await runIds()).toEqual(before);
    const schedules: string[] = [];
    for await (const { scheduleId } of world.client.schedule.list()) schedules.push(scheduleId);
    expect(schedules).toEqual([]);
    expect(await maintenance()).toEqual({
      ...{ check: 'maintenance', ok: true },
      sentence: 'Maintenance runs: the workflow sluice-maintenance.',
    });
  });

  test('is started again when somebody ended it, once, whoever sees it', async () => {
    const before = await runIds();
    await handleOf('maintenance').terminate();
    await handleOf('retries').cancel();
    await expect(handleOf('retries').result()).rejects.toThrow('Workflow execution cancelled');
    expect(await maintenance()).toMatchObject({
      ...{ ok: false },
      sentence: 'Maintenance does not run in Temporal. A running worker starts it within a minute.',
    });
    await Promise.all([1, 2, 3, 4].map(() => world.schedules.ensure()));
    const after = await runIds();
    expect(after.map((one, index) => one === before[index])).toEqual([false, true, true, false]);
    await world.schedules.ensure();
    expect(await runIds()).toEqual(after);
  });

  test('takes the place of the schedules of older versions, and leaves those of other installations alone', async () => {
    const make = (scheduleId: string, taskQueue: string) =>
      world.client.schedule.create({
        scheduleId,
        spec: { intervals: [{ every: '1 hour' }] },
        action: { type: 'startWorkflow', workflowType: 'maintenance', taskQueue },
      });
    const isThere = (scheduleId: string) =>
      world.client.schedule
        .getHandle(scheduleId)
        .describe()
        .then(
          () => true,
          (error) => !(error instanceof ScheduleNotFoundError),
        );
    const own = world.config.SLUICE_TASK_QUEUE;
    const old = ['sluice-maintenance', 'sluice-function-dispatch', 'sluice-function-retries'];
    for (const id of old) await make(id, own);
    await make('sluice-export-reconcile', 'of-another');
    await world.schedules.ensure();
    for (const id of old) expect(await isThere(id)).toBe(false);
    expect(await isThere('sluice-export-reconcile')).toBe(true);
    await world.client.schedule.getHandle('sluice-export-reconcile').delete();
  });

  test('of two installations in one namespace does not mix', async () => {
    await ensureUpkeep(world.client, 'of-another', { isComplete: true });
    expect((await world.client.workflow.getHandle('of-another-maintenance').describe()).taskQueue).toBe(
      'of-another',
    );
    expect((await handleOf('maintenance').describe()).taskQueue).toBe(world.config.SLUICE_TASK_QUEUE);
    for (const of of KINDS) await world.client.workflow.getHandle(upkeepId(of, 'of-another')).terminate();
  });

  test('gets the search attributes that were missing when it began', async () => {
    await handleOf('dispatch').terminate();
    await ensureUpkeep(world.client, world.config.SLUICE_TASK_QUEUE, { isComplete: false });
    const kind = async () =>
      (await handleOf('dispatch').describe()).typedSearchAttributes.get(searchAttributes.kind);
    expect(await kind()).toBeUndefined();
    await world.schedules.ensure();
    expect(await kind()).toBe('function-backlog');
  });
});

/** Upkeep of the test's own. It waits for long between its rounds. */
const start = (input: UpkeepInput, taskQueue = world.config.SLUICE_TASK_QUEUE) =>
  world.client.workflow.start(UPKEEP, {
    workflowId: `upkeep-${randomUUID()}`,
    taskQueue,
    args: [{ everyMilliseconds: 3_600_000, ...input }],
  });

describe('the rounds of upkeep', () => {
  test('begin at once when somebody wants one, and show when the last one ended', async () => {
    const handle = await start({ of: 'dispatch' });
    await eventually(async () => (await shownBy(handle)).startsWith('**Done**'));
    const activities = async () =>
      ((await handle.fetchHistory()).events ?? []).filter((one) => one.activityTaskCompletedEventAttributes)
        .length;
    expect(await activities()).toBe(1);
    await handle.signal(UPKEEP_NOW);
    await eventually(async () => (await activities()) === 2);
    expect(await shownBy(handle)).toContain('transactions with 0 events wait to be matched');
    await handle.terminate();
  });

  test('go on with a new history after some of them', async () => {
    const handle = await start({ of: 'retries', everyMilliseconds: 10, roundsPerHistory: 3 });
    const { runId } = await handle.describe();
    await eventually(
      async () => (await world.client.workflow.getHandle(handle.workflowId).describe()).runId !== runId,
    );
    const { events } = await world.client.workflow.getHandle(handle.workflowId, runId).fetchHistory();
    expect(events?.filter((one) => one.activityTaskCompletedEventAttributes)).toHaveLength(3);
    expect(events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes).toBeDefined();
    await world.client.workflow.getHandle(handle.workflowId).terminate();
  });

  test('that fail are shown, and the next one tries again', async () => {
    await world.pool.query('alter table function_queue rename to function_queue_away');
    const handle = await start({ of: 'retries' });
    await eventually(async () => (await shownBy(handle)).startsWith('**Failed** at '));
    expect(await shownBy(handle)).toContain('relation "function_queue" does not exist');
    await world.pool.query('alter table function_queue_away rename to function_queue');
    await handle.signal(UPKEEP_NOW);
    await eventually(async () => (await shownBy(handle)).startsWith('**Done** at '));
    expect(await shownBy(handle)).not.toContain('relation');
    await handle.terminate();
  });
});

describe('doctor', () => {
  test('names the steps of maintenance that hang', async () => {
    const client = await world.pool.connect();
    try {
      await client.query('begin; lock table wizard_sessions');
      world.schedules.nudgeMaintenance();
      const hanging =
        /^Maintenance runs, but these steps have not ended for minutes: expireSessions \(attempt 1\)\. /;
      await eventually(async () => hanging.test((await maintenance(1_000))?.sentence ?? ''));
      expect((await maintenance())?.ok).toBe(true);
      await eventually(async () => /^\*\*Working\*\* since /.test(await shownBy(handleOf('maintenance'))));
    } finally {
      await client.query('rollback');
      client.release();
    }
    await eventually(async () => (await shownBy(handleOf('maintenance'))).startsWith('**Done** at '));
  });

  test('tells of maintenance that waits for a worker', async () => {
    await world.worker.stop();
    world.schedules.nudgeMaintenance();
    await eventually(async () => (await maintenance(1))?.ok === false);
    expect((await maintenance(1))?.sentence).toMatch(/^Maintenance waits for a worker since \S+\. Start one/);
    expect((await maintenance())?.ok).toBe(true);
  });
});
