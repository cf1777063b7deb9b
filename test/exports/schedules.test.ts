import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  type Client,
  type Connection,
  type ScheduleDescription,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import type { TypedSearchAttributes } from '@temporalio/common';
import { loadConfig } from '../../config.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { scheduledWorkflowId } from '../../exports/rules/workflow-ids.ts';
import { jitterOf } from '../../intervals/index.ts';
import { summaryOf } from '../../schedules/exports/export-schedule.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { searchAttributes } from '../../workflows/names.ts';
import { eventually } from '../support/eventually.ts';
import { allocateNamespace, connectTo } from '../support/temporal.ts';

let schedules: Schedules;
let client: Client;
let namespace: string;

beforeAll(async () => {
  const allocated = allocateNamespace();
  namespace = allocated.namespace;
  const config = loadConfig({ TEMPORAL_ADDRESS: allocated.address, TEMPORAL_NAMESPACE: namespace });
  schedules = createSchedules(config, createLogger({ name: 'test', level: 'silent' }));
  client = await connectTo(allocated);
  await schedules.ensure();
});
afterAll(async () => {
  await client?.connection.close();
  await schedules?.close();
});

const rowOf = (given: Partial<BatchExportRow> = {}): BatchExportRow => ({
  project_id: 7,
  id: randomUUID(),
  name: 'Lake',
  model: 'events',
  destination_type: 'S3',
  config: {},
  folder: null,
  secrets: null,
  interval: 'hour',
  timezone: 'UTC',
  interval_offset: 0,
  paused: false,
  start_at: null,
  end_at: null,
  last_paused_at: null,
  hogql_query: null,
  schema: null,
  filters: null,
  asks_cohorts: [],
  write_store: null,
  write_target: null,
  created_at: '2026-01-01T00:00:00Z',
  last_updated_at: '2026-01-01T00:00:00Z',
  deleted_at: null,
  scheduled_from: '2026-01-01T00:00:00Z',
  seam_at: null,
  ...given,
});

const describeOf = ({ id }: BatchExportRow) => client.schedule.getHandle(id).describe();
const changedAt = (one: ScheduleDescription) => (one.info.lastUpdatedAt ?? one.info.createdAt).getTime();
const seconds = (instant: number) => ({ seconds: Math.floor(instant / 1000) as unknown as Long });
type Long = import('long').default;

/** When the real Temporal fires the schedule. */
async function firings(row: BatchExportRow, from: string, to: string): Promise<string[]> {
  const { startTime } = await (client.connection as Connection).workflowService.listScheduleMatchingTimes({
    namespace,
    scheduleId: row.id,
    startTime: seconds(Date.parse(from)),
    endTime: seconds(Date.parse(to)),
  });
  // With the export's jitter added.
  return startTime.map((one) => new Date(Math.floor(Number(one.seconds) / 60) * 60_000).toISOString());
}

