import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { transaction } from '../../../db/pool.ts';
import { uuidv7 } from '../../../db/uuid.ts';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { refusals } from '../../support/refusals.ts';
import { insertEvents } from '../../support/rows.ts';
import { s3ForFile } from '../../support/versitygw.ts';

const root = mkdtempSync(path.join(tmpdir(), 'sluice-preview-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const server = s3ForFile();
const api = apiForFile({
  SLUICE_EXPORT_ROOT: path.join(root, 'exports'),
  SLUICE_EGRESS_ALLOW: '127.0.0.1',
});
const HOUR = 3_600_000;
const last = Math.floor(Date.now() / HOUR) * HOUR - HOUR;
const iso = (milliseconds: number) => new Date(milliseconds).toISOString();
const utc = (milliseconds: number) => iso(milliseconds).replace('.000Z', 'Z');
let anna: Tenant;
let exports: string;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  exports = `/api/projects/${anna.projectId}/batch_exports/`;
});

async function ask(method: string, url: string, body?: object) {
  const answer = await api.request(anna, method, url, body);
  return { status: answer.statusCode, body: answer.json() };
}
const file = (directory: string, more: object = {}) => ({ type: 'File', config: { directory, ...more } });
const nowhere = { type: 'NoOp', config: {} };
const good = { name: 'Lake', interval: 'hour', destination: nowhere };
const create = async (fields: object) =>
  (await ask('POST', exports, { ...good, ...fields })).body.id as string;

