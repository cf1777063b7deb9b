import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { type Connection, ScheduleOverlapPolicy } from '@temporalio/client';
import type { NewBatchExport } from '../../exports/rows/batch-exports.ts';
import { scheduledWorkflowId } from '../../exports/rules/workflow-ids.ts';
import { startExportRun } from '../../exports/runs/start-run.ts';
import { repairExportSchedules } from '../../exports/runs/upkeep.ts';
import { cadenceOf, intervalAt, intervalEndingAt, jitterOf, lastComplete } from '../../intervals/index.ts';
import { diagnoseTemporal } from '../../schedules/diagnose.ts';
import { attributesOf, summaryOf } from '../../schedules/exports/export-schedule.ts';
import { readMark, schedulesWithClocks } from '../../schedules/exports/zone-data.ts';
import { startTemporal, type Temporal } from '../../stack/temporal.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { tzif } from '../../values/tzif.ts';
import { ZONE_DATA_VERSION, zoneOf } from '../../values/zones.ts';
import { EXPORT_RUN } from '../../workflows/names.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { exportWorldForFile } from './support.ts';

// A Temporal whose zone data differ from ours: Africa/Casablanca is an hour further east, whatever the season.

const ZONE = 'Africa/Casablanca';
const [HOUR, DAY] = [3_600_000, 86_400_000];
const YEARS = 2;
const NOW = Date.now();
const wrongOffset = zoneOf(ZONE).offsetAt(NOW) + HOUR;
const notices: unknown[] = [];

let temporal: Temporal | undefined;
const database = databaseForFile();
afterAll(() => temporal?.stop());
const world = exportWorldForFile({
  servers: async () => {
    const dataDir = makeDataDir();
    const zones = path.join(dataDir, 'zoneinfo');
    mkdirSync(path.join(zones, 'Africa'), { recursive: true });
    writeFileSync(path.join(zones, ZONE), tzif({ first: wrongOffset, changes: [] }));
    process.env.ZONEINFO = zones;
    try {
      const [port, uiPort] = [await reservePort(), await reservePort()];
      temporal = await startTemporal({ dataDir, cacheDir, port, uiPort });
    } finally {
      delete process.env.ZONEINFO;
    }
    return { url: database.url, pool: database.pool, address: temporal.address, namespace: 'default' };
  },
});

const daily = cadenceOf('day', ZONE, 0);
const inZone = { interval: 'day', timezone: ZONE, interval_offset: 0 } as const;
const create = (given: Partial<NewBatchExport> = {}) => world.create('NoOp', {}, { ...inZone, ...given });
type Row = Awaited<ReturnType<typeof create>>;

/** The schedule that a version without clocks of its own made. */
const makeAsBefore = (row: Row) =>
  world.client.schedule.create({
    scheduleId: row.id,
    spec: { calendars: [{ hour: 0, comment: 'every day' }], timezone: ZONE, jitter: jitterOf(row.id) },
    action: {
      ...{
        type: 'startWorkflow',
        workflowType: EXPORT_RUN,
        workflowId: row.id,
        args: [{ exportId: row.id }],
      },
      taskQueue: world.config.SLUICE_TASK_QUEUE,
      typedSearchAttributes: attributesOf(row),
      staticSummary: summaryOf(row),
    },
    policies: { overlap: ScheduleOverlapPolicy.ALLOW_ALL },
    typedSearchAttributes: attributesOf(row),
  });

/** When the server fires, without the delay of the export. */
async function firings(row: Row, from: number, to: number): Promise<number[]> {
  const seconds = (at: number) => ({ seconds: Math.floor(at / 1000) as never });
  const { startTime } = await (
    world.client.connection as Connection
  ).workflowService.listScheduleMatchingTimes({
    ...{ namespace: 'default', scheduleId: row.id, startTime: seconds(from), endTime: seconds(to) },
  });
  return startTime.map((one) => Math.floor(Number(one.seconds) / 900) * 900_000);
}

const firingTimes = async () => {
  const found = await diagnoseTemporal(world.config);
  return found.find(({ check }) => check === 'firing times');
};
const isListed = (row: Row) => eventually(async () => (await world.schedules.exports.list()).has(row.id));
const work = { signal: new AbortController().signal, beat: () => undefined };
const repair = () =>
  repairExportSchedules(
    {
      pool: world.pool,
      temporal: world.schedules.exports,
      logger: createLogger({ name: 'test', level: 'silent' }),
    },
    work,
  );
