import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { refusals } from '../../support/refusals.ts';
import { insertEvents } from '../../support/rows.ts';
import { apiAndWorkerForFile } from '../../support/worker.ts';
import { uuidsOf } from '../support.ts';

const root = mkdtempSync(path.join(tmpdir(), 'sluice-live-'));
const settings = { SLUICE_EXPORT_ROOT: root, SLUICE_SHUTDOWN_SECONDS: '1' };
const { api, stopWorker, startWorker } = apiAndWorkerForFile(settings);
afterAll(() => rmSync(root, { recursive: true, force: true }));
const HOUR = 3_600_000;
const first = Math.floor(Date.now() / HOUR) * HOUR - 3 * HOUR;
const iso = (milliseconds: number) => new Date(milliseconds).toISOString();
const utc = (milliseconds: number) => iso(milliseconds).replace('.000Z', 'Z');
let anna: Tenant;
let exports: string;

async function ask(method: string, url: string, body?: object) {
  const answer = await api.request(anna, method, url, body);
  return { status: answer.statusCode, body: answer.json() };
}

/** Verifies, and asks again while the verification takes longer than a request waits. */
const verify = (url: string, of?: object) =>
  eventually(async () => {
    const answer = await ask('POST', `${url}verify/`, of);
    return answer.status !== 202 && answer;
  });

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  exports = `/api/projects/${anna.projectId}/batch_exports/`;
  await insertEvents(
    api.pool,
    Array.from({ length: 30 }, (_, index) => ({
      ...{ project_id: anna.projectId, event: 'hello', properties: { index } },
      timestamp: iso(first + index * 6 * 60_000),
    })),
  );
});

test('an export is made, run, looked at, verified, run again and backfilled through the API alone', async () => {
  const destination = { type: 'File', config: { directory: 'lake', compression: 'zstd' } };
  const made = await ask('POST', exports, { name: 'Live', interval: 'hour', destination });
  expect(made.status).toBe(201);
  const url = `${exports}${made.body.id}/`;
  const folder = path.join(root, '@projects', String(anna.projectId), 'lake');

  const started = await ask('POST', `${url}run/`, { start_at: iso(first) });
  expect(started.status).toBe(201);
  const run = await eventually(async () => {
    const { body } = await ask('GET', `${url}runs/`);
    return body.results.find((one: { status: string }) => one.status === 'Completed');
  });
  expect(run).toMatchObject({
    ...{ workflow_id: started.body.workflow_id, temporal_url: started.body.temporal_url },
    ...{ data_interval_start: utc(first), data_interval_end: utc(first + HOUR) },
    ...{ records_completed: 10, records_total_count: 10, latest_error: null, backfill: null },
  });
  const preview = (await ask('POST', `${url}preview/`, { start_at: iso(first) })).body;
  expect(readdirSync(folder).sort()).toEqual([...preview.keys, preview.manifest_key].sort());
  expect(run.manifest_key).toBe(preview.manifest_key);
  const file = path.join(folder, preview.keys[0]);
  expect(uuidsOf(readFileSync(file), file)).toHaveLength(10);

  const { body: logs } = await ask('GET', `${url}runs/${run.id}/logs/`);
  expect(logs.count).toBeGreaterThan(0);
  expect((await ask('GET', `${url}metrics/totals/`)).body).toEqual({ totals: { rows: 10, success: 1 } });
  const map = (await ask('GET', `${url}intervals/?after=${iso(first)}&before=${iso(first + HOUR)}`)).body;
  expect(map.results).toMatchObject([{ state: 'done', run_id: run.id, records_completed: 10 }]);

  const same = await verify(url);
  expect(same).toMatchObject({
    status: 200,
    body: {
      ...{
        data_interval_start: utc(first),
        data_interval_end: utc(first + HOUR),
        verdict: 'same',
        problems: [],
      },
      ...{ run_id: run.id, source: { state: 'read', rows: 10 }, destination: { rows: 10 } },
      manifest: { rows: 10, files: 1 },
    },
  });
  appendFileSync(file, 'x');
  const differs = await verify(url, { run_id: run.id });
  expect(differs.body).toMatchObject({
    verdict: 'differs',
    destination: { files: [{ key: preview.keys[0], state: 'different' }] },
  });
  const nothing = await verify(`/api/organizations/@current/batch_exports/${made.body.id}/`, {
    start_at: iso(first + HOUR),
  });
  expect(nothing.body).toMatchObject({ verdict: 'missing', run_id: null });

  // A retry writes it anew, in the place of what was spoilt.
  const retried = await ask('POST', `${url}runs/${run.id}/retry/`);
  expect(retried.status).toBe(201);
  const over = (id: string) =>
    eventually(async () => {
      const { body } = await ask('GET', `${url}backfills/${encodeURIComponent(id)}/`);
      return body.status === 'Completed' && body;
    });
  expect(await over(retried.body.backfill_id)).toMatchObject({ progress: { total_runs: 1, progress: 1 } });
  expect((await verify(url, { start_at: iso(first) })).body.verdict).toBe('same');

  const backfill = await ask('POST', `${url}backfills/`, {
    ...{ start_at: iso(first), end_at: iso(first + 3 * HOUR) },
  });
  expect(await over(backfill.body.backfill_id)).toMatchObject({
    progress: { total_runs: 3, finished_runs: 3, progress: 1 },
    total_records_count: 30,
  });
  const uuids = readdirSync(folder)
    .filter((name) => !name.endsWith('.json'))
    .flatMap((name) => uuidsOf(readFileSync(path.join(folder, name)), name));
  expect([uuids.length, new Set(uuids).size]).toEqual([30, 30]);
  expect((await ask('GET', url)).body.latest_runs.length).toBe(5);
});