describe('a preview', () => {
  beforeAll(async () => {
    const events = Array.from({ length: 12 }, (_, index) => ({
      project_id: anna.projectId,
      uuid: uuidv7(),
      event: index % 3 === 0 ? 'signup' : '$pageview',
      properties: { $browser: index % 2 === 0 ? 'Firefox' : 'Safari', index },
      timestamp: iso(last + index * 60_000),
    }));
    await insertEvents(api.pool, events);
    await insertEvents(api.pool, [{ project_id: anna.projectId + 1, event: 'theirs', timestamp: iso(last) }]);
  });

  test('shows rows, size and names, and writes nothing', async () => {
    const id = await create({
      destination: file('shown', { prefix: '{year}/{table}', compression: 'gzip' }),
    });
    for (const url of [
      `${exports}${id}/preview/`,
      `/api/organizations/@current/batch_exports/${id}/preview/`,
    ]) {
      const { status, body } = await ask('POST', url, { start_at: iso(last) });
      expect(status).toBe(200);
      expect(body).toMatchObject({
        data_interval_start: utc(last),
        data_interval_end: utc(last + HOUR),
        estimate: { rows: 12, exact: true },
        keys: [
          `${iso(last + HOUR).slice(0, 4)}/events/${iso(last).replace('.000Z', '+00:00')}-${iso(last + HOUR).replace('.000Z', '+00:00')}.jsonl.gz`,
        ],
      });
      expect(body.manifest_key).toMatch(/_manifest\.json$/);
      expect(body.rows).toHaveLength(10);
      expect(body.columns.map((one: { name: string }) => one.name)).toEqual(Object.keys(body.rows[0]));
      expect(body.rows[1]).toMatchObject({
        event: '$pageview',
        properties: { $browser: 'Safari', index: 1 },
      });
      expect(body.estimate.bytes).toBeGreaterThan(1_000);
      expect(body.estimate.bytes).toBeLessThan(20_000);
    }
    expect(existsSync(path.join(root, 'exports'))).toBe(false);
  });

  test('is of what the export has: names, filters, columns, interval, limit', async () => {
    const filters = [{ type: 'event', key: '$browser', operator: 'exact', value: ['Firefox'] }];
    const id = await create({
      filters,
      hogql_query: 'select event, toInt(properties.index) as number from events',
      destination: { type: 'NoOp', config: { exclude_events: ['signup'] } },
    });
    const { body } = await ask('POST', `${exports}${id}/preview/`, { limit: 2, end_at: iso(last + HOUR) });
    expect(body).toMatchObject({
      columns: [
        { name: 'event', type: 'string' },
        { name: 'number', type: 'int64' },
      ],
      rows: [
        { event: '$pageview', number: 2 },
        { event: '$pageview', number: 4 },
      ],
      estimate: { rows: 4, exact: true },
      keys: null,
      manifest_key: null,
    });
    const before = await ask('POST', `${exports}${id}/preview/`, { start_at: iso(last - HOUR), limit: 0 });
    expect(before.body).toMatchObject({ rows: [], estimate: { rows: 0, bytes: 0 } });
    const current = await ask('POST', `${exports}${id}/preview/`, { start_at: iso(last + HOUR) });
    expect([current.status, current.body.data_interval_end]).toEqual([200, utc(last + 2 * HOUR)]);
  });

  test('has as many rows as fit, whatever a query makes of an event', async () => {
    const shown = async (megabytes: number) => {
      const id = await create({
        hogql_query: `select event, repeat(repeat('x', 1000), ${megabytes * 1000}) as large from events`,
      });
      const { status, body } = await ask('POST', `${exports}${id}/preview/`, {
        start_at: iso(last),
        limit: 5,
      });
      expect([status, body.estimate.rows]).toEqual([200, 12]);
      return body.rows.map((row: { event: string; large: string }) => [row.event, row.large.length]);
    };
    expect(await shown(3)).toEqual([
      ['signup', 3_000_000],
      ['$pageview', 3_000_000],
    ]);
    expect(await shown(16)).toEqual([]);
  });

  test('of what Postgres cannot compute is refused', async () => {
    const id = await create({ hogql_query: 'select repeat(repeat(event, 900000), 900000) as x from events' });
    expect(await ask('POST', `${exports}${id}/preview/`, { start_at: iso(last) })).toEqual({
      status: 400,
      body: refusals.field(
        'hogql_query',
        'invalid_input',
        'Invalid HogQL query: A value would have more than 16777216 bytes, the most that a value of this query may have',
      ),
    });
  });

  test('that takes long leaves the API to others, however many there are', async () => {
    const id = await create({});
    const preview = () => ask('POST', `${exports}${id}/preview/`, { start_at: iso(last) });
    const answers = await transaction(api.pool, async (client) => {
      await client.query('lock table events in access exclusive mode');
      const asked = Array.from({ length: api.pool.options.max }, preview);
      await eventually(async () => {
        const { rows } = await client.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return rows.length > 0;
      });
      expect((await ask('GET', `${exports}${id}/`)).status).toBe(200);
      return { asked };
    });
    // Those that had to wait have their turn.
    expect((await Promise.all(answers.asked)).map((one) => one.status)).toEqual(answers.asked.map(() => 200));
  });

  test('is there before the export is, of other models too', async () => {
    const { body } = await ask('POST', `${exports}preview/`, {
      ...good,
      interval: 'every 5 minutes',
      destination: file('unsaved', { max_file_size_mb: 1 }),
    });
    expect(Date.parse(body.data_interval_end) - Date.parse(body.data_interval_start)).toBe(300_000);
    expect(body.keys).toEqual([expect.stringMatching(/-0\.jsonl$/)]);
    const organization = `/api/organizations/${anna.organizationId}/batch_exports/preview/`;
    for (const model of ['persons', 'sessions']) {
      const answer = await ask('POST', organization, { ...good, model });
      expect([answer.status, answer.body.rows, answer.body.keys]).toEqual([200, [], null]);
    }
    expect((await ask('GET', exports)).body.results.map((one: { name: string }) => one.name)).not.toContain(
      'unsaved',
    );
  });

  test.each<[object, object]>([
    [{ limit: 101 }, refusals.field('limit', 'max_value', 'Ensure this value is less than or equal to 100.')],
    [
      { start_at: '2026-01-01T00:00:01Z' },
      refusals.field(
        'start_at',
        'invalid_input',
        'No interval of this batch export begins at this time. One begins at 2026-01-01T00:00:00Z.',
      ),
    ],
  ])('for %j is refused', async (body, refusal) => {
    const id = await create({});
    expect(await ask('POST', `${exports}${id}/preview/`, body)).toEqual({ status: 400, body: refusal });
  });
});

