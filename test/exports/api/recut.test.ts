import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { lockBatchExport } from '../../../exports/rows/batch-exports.ts';
import { beginAttempt, completeRun, startRun } from '../../../exports/rows/runs.ts';
import { startExportRun } from '../../../exports/runs/start-run.ts';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { insertEvents } from '../../support/rows.ts';
import { apiAndWorkerForFile } from '../../support/worker.ts';
import { exportedUuids } from '../support.ts';

const root = mkdtempSync(path.join(tmpdir(), 'sluice-recut-'));
const { api } = apiAndWorkerForFile({
  ...{ SLUICE_EXPORT_ROOT: root, SLUICE_SHUTDOWN_SECONDS: '1', SLUICE_EXPORT_REPAIR: 'false' },
});
afterAll(() => rmSync(root, { recursive: true, force: true }));
const HOUR = 3_600_000;
const thisHour = Math.floor(Date.now() / HOUR) * HOUR;
const iso = (milliseconds: number) => new Date(milliseconds).toISOString();
const utc = (milliseconds: number) => iso(milliseconds).replace('.000Z', 'Z');
const utcHour = (milliseconds: number) => new Date(milliseconds).getUTCHours();
/** Where what is exported of the past ends. It is an hour later when the clock passes an hour while the tests run. */
const lastHourThatEnded = expect.stringMatching(`^(${utc(thisHour)}|${utc(thisHour + HOUR)})$`);
let anna: Tenant;
let exports: string;
let events = 0;

async function ask(method: string, url: string, body?: object) {
  const answer = await api.request(anna, method, url, body);
  return { status: answer.statusCode, body: answer.json() };
}

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  exports = `/api/projects/${anna.projectId}/batch_exports/`;
  // Four an hour, in the last four hours that are over.
  const made = Array.from({ length: 16 }, (_, index) => ({
    ...{ project_id: anna.projectId, event: 'hello' },
    timestamp: iso(thisHour - 4 * HOUR + index * 15 * 60_000),
  }));
  events = made.length;
  await insertEvents(api.pool, made);
});

/** An export that has been there for days. Its schedule is of the test: it fires when the test says so. */
async function lake(directory: string, fields: object) {
  const destination = { type: 'File', config: { directory } };
  const { body } = await ask('POST', exports, { name: directory, destination, ...fields });
  await api.pool.query('update batch_exports set created_at = $2, scheduled_from = $2 where id = $1', [
    body.id,
    iso(thisHour - 48 * HOUR),
  ]);
  return { id: body.id as string, url: `${exports}${body.id}/` };
}

async function yesterdayIsDone(exportId: string, end: number): Promise<void> {
  const { run } = await startRun(api.pool, {
    ...{ projectId: anna.projectId, exportId, start: iso(end - 24 * HOUR), end: iso(end) },
    ...{ workflowId: 'yesterday', workflowRunId: `yesterday ${exportId}` },
  });
  const key = { projectId: anna.projectId, runId: run.id };
  const begun = await beginAttempt(api.pool, key);
  await completeRun(api.pool, key, begun?.fence as number, {});
}

const ended = (url: string) =>
  eventually(async () => {
    const { body } = await ask('GET', `${url}backfills/`);
    const [first] = body.results;
    return body.results.every((one: { status: string }) => one.status === 'Completed') && first;
  });
const seamOf = async (id: string) =>
  (await api.pool.query('select seam_at, scheduled_from from batch_exports where id = $1', [id])).rows[0];
/** Each of the events as often as it is there. */
const copies = (directory: string) => {
  const uuids = exportedUuids(path.join(root, '@projects', String(anna.projectId), directory));
  return [uuids.length, new Set(uuids).size];
};

