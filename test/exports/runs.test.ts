import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { uuidv7 } from '../../db/uuid.ts';
import { deleteBatchExport } from '../../exports/rows/batch-exports.ts';
import { startRun } from '../../exports/rows/runs.ts';
import { searchAttributes } from '../../workflows/names.ts';
import { eventually } from '../support/eventually.ts';
import {
  exportedUuids,
  exportWorldForFile,
  FIRST,
  filesIn,
  fillHour,
  HOUR,
  hour,
  hourly,
} from './support.ts';

const world = exportWorldForFile({ rhythm: { pause: () => 300 } });
const folderOf = (name: string) => path.join(world.root, name);

describe('a run', () => {
  test('exports its interval, and its row, log and workflow say so', async () => {
    const uuids = await fillHour(world.pool, 0, 500);
    await fillHour(world.pool, 1, 10);
    await fillHour(world.pool, 0, 10, 2);
    const row = await world.create('File', { directory: 'whole', compression: 'zstd' });
    const { result, run, handle } = await world.run(row, hourly(0));
    expect(result).toEqual({ runId: run.id, status: 'Completed', records: 500 });
    expect(exportedUuids(folderOf('whole'))).toEqual([...uuids].sort());
    expect(run).toMatchObject({
      status: 'Completed',
      workflow_id: handle.workflowId,
      data_interval_start: '2026-03-02T00:00:00Z',
      data_interval_end: '2026-03-02T01:00:00Z',
      records_completed: 500,
      records_total_count: 500,
      records_failed: 0,
      manifest_key: '2026-03-02T00:00:00+00:00-2026-03-02T01:00:00+00:00_manifest.json',
      latest_error: null,
    });
    expect(run.bytes_exported).toBeGreaterThan(100);
    expect(run.content_hash).toMatch(/^[0-9a-f]{16}$/);
    expect((await world.logsOf(row)).map(({ level, message }) => [level, message])).toEqual([
      [
        'INFO',
        'Starting batch export of events to File for range 2026-03-02T00:00:00Z - 2026-03-02T01:00:00Z',
      ],
      ['INFO', `Batch export finished successfully with 500 records (${run.bytes_exported} bytes)`],
    ]);
    const described = await handle.describe();
    expect(described.typedSearchAttributes.get(searchAttributes.runStatus)).toBe('Completed');
    expect(described.typedSearchAttributes.get(searchAttributes.intervalEnd)).toEqual(new Date(hour(1)));
    expect(described.typedSearchAttributes.get(searchAttributes.export)).toBe(row.id);
    expect(await described.staticSummary()).toBe('Batch export events every hour to File: Lake');
    // A worker that is gone is missed soon, and whoever goes on does not wait long, however many attempts there were.
    const { events } = await handle.fetchHistory();
    const carrying = events?.map((event) => event.activityTaskScheduledEventAttributes);
    expect(carrying?.find((one) => one?.activityType?.name === 'exportInterval')).toMatchObject({
      heartbeatTimeout: { seconds: expect.objectContaining({ low: 15 }) },
      retryPolicy: { maximumInterval: { seconds: expect.objectContaining({ low: 30 }) } },
    });
  });

  test('of an empty interval writes an empty manifest, in few steps', async () => {
    const row = await world.create('File', { directory: 'empty' });
    const { result, run, handle } = await world.run(row, hourly(30));
    expect(result).toMatchObject({ status: 'Completed', records: 0 });
    expect(run).toMatchObject({ records_completed: 0, records_total_count: 0, bytes_exported: 0 });
    expect(filesIn(folderOf('empty'))).toEqual([
      '2026-03-03T06:00:00+00:00-2026-03-03T07:00:00+00:00_manifest.json',
    ]);
    expect((await world.logsOf(row)).at(-1)?.message).toMatch(/no data in this interval/);
    const { events } = await handle.fetchHistory();
    expect(events?.length).toBeLessThanOrEqual(24);
  });

  test('done again leaves one copy', async () => {
    const uuids = await fillHour(world.pool, 2, 300);
    const row = await world.create('File', { directory: 'again' });
    const first = await world.run(row, hourly(2));
    const second = await world.run(row, hourly(2));
    expect(second.run.id).not.toBe(first.run.id);
    expect(second.run.content_hash).toBe(first.run.content_hash);
    expect(exportedUuids(folderOf('again'))).toEqual([...uuids].sort());
    expect(filesIn(folderOf('again'))).toHaveLength(2);
  });

  test('from the beginning has everything up to its end', async () => {
    const row = await world.create('File', { directory: 'beginning' });
    const { run } = await world.run(row, { start: null, end: hour(2) });
    expect(run.data_interval_start).toBeNull();
    expect(run.records_completed).toBe(510);
  });

  test('of persons, sessions and rows', async () => {
    await fillHour(world.pool, 6, 40);
    const sessions = await world.create('File', { directory: 'sessions' }, { model: 'sessions' });
    expect((await world.run(sessions, hourly(6))).result.status).toBe('Completed');
    const persons = await world.create('File', { directory: 'persons' }, { model: 'persons' });
    expect((await world.run(persons, hourly(6))).result.status).toBe('Completed');
    const rows = await world.create('NoOp', {});
    expect((await world.run(rows, hourly(6))).run).toMatchObject({
      records_completed: 40,
      records_total_count: 40,
      content_hash: null,
    });
  });

  test('has what filters and names of events leave', async () => {
    await fillHour(world.pool, 7, 40);
    const row = await world.create(
      'File',
      { directory: 'filtered', include_events: ['bought'] },
      { filters: [{ type: 'event', key: 'n', operator: 'lt', value: 10 }] },
    );
    expect((await world.run(row, hourly(7))).result.records).toBe(5);
  });
});