describe('the schedule of an export', () => {
  test('says everything about the export that the UI needs, and nothing else', async () => {
    const row = rowOf({ interval: 'every 5 minutes' });
    await schedules.exports.sync(row);
    const made = await describeOf(row);
    expect(made.spec.intervals).toEqual([{ every: 300_000, offset: 0 }]);
    expect(made.spec.jitter).toBe(jitterOf(row.id));
    expect(made.policies).toMatchObject({
      overlap: ScheduleOverlapPolicy.ALLOW_ALL,
      catchupWindow: 365 * 86_400_000,
    });
    expect(made.action).toMatchObject({
      workflowType: 'exportRun',
      workflowId: row.id,
      args: [{ exportId: row.id }],
      staticSummary: 'Batch export events every 5 minutes to S3: Lake',
    });
    const ofAction = made.action.typedSearchAttributes as TypedSearchAttributes;
    for (const attributes of [made.typedSearchAttributes, ofAction]) {
      expect(attributes.get(searchAttributes.kind)).toBe('export');
      expect(attributes.get(searchAttributes.project)).toBe(7);
      expect(attributes.get(searchAttributes.export)).toBe(row.id);
      expect(attributes.get(searchAttributes.destination)).toBe('S3');
    }
    expect(made.state).toMatchObject({
      ...{ paused: false },
      note: 'Batch export events every 5 minutes to S3: Lake. Kept by Sluice: changes made here are undone.',
    });
  });

  test('names it without Markdown, and cuts a long name between two characters', () => {
    const named = (name: string) => summaryOf(rowOf({ name }));
    const about = 'Batch export events every hour to S3: ';
    expect(named('Lake_2 (prod) #1')).toBe(`${about}Lake_2 (prod) #1`);
    expect(named('a **b** [c](http://d) <i>`f`\n![g]')).toBe(`${about}a b c (http d) i f ! g`);
    const long = named('🎉'.repeat(100));
    expect(Buffer.byteLength(long)).toBeLessThanOrEqual(200);
    expect(long).toBe(`${about}${'🎉'.repeat(40)}`);
  });

  test.each<[string, Partial<BatchExportRow>]>([
    ['every 15 minutes', { interval: 'every 15 minutes' }],
    ['hourly, bounded', { start_at: '2026-01-01T12:30:00Z', end_at: '2036-01-01T12:00:00.500000Z' }],
    ['daily in a zone', { interval: 'day', timezone: 'Europe/Berlin', interval_offset: 7200 }],
    ['weekly in a zone', { interval: 'week', timezone: 'America/New_York', interval_offset: 86_400 + 7200 }],
    ['paused', { paused: true, last_paused_at: '2026-03-01T00:00:00Z' }],
  ])('that is right is left alone: %s', async (_name, given) => {
    const row = rowOf(given);
    await schedules.exports.sync(row);
    const before = await describeOf(row);
    await schedules.exports.sync(row);
    const after = await describeOf(row);
    expect(changedAt(after)).toBe(changedAt(before));
    expect(after.info.lastUpdatedAt).toEqual(before.info.lastUpdatedAt);
    expect(after.state.paused).toBe(row.paused);
  });

  test('follows the row', async () => {
    const row = rowOf();
    await schedules.exports.sync(row);
    const changes: [Partial<BatchExportRow>, (found: ScheduleDescription) => unknown, unknown][] = [
      [
        { interval: 'day', interval_offset: 3 * 3600 },
        (one) => one.spec.calendars?.[0]?.hour,
        [{ start: 3, end: 3, step: 1 }],
      ],
      [{ timezone: 'Asia/Tokyo' }, (one) => one.spec.timezone, 'Asia/Tokyo'],
      [
        { interval: 'every 15 minutes', interval_offset: 0 },
        (one) => one.spec.intervals?.[0]?.every,
        900_000,
      ],
      [{ start_at: '2030-01-01T00:00:00Z' }, (one) => one.spec.startAt, new Date('2030-01-01')],
      [{ end_at: '2031-01-01T00:00:00Z' }, (one) => one.spec.endAt, new Date('2031-01-01')],
      [{ start_at: null, end_at: null }, (one) => one.spec.startAt ?? one.spec.endAt, undefined],
      [
        { destination_type: 'File' },
        (one) => one.typedSearchAttributes.get(searchAttributes.destination),
        'File',
      ],
      [
        { model: 'persons' },
        (one) => one.action.staticSummary,
        'Batch export persons every 15 minutes to File: Lake',
      ],
      [{ paused: true }, (one) => one.state.paused, true],
      [{ paused: false }, (one) => one.state.paused, false],
    ];
    let at = row;
    for (const [change, read, expected] of changes) {
      at = { ...at, ...change };
      await schedules.exports.sync(at);
      // The server writes search attributes a moment later.
      await eventually(async () => JSON.stringify(read(await describeOf(at))) === JSON.stringify(expected));
    }
  });

  test('is mended when somebody changed it', async () => {
    const row = rowOf();
    await schedules.exports.sync(row);
    const handle = client.schedule.getHandle(row.id);
    await handle.pause('by hand');
    await schedules.exports.sync(row);
    expect((await describeOf(row)).state).toMatchObject({ paused: false });
    await handle.update((found) => ({
      ...found,
      spec: { intervals: [{ every: '7 minutes' }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP },
      state: { paused: false, remainingActions: 3 },
    }));
    await schedules.exports.sync(row);
    const mended = await describeOf(row);
    expect(mended.spec.intervals).toEqual([{ every: 3_600_000, offset: 0 }]);
    expect(mended.policies.overlap).toBe(ScheduleOverlapPolicy.ALLOW_ALL);
    expect(mended.state.remainingActions).toBeUndefined();
    await handle.delete();
    await schedules.exports.sync(row);
    expect((await describeOf(row)).spec.intervals).toEqual([{ every: 3_600_000, offset: 0 }]);
  });

  test('made by several at once is one', async () => {
    const row = rowOf();
    await Promise.all([1, 2, 3, 4].map(() => schedules.exports.sync(row)));
    expect((await describeOf(row)).action.workflowId).toBe(row.id);
  });

  test('goes with the export, however often', async () => {
    const row = rowOf();
    await schedules.exports.sync(row);
    await schedules.exports.sync({ ...row, deleted_at: '2026-03-01T00:00:00Z' });
    await expect(describeOf(row)).rejects.toThrow(ScheduleNotFoundError);
    await schedules.exports.remove(row.id);
    await schedules.exports.sync({ ...row, deleted_at: '2026-03-01T00:00:00Z' });
    await expect(describeOf(row)).rejects.toThrow(ScheduleNotFoundError);
  });

  test('fires within start_at and end_at: an end in the middle of an interval is after its last run', async () => {
    const row = rowOf({ start_at: '2027-01-01T12:30:00Z', end_at: '2027-01-01T15:30:00Z' });
    await schedules.exports.sync(row);
    expect(await firings(row, '2027-01-01T00:00:00Z', '2027-01-02T00:00:00Z')).toEqual(
      ['13', '14', '15'].map((hour) => `2027-01-01T${hour}:00:00.000Z`),
    );
    const exact = { ...row, start_at: '2027-01-01T13:00:00Z', end_at: '2027-01-01T15:00:00Z' };
    await schedules.exports.sync(exact);
    expect(await firings(exact, '2027-01-01T00:00:00Z', '2027-01-02T00:00:00Z')).toEqual(
      ['13', '14', '15'].map((hour) => `2027-01-01T${hour}:00:00.000Z`),
    );
  });

  test("its runs are known by the ends of their intervals, whatever the export's jitter", async () => {
    const row = rowOf();
    await schedules.exports.sync(row);
    await client.schedule.getHandle(row.id).backfill({
      start: new Date('2026-01-01T12:30:00Z'),
      end: new Date('2026-01-01T13:30:00Z'),
      overlap: ScheduleOverlapPolicy.ALLOW_ALL,
    });
    const fateAt = (end: string) => schedules.exports.fateOfScheduledRun(row.id, end);
    await eventually(async () => (await fateAt('2026-01-01T13:00:00.000Z')) === 'running');
    expect(await fateAt('2026-01-01T12:00:00.000Z')).toBe('unknown');
    await client.workflow.getHandle(scheduledWorkflowId(row.id, '2026-01-01T13:00:00Z')).terminate();
  });
});

describe('a run', () => {
  const interval = { start: '2026-01-01T12:00:00Z', end: '2026-01-01T13:00:00Z' };

  test('is started, found by its attributes, seen under way, and cancelled', async () => {
    const row = rowOf();
    const started = await schedules.exports.startRun(row, interval, 'hand');
    expect(started.workflowId).toMatch(new RegExp(`^${row.id}-run-`));
    const run = { workflow_id: started.workflowId, workflow_run_id: started.workflowRunId };
    const found = await eventually(async () => {
      const query = `SluiceExport = '${row.id}' and SluiceIntervalEnd > '2026-01-01T12:59:00Z'`;
      for await (const one of client.workflow.list({ query })) return one;
      return undefined;
    });
    expect(found.runId).toBe(started.workflowRunId);
    expect(await schedules.exports.fateOfRun(run)).toBe('running');
    await schedules.exports.cancelRun(run);
    const history = await client.workflow.getHandle(started.workflowId).fetchHistory();
    expect(history.events?.some((event) => event.workflowExecutionCancelRequestedEventAttributes)).toBe(true);
    await client.workflow.getHandle(started.workflowId).terminate();
    expect(await schedules.exports.fateOfRun(run)).toBe('terminated');
    await schedules.exports.cancelRun(run);
  });

  test('that nobody knows is not under way, and cancelling it is fine', async () => {
    const run = { workflow_id: randomUUID(), workflow_run_id: randomUUID() };
    expect(await schedules.exports.fateOfRun(run)).toBe('unknown');
    await schedules.exports.cancelRun(run);
  });

  test('has a page in the Temporal UI', () => {
    expect(schedules.exports.runUrl({ workflow_id: 'a-2026-01-01T13:00:00Z', workflow_run_id: 'b' })).toBe(
      `http://localhost:8233/namespaces/${namespace}/workflows/a-2026-01-01T13%3A00%3A00Z/b`,
    );
  });
});