const describeOf = ({ id }: Row) => world.client.schedule.getHandle(id).describe();

describe('a Temporal with other zone data', () => {
  test('fires the schedules of an older version at the wrong time: doctor says so, maintenance corrects them', async () => {
    await world.worker.stop();
    const row = await create();
    await makeAsBefore(row);
    await isListed(row);
    expect((await firings(row, NOW, NOW + 30 * DAY)).filter((at) => intervalEndingAt(daily, at))).toEqual([]);
    const next = intervalAt(daily, Date.now()).end;
    expect(await firingTimes()).toEqual({
      ...{ check: 'firing times', ok: false },
      sentence: expect.stringContaining(
        `Of 1 schedules of daily and weekly exports, 1 do not fire when their intervals end: ${row.id}: it fires at `,
      ),
    });
    expect((await firingTimes())?.sentence).toContain(new Date(next).toISOString().replace('.000Z', 'Z'));

    // The list of all schedules shows it too, so that it is corrected at once, however many there are.
    expect((await world.schedules.exports.list()).get(row.id)?.matches(row)).toBe(false);
    expect(await repair()).toBe(1);
    const to = NOW + YEARS * 365 * DAY;
    const fired = await firings(row, NOW, to);
    expect(fired.length).toBeGreaterThan(YEARS * 364);
    expect(fired.filter((at) => !intervalEndingAt(daily, at))).toEqual([]);
    expect(fired.map((at) => (intervalEndingAt(daily, at)?.start ?? 0) > 0)).not.toContain(false);
    expect(await firingTimes()).toMatchObject({ ok: true });
    // And nothing more to do, also by what the list shows.
    await eventually(async () => (await world.schedules.exports.list()).get(row.id)?.matches(row));
    expect(await repair()).toBe(0);
    await world.schedules.exports.sync({ ...row, deleted_at: new Date().toISOString() });
    await world.pool.query('delete from batch_exports');
  });

  test('fires a new schedule when its intervals end', async () => {
    const row = await create();
    await world.schedules.exports.sync(row);
    const fired = await firings(row, NOW, NOW + 400 * DAY);
    expect(fired.filter((at) => !intervalEndingAt(daily, at))).toEqual([]);
    expect(readMark((await describeOf(row)).spec)?.version).toBe(ZONE_DATA_VERSION);
  });
});

describe('the clocks of a schedule', () => {
  const wrong = tzif({ first: wrongOffset, changes: [] });
  /** The schedule of a worker whose zone data have this version. */
  async function madeWith(version: string): Promise<Row> {
    const row = await create();
    await world.schedules.exports.sync(row);
    const { spec } = await describeOf(row);
    const { createHash } = await import('node:crypto');
    const sum = createHash('sha256').update(wrong).digest('hex').slice(0, 8);
    await schedulesWithClocks(world.client, wrong)
      .getHandle(row.id)
      .update((found) => ({
        ...found,
        spec: {
          ...spec,
          calendars: [{ hour: 0, comment: `every day by the time zone data ${version}, clocks ${sum}` }],
        },
      }));
    return row;
  }

  test('are renewed if they come from older zone data, and left alone if they come from newer', async () => {
    const older = await madeWith('2020a');
    expect(await world.schedules.exports.sync(older)).toBe(true);
    expect(readMark((await describeOf(older)).spec)?.version).toBe(ZONE_DATA_VERSION);
    expect(await world.schedules.exports.sync(older)).toBe(false);

    const newer = await madeWith('2999a');
    expect(await world.schedules.exports.sync(newer)).toBe(false);
    await eventually(async () => {
      const listed = (await world.schedules.exports.list()).get(newer.id);
      return listed?.matches(newer);
    });
    // Unless the row has changed.
    expect(await world.schedules.exports.sync({ ...newer, interval_offset: 3_600 })).toBe(true);
    expect(readMark((await describeOf(newer)).spec)?.version).toBe(ZONE_DATA_VERSION);
  });

  test('are given again if somebody took them away or others came in their place', async () => {
    const row = await create();
    await world.schedules.exports.sync(row);
    const keep = world.client.schedule.getHandle(row.id);
    // Whoever edits a schedule with a client that knows no clocks drops them.
    await keep.update((found) => found);
    expect((await describeOf(row)).raw.schedule?.spec?.timezoneData?.length ?? 0).toBe(0);
    expect(await world.schedules.exports.sync(row)).toBe(true);
    expect((await describeOf(row)).raw.schedule?.spec?.timezoneData?.length).toBeGreaterThan(0);
    await schedulesWithClocks(world.client, wrong)
      .getHandle(row.id)
      .update((found) => found);
    expect(await world.schedules.exports.sync(row)).toBe(true);
    expect(await world.schedules.exports.sync(row)).toBe(false);
  });
});