describe('what cannot be run', () => {
  test('ends as failed, with what to do about it', async () => {
    const row = await world.create('S3', { bucket_name: 'lake', region: 'eu-west-1', prefix: 'x' });
    const { result, run, handle } = await world.run(row, hourly(0));
    expect(result).toEqual({ runId: run.id, status: 'Failed', records: 0 });
    expect(run.latest_error).toMatch(/aws_access_key_id/);
    const last = (await world.logsOf(row)).at(-1);
    expect(last?.level).toBe('ERROR');
    expect(last?.message).toContain(run.latest_error as string);
    const { typedSearchAttributes } = await handle.describe();
    expect(typedSearchAttributes.get(searchAttributes.runStatus)).toBe('Failed');
  });

  test('filters that are wrong are the operator’s', async () => {
    const row = await world.create(
      'File',
      { directory: 'wrong' },
      { filters: [{ type: 'hogql', key: 'no_such_function(1)' }] },
    );
    const { run } = await world.run(row, hourly(0));
    expect(run.status).toBe('Failed');
    expect(run.latest_error).toMatch(/One or more provided filters are invalid/);
    expect(filesIn(folderOf('wrong'))).toEqual([]);
  });

  test('an export that is deleted is not run, and has no run', async () => {
    const row = await world.create('File', { directory: 'deleted' });
    await deleteBatchExport(world.pool, { projectId: 1, exportId: row.id });
    const handle = await world.start(row, hourly(0));
    expect(await handle.result()).toEqual({ runId: null, status: 'Cancelled', records: 0 });
    expect(await world.runsOf(row)).toEqual([]);
  });
});

describe('two at once', () => {
  test('one waits for the other', async () => {
    const row = await world.create('File', { directory: 'both' });
    const results = await Promise.all([1, 2, 3].map(() => world.run(row, hourly(2))));
    expect(results.map(({ result }) => result.status)).toEqual(['Completed', 'Completed', 'Completed']);
    const runs = await world.runsOf(row);
    expect(runs).toHaveLength(3);
    for (const [index, run] of runs.slice(1).entries()) {
      expect(Date.parse(run.created_at)).toBeGreaterThanOrEqual(
        Date.parse(runs[index]?.finished_at as string),
      );
    }
  });

  test('a run whose workflow was ended from outside is nobody’s', async () => {
    const row = await world.create('File', { directory: 'orphan' });
    const key = { projectId: 1, exportId: row.id };
    const orphan = await startRun(world.pool, {
      ...key,
      ...hourly(2),
      workflowId: 'nobody',
      workflowRunId: uuidv7(),
    });
    const { run } = await world.run(row, hourly(2));
    expect(run.status).toBe('Completed');
    const [before] = await world.runsOf(row);
    expect(before).toMatchObject({ id: orphan.run.id, status: 'Terminated' });
  });
});

describe('the schedule', () => {
  test('runs each interval once, whatever it has to catch up with and however often it is asked', async () => {
    await fillHour(world.pool, 110, 20);
    const row = await world.create('File', { directory: 'caught-up' });
    await world.schedules.exports.sync(row);
    const handle = world.client.schedule.getHandle(row.id);
    const missed = {
      start: new Date(FIRST + 108 * HOUR),
      // The jitter counts.
      end: new Date(FIRST + 112 * HOUR + 60_000),
      overlap: ScheduleOverlapPolicy.ALLOW_ALL,
    };
    const completed = async (n: number) => {
      const runs = await world.runsOf(row);
      return runs.length >= n && runs.every((run) => run.status === 'Completed') && runs;
    };
    await handle.backfill(missed);
    const runs = await eventually(() => completed(5));
    await handle.backfill(missed);
    await handle.trigger(ScheduleOverlapPolicy.ALLOW_ALL);
    const hours = [108, 109, 110, 111, 112].map((n) =>
      new Date(FIRST + n * HOUR).toISOString().replace('.000', ''),
    );
    expect(runs.map((run) => run.data_interval_end).sort()).toEqual(hours);
    for (const run of runs) {
      expect(run.workflow_id).toBe(`${row.id}-${run.data_interval_end}`);
      expect(Date.parse(run.data_interval_end) - Date.parse(run.data_interval_start as string)).toBe(HOUR);
    }
    // The trigger is "now": the last complete hour. The others are there already.
    const all = await eventually(() => completed(6));
    const now = all.find((run) => !hours.includes(run.data_interval_end));
    expect(Date.parse(now?.data_interval_end as string) % HOUR).toBe(0);
    expect(Date.now() - Date.parse(now?.data_interval_end as string)).toBeLessThan(HOUR + 60_000);
    await eventually(async () => {
      const { runningActions } = (await handle.describe()).info;
      return runningActions.length === 0;
    });
    expect(await world.runsOf(row)).toHaveLength(6);
    expect(exportedUuids(folderOf('caught-up'))).toHaveLength(20);
    await world.schedules.exports.remove(row.id);
  });
});