describe('an export that is cut into other intervals exports everything once', () => {
  test('from hours to days: the next day begins where the last exported hour ended', async () => {
    const { id, url } = await lake('longer', { interval: 'hour' });
    const range = { start_at: iso(thisHour - 4 * HOUR), end_at: iso(thisHour - HOUR) };
    expect((await ask('POST', `${url}backfills/`, range)).status).toBe(201);
    await ended(url);
    expect(copies('longer')).toEqual([12, 12]);

    // A day ends at this hour; the last hour before was not exported yet.
    const change = { interval: 'day', offset_hour: utcHour(thisHour) };
    expect((await ask('PATCH', url, change)).status).toBe(200);
    expect(await seamOf(id)).toEqual({
      seam_at: utc(thisHour - HOUR),
      scheduled_from: utc(thisHour - HOUR),
    });
    await ended(url);
    expect(copies('longer')).toEqual([events, events]);
    // And once more, as the schedule and whoever is impatient do it.
    const { body } = await ask('POST', `${url}run/`, { partial: false });
    expect(body).toMatchObject({
      data_interval_start: utc(thisHour - HOUR),
      data_interval_end: utc(thisHour),
    });
    await eventually(async () => {
      const runs = (await ask('GET', `${url}runs/?status=Completed`)).body.results;
      return runs.some((one: { workflow_id: string }) => one.workflow_id === body.workflow_id);
    });
    expect(copies('longer')).toEqual([events, events]);
    const after = `after=${iso(thisHour - 30 * HOUR)}&before=${iso(thisHour)}`;
    const map = (await ask('GET', `${url}intervals/?${after}`)).body.results;
    expect(map.map((one: { state: string }) => one.state)).toEqual(['excluded', 'done']);
  });

  test('from days to hours: the hours of the day that was under way are exported', async () => {
    const { id, url } = await lake('shorter', { interval: 'day', offset_hour: utcHour(thisHour - 3 * HOUR) });
    const dayEnd = thisHour - 3 * HOUR;
    await yesterdayIsDone(id, dayEnd);
    expect((await ask('PATCH', url, { interval: 'hour' })).status).toBe(200);
    expect(await seamOf(id)).toEqual({ seam_at: utc(dayEnd), scheduled_from: utc(dayEnd) });
    expect(await ended(url)).toMatchObject({ start_at: utc(dayEnd), end_at: lastHourThatEnded });
    expect(copies('shorter')).toEqual([12, 12]);
  });

  test('after a part of the interval was exported, from where that ends', async () => {
    const { id, url } = await lake('part', { interval: 'day', offset_hour: utcHour(thisHour - 3 * HOUR) });
    await yesterdayIsDone(id, thisHour - 3 * HOUR);
    const { body } = await ask('POST', `${url}run/`, { partial: true });
    const part = await eventually(async () => {
      const { results } = (await ask('GET', `${url}runs/`)).body;
      const found = results.find((one: { workflow_id: string }) => one.workflow_id === body.workflow_id);
      return found?.status === 'Completed' && found;
    });
    expect(part.records_completed).toBe(12);
    expect((await ask('PATCH', url, { interval: 'hour' })).status).toBe(200);
    expect(Date.parse((await seamOf(id)).seam_at)).toBe(Date.parse(body.data_interval_end));
    expect((await ask('GET', `${url}backfills/`)).body.results).toEqual([]);
    expect(copies('part')).toEqual([12, 12]);
  });

  test('not while a part is on its way, or is there and what comes before it is not', async () => {
    const { id, url } = await lake('gap', { interval: 'day', offset_hour: utcHour(thisHour - 3 * HOUR) });
    const refusal = async () => {
      const { status, body } = await ask('PATCH', url, { interval: 'hour' });
      return [status, body.attr, body.detail];
    };
    const cannot = 'The intervals of a batch export cannot be changed now. A part of the current interval';
    const part = await startRun(api.pool, {
      ...{ projectId: anna.projectId, exportId: id, workflowId: 'part', workflowRunId: `part ${id}` },
      ...{ start: iso(thisHour - 3 * HOUR), end: iso(thisHour - HOUR + 1_234) },
    });
    expect(await refusal()).toEqual([
      ...[400, 'interval', `${cannot} is being exported. Wait for its run, or cancel it.`],
    ]);
    const key = { projectId: anna.projectId, runId: part.run.id };
    const begun = await beginAttempt(api.pool, key);
    await completeRun(api.pool, key, begun?.fence as number, { manifest_key: 'somewhere' });
    expect(await refusal()).toEqual([
      ...[400, 'interval'],
      `${cannot} is exported, but the interval before it is not. Retry that one, or wait for it.`,
    ]);
    await yesterdayIsDone(id, thisHour - 3 * HOUR);
    expect((await ask('PATCH', url, { interval: 'hour' })).status).toBe(200);
    expect(Date.parse((await seamOf(id)).seam_at)).toBe(thisHour - HOUR + 1_234);
  });

  test('while it is paused: whoever ends the pause with a backfill gets what was left', async () => {
    const { id, url } = await lake('paused', { interval: 'day', offset_hour: utcHour(thisHour - 3 * HOUR) });
    await yesterdayIsDone(id, thisHour - 3 * HOUR);
    await ask('POST', `${url}pause/`);
    expect((await ask('PATCH', url, { interval: 'hour' })).status).toBe(200);
    expect((await ask('GET', `${url}backfills/`)).body.results).toEqual([]);
    await ask('POST', `${url}unpause/`, { backfill: true });
    const expected = { start_at: utc(thisHour - 3 * HOUR), end_at: lastHourThatEnded };
    expect(await ended(url)).toMatchObject(expected);
    expect(copies('paused')).toEqual([12, 12]);
  });

  test('one that exported nothing yet is as if it had been made so', async () => {
    const { body } = await ask('POST', exports, {
      ...{ name: 'new', interval: 'hour', destination: { type: 'NoOp', config: {} } },
    });
    const before = await seamOf(body.id);
    expect((await ask('PATCH', `${exports}${body.id}/`, { interval: 'day' })).status).toBe(200);
    expect(await seamOf(body.id)).toEqual({ ...before, seam_at: null });
  });
});