describe('a firing that fits no interval', () => {
  const deps = () => ({ pool: world.pool, temporal: world.schedules.exports });
  const runsOf = async (row: Row) => (await world.runsOf(row)).length;
  const warningsOf = async (row: Row) =>
    (await world.logsOf(row)).filter(({ level }) => level === 'WARNING').map(({ message }) => message);

  test('exports nothing and warns; it is no failure', async () => {
    const worker = await world.startWorker();
    const row = await create({ start_at: '2999-01-01T00:00:00Z' });
    const handle = await makeAsBefore(row);
    const edge = lastComplete(daily, NOW - DAY).end;
    await handle.backfill({
      ...{ start: new Date(edge - 2 * HOUR), end: new Date(edge + HOUR) },
      overlap: ScheduleOverlapPolicy.ALLOW_ALL,
    });
    const fired = new Date(edge - HOUR).toISOString();
    const workflow = world.client.workflow.getHandle(scheduledWorkflowId(row.id, fired));
    await eventually(() =>
      workflow.describe().then(
        () => true,
        () => false,
      ),
    );
    expect(await workflow.result()).toEqual({ runId: null, status: 'Cancelled', records: 0 });
    expect(await runsOf(row)).toBe(0);
    const short = (at: string) => at.replace('.000Z', 'Z');
    expect(await warningsOf(row)).toEqual([
      `The schedule fired at ${short(fired)}, and no interval ends then. The interval in progress ends at ${short(new Date(edge).toISOString())}. Nothing was exported.`,
    ]);
    await handle.delete();
    await worker.stop();
  });

  test('sends a notice, once for each firing', async () => {
    const row = await create();
    const temporal = {
      ...world.schedules.exports,
      startNotice: async (...notice: unknown[]) => void notices.push(notice),
    };
    const nominal = new Date(lastComplete(daily, NOW - DAY).end + HOUR).toISOString();
    await makeAsBefore(row);
    const input = { exportId: row.id, interval: null, backfillId: null, nominal };
    const named = { workflowId: 'fired', workflowRunId: `fired ${row.id}` };
    const webhook = { noticeWebhook: 'https://example.com/' };
    const result = await startExportRun({ ...deps(), temporal, ...webhook }, { ...input, ...named });
    expect(result).toMatchObject({ outcome: 'nothing', runId: null });
    const fired = nominal.replace('.000Z', 'Z');
    expect(notices).toEqual([
      [
        expect.objectContaining({
          ...{ event: 'batch_export.out_of_step', exportId: row.id },
          details: { fired_at: fired, interval_end: expect.any(String) },
        }),
        fired,
      ],
    ]);
    expect(await runsOf(row)).toBe(0);
  });

  test('is no trigger by hand: that exports the last finished interval, also at a whole minute', async () => {
    const row = await create();
    await world.schedules.exports.sync(row);
    const { end } = lastComplete(daily, NOW);
    const at = async (nominal: number) => {
      const started = await startExportRun(deps(), {
        ...{ exportId: row.id, interval: null, backfillId: null, nominal: new Date(nominal).toISOString() },
        ...{ workflowId: `hand-${nominal}`, workflowRunId: `hand-${nominal}-${row.id}` },
      });
      await world.pool.query('delete from batch_export_runs where batch_export_id = $1', [row.id]);
      return started;
    };
    const last = { outcome: 'started', interval: { end: new Date(end).toISOString() } };
    expect(await at(end + HOUR + 17_000)).toMatchObject(last);
    // A whole minute after the schedule was made, at which it does not fire.
    const later = Math.ceil((Date.now() + 1_000) / 60_000) * 60_000 + 7 * 60_000;
    if (!intervalEndingAt(daily, later)) {
      expect(await at(later)).toMatchObject({ outcome: 'started' });
    }
    // Before that, the schedule may have been another one.
    expect(await at(end - DAY + HOUR)).toMatchObject({ outcome: 'nothing', runId: null });
  });
});