describe('the test of a destination', () => {
  const step = (name: string, result: object | null) => ({
    ...{ name, description: expect.any(String), result },
  });
  const bucketStep = 'Check S3 bucket exists';

  test('tells its steps', async () => {
    for (const prefix of [exports, '/api/organizations/@current/batch_exports/']) {
      expect(await ask('GET', `${prefix}test/?destination=S3`)).toEqual({
        status: 200,
        body: { steps: [step(bucketStep, null), step('Write to S3 bucket', null)] },
      });
      for (const type of ['Postgres', 'HTTP', 'File', 'AwsS3']) {
        const { body } = await ask('GET', `${prefix}test/?destination=${type}`);
        expect(body.steps.length).toBeGreaterThan(0);
      }
      expect(await ask('GET', `${prefix}test/?destination=NoOp`)).toEqual({
        status: 404,
        body: refusals.notFound('There is no test of NoOp.'),
      });
      expect(await ask('GET', `${prefix}test/?destination=FTP`)).toEqual({
        status: 404,
        body: refusals.notFound('There is no such type of destination.'),
      });
      expect(await ask('GET', `${prefix}test/`)).toEqual({
        status: 400,
        body: refusals.field('destination', 'required', 'This field is required.'),
      });
    }
  });

  test('is run step by step against the real thing, and leaves nothing', async () => {
    const bucket = await server.createBucket();
    const config = {
      ...{ bucket_name: bucket, region: 'us-east-1', prefix: 'p/', endpoint_url: server.endpoint },
      ...{ aws_access_key_id: server.accessKeyId, aws_secret_access_key: server.secretAccessKey },
    };
    const run = (body: object) => ask('POST', `${exports}run_test_step_new/`, body);
    const destination = { type: 'S3', config };
    const passed = { status: 'Passed', message: null };
    expect(await run({ ...good, destination })).toEqual({ status: 200, body: step(bucketStep, passed) });
    expect((await run({ destination, step: 1 })).body).toEqual(step('Write to S3 bucket', passed));
    const missing = await run({
      destination: { type: 'S3', config: { ...config, bucket_name: 'nothing-here' } },
    });
    expect(missing.body.result).toEqual({
      status: 'Failed',
      message: `Bucket "nothing-here" does not exist or we don't have permissions to use it`,
    });
    const wrong = { ...config, aws_secret_access_key: 'canary-wrong-key' };
    const denied = await run({ destination: { type: 'S3', config: wrong } });
    expect(denied.body.result.status).toBe('Failed');
    expect(JSON.stringify(denied.body)).not.toMatch(/canary/);
    expect((await run({ destination, step: 2 })).body).toEqual(
      refusals.field('step', 'invalid_input', 'There is no step 2: the test of S3 has 2 steps, from 0 on.'),
    );
    expect((await run({ destination: nowhere })).status).toBe(404);
    expect((await run({ destination: { type: 'S3', config: { region: 'x' } } })).body.result).toEqual({
      status: 'Failed',
      message: expect.stringMatching(/^The test step cannot run as it's not configured\./),
    });
    const found = await server.client.send(new ListObjectsV2Command({ Bucket: bucket }));
    expect(found.KeyCount).toBe(0);
    expect((await run({ destination: file('probe') })).body.result.status).toBe('Passed');
    expect(existsSync(path.join(root, 'exports'))).toBe(false);
  });

  test('of a stored export needs no secret again, and takes what is sent instead of what is stored', async () => {
    const bucket = await server.createBucket();
    const config = {
      ...{ bucket_name: bucket, region: 'us-east-1', prefix: 'stored/', endpoint_url: server.endpoint },
      ...{ aws_access_key_id: server.accessKeyId, aws_secret_access_key: server.secretAccessKey },
    };
    const id = await create({ destination: { type: 'S3', config } });
    for (const prefix of [exports, '/api/organizations/@current/batch_exports/']) {
      const run = async (body: object) => (await ask('POST', `${prefix}${id}/run_test_step/`, body)).body;
      expect((await run({})).result).toEqual({ status: 'Passed', message: null });
      expect((await run({ step: 1 })).result).toEqual({ status: 'Passed', message: null });
      const other = { type: 'S3', config: { bucket_name: 'nothing-here' } };
      expect((await run({ destination: other })).result.status).toBe('Failed');
      expect(await run({ destination: { type: 'HTTP', config: {} } })).toMatchObject({
        attr: 'destination__type',
        detail: expect.stringMatching(/^Cannot change destination type from 'S3' to 'HTTP'\./),
      });
    }
    expect((await ask('GET', `${exports}${id}/`)).body.destination.config.bucket_name).toBe(bucket);
  });

  test.each([
    ['HTTP', { url: 'http://169.254.169.254/batch/', token: 'phc_canary' }],
    ['Postgres', { host: '169.254.169.254', database: 'd', user: 'canary', password: 'canary' }],
    [
      'S3',
      {
        ...{ bucket_name: 'lake', region: 'eu-west-1', prefix: 'p', endpoint_url: 'http://169.254.169.254' },
        ...{ aws_access_key_id: 'canary', aws_secret_access_key: 'canary' },
      },
    ],
  ])('reaches no private address that is not allowed, and says so: %s', async (type, config) => {
    const { body } = await ask('POST', `${exports}run_test_step_new/`, { destination: { type, config } });
    expect(body.result.status).toBe('Failed');
    expect(body.result.message).toMatch(/Connections to 169\.254\.169\.254 are not allowed/);
    expect(body.result.message).not.toMatch(/unknown error/);
    expect(JSON.stringify(body)).not.toMatch(/canary/);
  });
});

describe('the map of intervals', () => {
  test('says what became of each', async () => {
    const id = await create({});
    await api.pool.query('update batch_exports set created_at = $2, scheduled_from = $2 where id = $1', [
      id,
      iso(last - 2.5 * HOUR),
    ]);
    const key = { projectId: anna.projectId, exportId: id };
    await api.pool.query(
      `insert into batch_export_runs (project_id, id, batch_export_id, workflow_id, workflow_run_id, status,
         data_interval_start, data_interval_end, fence, finished_at, records_completed)
       values ($1, $2, $3, 'w', $4, 'Completed', $5, $6, 1, now(), 7)`,
      [key.projectId, uuidv7(), id, uuidv7(), iso(last - 2 * HOUR), iso(last - HOUR)],
    );
    const query = `?after=${iso(last - 4 * HOUR)}&before=${iso(last)}`;
    for (const prefix of [exports, '/api/organizations/@current/batch_exports/']) {
      const { status, body } = await ask('GET', `${prefix}${id}/intervals/${query}`);
      expect(status).toBe(200);
      expect(
        body.results.map((one: { state: string; data_interval_end: string }) => [
          one.data_interval_end,
          one.state,
        ]),
      ).toEqual([
        [utc(last - 3 * HOUR), 'excluded'],
        [utc(last - 2 * HOUR), expect.stringMatching(/late|missing/)],
        [utc(last - HOUR), 'done'],
        [utc(last), expect.stringMatching(/late|missing/)],
      ]);
      expect(body.results[2]).toMatchObject({ records_completed: 7, status: 'Completed', runs: 1 });
      expect(body.missing + body.late).toBe(2);
      expect(body.lag_intervals).toBe(2);
    }
    expect(
      (await ask('GET', `${exports}${id}/intervals/?after=${iso(last)}&before=${iso(last)}`)).body,
    ).toMatchObject({
      results: [],
      missing: 0,
    });
    expect((await ask('GET', `${exports}${id}/intervals/`)).body.results.length).toBeGreaterThanOrEqual(167);
  });

  test('is of a bounded time', async () => {
    const id = await create({ interval: 'every 5 minutes' });
    expect(await ask('GET', `${exports}${id}/intervals/?after=2026-01-01`)).toEqual({
      status: 400,
      body: refusals.field(
        'after',
        'invalid_input',
        'This range has more than 10000 intervals. Choose a shorter range.',
      ),
    });
  });

  test('an export tells how many are missing and how far it is behind, as maintenance found it', async () => {
    const id = await create({});
    await api.pool.query(
      `insert into batch_export_health (project_id, batch_export_id, missing, late, differs, lag_intervals, lag_seconds)
       values ($1, $2, 2, 1, 0, 3, 10800)`,
      [anna.projectId, id],
    );
    expect((await ask('GET', `${exports}${id}/`)).body).toMatchObject({ missing: 2, lag: 10800 });
  });
});
