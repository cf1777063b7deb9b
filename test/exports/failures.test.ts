import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { findBatchExportById, setPaused } from '../../exports/rows/batch-exports.ts';
import { eventually } from '../support/eventually.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { exportWorldForFile, fillHour, hour, hourly } from './support.ts';

const SECRET = 'wJalrXUtnFEMI-very-secret';

interface Told {
  headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: whatever was posted
  body: any;
}
let told: Told[] = [];
let answers: number[] = [];
const webhook = createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    const status = answers.shift() ?? 204;
    if (status === 204) told.push({ headers: request.headers, body: JSON.parse(text) });
    response.writeHead(status).end();
  });
});
webhook.listen(0, '127.0.0.1');
await once(webhook, 'listening');
const { port } = webhook.address() as AddressInfo;
afterAll(() => {
  webhook.closeAllConnections();
  webhook.close();
});
beforeEach(() => {
  told = [];
  answers = [];
});

const world = exportWorldForFile({
  settings: () => ({
    SLUICE_NOTICE_WEBHOOK: `http://127.0.0.1:${port}/hooks/sluice`,
    SLUICE_PUBLIC_URL: 'https://sluice.example',
    TEMPORAL_UI_URL: 'https://temporal.example',
  }),
});
/** The endpoint is no URL that egress lets out: the operator has to act. */
const hopeless = () =>
  world.create('S3', {
    bucket_name: 'lake',
    region: 'eu-west-1',
    prefix: 'x',
    endpoint_url: 'http://10.0.0.1:9000',
    aws_access_key_id: 'AKIA-very-secret',
    aws_secret_access_key: SECRET,
  });
const rowOf = async (row: BatchExportRow) =>
  (await findBatchExportById(world.pool, row.id)) as BatchExportRow;
const events = () => told.map(({ body }) => body.event).sort();