test('a verification names an interval or a run that there is', async () => {
  const { id } = (
    await ask('POST', exports, { name: 'x', interval: 'hour', destination: { type: 'NoOp', config: {} } })
  ).body;
  const url = `${exports}${id}/verify/`;
  for (const [body, refusal] of [
    [{ run_id: id }, refusals.field('run_id', 'does_not_exist', 'This batch export has no such run.')],
    [
      { run_id: id, start_at: iso(first) },
      refusals.field('run_id', 'invalid_input', "Do not combine 'run_id' with 'start_at' or 'end_at'."),
    ],
    [{ run_id: 'x' }, refusals.field('run_id', 'invalid_input', 'Must be a valid UUID.')],
    [
      { wait_seconds: 0 },
      refusals.field('wait_seconds', 'min_value', 'Ensure this value is greater than or equal to 1.'),
    ],
    [
      { end_at: iso(first + 1000) },
      refusals.field(
        'end_at',
        'invalid_input',
        `No interval of this batch export ends at this time. One ends at ${utc(first + HOUR)}.`,
      ),
    ],
  ] as const) {
    expect(await ask('POST', url, body)).toEqual({ status: 400, body: refusal });
  }
});

test('a verification that takes longer than the caller waits is asked for again', async () => {
  const { id } = (
    await ask('POST', exports, { name: 'x', interval: 'hour', destination: { type: 'NoOp', config: {} } })
  ).body;
  await stopWorker();
  const body = { start_at: iso(first), wait_seconds: 1 };
  const first202 = await api.request(anna, 'POST', `${exports}${id}/verify/`, body);
  expect([first202.statusCode, first202.headers['retry-after'], first202.json()]).toEqual([
    202,
    '5',
    { data_interval_start: utc(first), data_interval_end: utc(first + HOUR), state: 'running' },
  ]);
  await startWorker();
  const report = await eventually(async () => {
    const answer = await ask('POST', `${exports}${id}/verify/`, { ...body, wait_seconds: 10 });
    return answer.status === 200 && answer.body;
  });
  expect(report.data_interval_start).toBe(utc(first));
});