test('a schedule that fired before the change exports nothing that another interval has', async () => {
  const { id, url } = await lake('fired', { interval: 'hour' });
  await ask('POST', `${url}backfills/`, {
    ...{ start_at: iso(thisHour - 2 * HOUR), end_at: iso(thisHour - HOUR) },
  });
  await ended(url);
  await ask('PATCH', url, { interval: 'day', offset_hour: utcHour(thisHour + HOUR) });
  const deps = { pool: api.pool, temporal: api.schedules.exports };
  const fired = await startExportRun(deps, {
    ...{ exportId: id, interval: null, backfillId: null, nominal: iso(thisHour) },
    ...{ workflowId: `${id}-late`, workflowRunId: `${id}-late` },
  });
  expect(fired).toMatchObject({
    outcome: 'nothing',
    reason: 'The intervals of the batch export have changed since',
  });
  expect(copies('fired')).toEqual([4, 4]);
});

test('a schedule that fires during the change waits for what comes of it', async () => {
  const { id } = await lake('firing', { interval: 'hour' });
  const client = await api.pool.connect();
  try {
    await client.query('begin');
    const row = await lockBatchExport(client, { projectId: anna.projectId, exportId: id });
    expect(row?.interval).toBe('hour');
    const deps = { pool: api.pool, temporal: api.schedules.exports };
    const firing = startExportRun(deps, {
      ...{ exportId: id, interval: null, backfillId: null, nominal: iso(thisHour) },
      ...{ workflowId: `${id}-firing`, workflowRunId: `${id}-firing` },
    });
    await eventually(async () => {
      const { rows } = await api.pool.query(
        `select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%batch_exports%for key share'`,
      );
      return rows.length === 1;
    });
    await client.query(`update batch_exports set interval = 'day', seam_at = $2 where id = $1`, [
      id,
      iso(thisHour + HOUR),
    ]);
    await client.query('commit');
    expect(await firing).toMatchObject({
      ...{ outcome: 'nothing', reason: 'The intervals of the batch export have changed since' },
    });
  } finally {
    // Also out of the transaction, if it failed.
    client.release(true);
  }
});

test('intervals stay what they are while a backfill goes through them', async () => {
  const { id, url } = await lake('busy', { interval: 'hour' });
  await api.pool.query(
    `insert into batch_export_backfills (project_id, id, batch_export_id, workflow_id, status, start_at, end_at)
     values ($1, gen_random_uuid(), $2, 'busy', 'Running', now() - interval '2 days', now() - interval '1 day')`,
    [anna.projectId, id],
  );
  const { status, body } = await ask('PATCH', url, { interval: 'day' });
  expect([status, body.attr, body.detail]).toEqual([
    400,
    'interval',
    'The intervals of a batch export cannot be changed while one of its backfills is in progress. Wait for the backfill, or cancel it.',
  ]);
  expect((await ask('PATCH', url, { name: 'Pond' })).status).toBe(200);
});