describe('runs that fail', () => {
  test('are told of, and pause their export when there are three of them', async () => {
    const row = await hopeless();
    await world.schedules.exports.sync(row);
    const backfill = await world.backfill(row, hour(0), hour(9));
    for (const n of [0, 1]) {
      const { run } = await world.run(row, hourly(n));
      expect(run.status).toBe('Failed');
      expect(run.latest_error).toMatch(/10\.0\.0\.1.*SLUICE_EGRESS_ALLOW/);
      expect((await rowOf(row)).paused).toBe(false);
    }
    const { run, handle } = await world.run(row, hourly(2));
    // Who looks at Temporal sees it, and all of the reason.
    expect((await handle.describe()).status.name).toBe('FAILED');
    const { currentDetails } = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
    expect(currentDetails).toContain(
      `**Failed** events to S3, ${hour(2)} – ${hour(3)}`.replaceAll('.000', ''),
    );
    const text = (given: string | null) => given?.replaceAll(/\s/g, '');
    expect(text(currentDetails)).toContain(text(run.latest_error));
    const lines = currentDetails.split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(70);
    const after = await rowOf(row);
    expect(after).toMatchObject({ paused: true, last_paused_at: expect.any(String) });
    const { state } = await world.client.schedule.getHandle(row.id).describe();
    expect(state.paused).toBe(true);
    const [log] = (await world.logsOf(row)).slice(-1);
    expect(log).toMatchObject({ level: 'ERROR', run_id: run.id });
    expect(log?.message).toMatch(/automatically paused.*3 of its last runs failed/);
    const { rows } = await world.pool.query('select status from batch_export_backfills where id = $1', [
      backfill.id,
    ]);
    expect(rows).toEqual([{ status: 'Cancelled' }]);

    await eventually(async () => told.length === 4);
    expect(events()).toEqual([...Array(3).fill('batch_export.failed'), 'batch_export.paused']);
    const url = `https://sluice.example/api/projects/1/batch_exports/${row.id}/`;
    const last = told.find(({ body }) => body.event === 'batch_export.paused');
    expect(last?.body).toEqual({
      event: 'batch_export.paused',
      at: after.last_paused_at,
      project: { id: 1 },
      export: {
        id: row.id,
        name: 'Lake',
        model: 'events',
        interval: 'hour',
        destination: 'S3',
        paused: true,
      },
      run: {
        id: run.id,
        status: 'Failed',
        data_interval_start: run.data_interval_start,
        data_interval_end: run.data_interval_end,
        backfill_id: null,
      },
      error: run.latest_error,
      details: null,
      urls: {
        export: url,
        run: `${url}runs/${run.id}/`,
        logs: `${url}runs/${run.id}/logs/`,
        temporal: expect.stringMatching(/^https:\/\/temporal\.example\/namespaces\//),
      },
    });
    expect(JSON.stringify(told)).not.toMatch(/very-secret/);
    expect(new Set(told.map(({ headers }) => headers['idempotency-key'])).size).toBe(4);
    await world.schedules.exports.remove(row.id);
  });

  test('from before it was unpaused do not count', async () => {
    const row = await hopeless();
    for (const n of [0, 1, 2]) await world.run(row, hourly(n));
    expect((await rowOf(row)).paused).toBe(true);
    await setPaused(world.pool, { projectId: 1, exportId: row.id }, false);
    for (const n of [3, 4]) await world.run(row, hourly(n));
    expect((await rowOf(row)).paused).toBe(false);
    await world.run(row, hourly(5));
    expect((await rowOf(row)).paused).toBe(true);
    await world.schedules.exports.remove(row.id);
  });

  test('are told of later where the webhook fails, and nobody waits for it', async () => {
    answers = [503, 500];
    const row = await hopeless();
    const { run, handle } = await world.run(row, hourly(0));
    expect(run.status).toBe('Failed');
    await eventually(async () => told.length === 1);
    const notice = `${handle.workflowId}-batch_export.failed-${run.workflow_run_id}`;
    expect(await world.client.workflow.getHandle(notice).result()).toBe(true);
    const history = await world.client.workflow.getHandle(notice).fetchHistory();
    expect(JSON.stringify(history)).not.toMatch(/very-secret/);
  });

  test('a webhook that refuses is not asked again', async () => {
    answers = [400];
    const row = await hopeless();
    const { run, handle } = await world.run(row, hourly(0));
    const notice = `${handle.workflowId}-batch_export.failed-${run.workflow_run_id}`;
    expect(await world.client.workflow.getHandle(notice).result()).toBe(false);
    expect(told).toEqual([]);
  });
});

describe('a run that completes without many of its rows', () => {
  test('is told once, until a run fits again', async () => {
    const names = () => told.map(({ body }) => [body.event, body.details]);
    await world.pool.query(
      'create table tight (uuid uuid primary key, event varchar(8), timestamp timestamptz, properties jsonb)',
    );
    const row = await world.create(
      'Postgres',
      postgresSettings(world.config.DATABASE_URL as string, 'tight'),
    );
    for (const n of [1, 2]) {
      // Every other event has a name of nine characters.
      await fillHour(world.pool, n, 6);
      expect((await world.run(row, hourly(n))).run).toMatchObject({ status: 'Completed', records_failed: 3 });
    }
    await eventually(async () => told.length > 0);
    expect(told[0]?.body).toMatchObject({
      ...{ event: 'batch_export.rows_left_out', export: { id: row.id } },
      ...{
        run: { status: 'Completed', data_interval_start: hour(1).replace('.000', '') },
        details: { rows: 3, left_out: 3 },
      },
    });
    await world.pool.query('alter table tight alter column event type text');
    await fillHour(world.pool, 3, 6);
    await world.run(row, hourly(3));
    await world.pool.query('truncate tight; alter table tight alter column event type varchar(8)');
    await fillHour(world.pool, 4, 6);
    await world.run(row, hourly(4));
    // The second run was like the first one, and the third was fine.
    await eventually(async () => told.length > 1);
    expect(names()).toEqual([
      ['batch_export.rows_left_out', { rows: 3, left_out: 3 }],
      ['batch_export.rows_left_out', { rows: 3, left_out: 3 }],
    ]);
    expect(told[1]?.body.run.data_interval_start).toBe(hour(4).replace('.000', ''));
  });
});
