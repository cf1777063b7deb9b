import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { columnsOf, readParquetRows } from '../formats/encode.ts';
import { eventually } from '../support/eventually.ts';
import { faultyS3ForFile, type S3Bucket } from '../support/faulty-s3.ts';
import { programsForFile } from '../support/programs.ts';
import { asText, byKey, fromCsv, type Row, withParsed } from './people-rows.ts';
import { exportWorldForFile, FIRST, HOUR, hour } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const programs = programsForFile();
const s3 = faultyS3ForFile();
const world = exportWorldForFile();
const operator = operatorForFile(programs, world);
type Model = 'persons' | 'sessions';

const minute = (n: number, minutes: number) => new Date(FIRST + n * HOUR + minutes * 60_000).toISOString();
const micros = (instant: string) => instant.replace('Z', '000Z');

/** Each model in each format, to a folder and to a bucket. */
const exports = new Map<string, string>();
let bucket: S3Bucket;
beforeAll(async () => {
  bucket = await s3.bucket('lake/{table}');
  for (const model of ['persons', 'sessions'] as const) {
    for (const file_format of ['JSONLines', 'CSV', 'Parquet']) {
      const config = { directory: `${model}-${file_format}`, file_format };
      exports.set(`${model} ${file_format}`, await operator.create('File', config, { model }));
    }
    const config = { ...bucket.config, file_format: 'JSONLines', compression: 'gzip' };
    exports.set(`${model} S3`, await operator.create('S3', config, { model }));
  }
});

/** Events as they come in, through the API; what they change is stamped as if it had been in the n-th hour. */
async function capture(n: number, batch: object[]): Promise<void> {
  const before = (await world.pool.query('select clock_timestamp() as now')).rows[0].now;
  const answer = await fetch(`${operator.api.url}/batch/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: operator.tenant.projectToken, batch }),
  });
  expect(answer.status).toBe(200);
  await stamp(n, before);
}

async function stamp(n: number, before: string): Promise<void> {
  const stamped = [minute(n, 40), before];
  for (const [table, column] of [
    ['persons', 'changed_at'],
    ['person_distinct_ids', 'changed_at'],
    ['deleted_distinct_ids', 'changed_at'],
    ['events', 'inserted_at'],
  ]) {
    await world.pool.query(`update ${table} set ${column} = $1 where ${column} >= $2`, stamped);
  }
}

/** Lets the schedules of all exports fire for the n-th hour, and waits for the runs. */
async function schedulesFire(n: number): Promise<void> {
  for (const at of exports.values()) {
    const handle = world.client.schedule.getHandle(at.slice(0, -1));
    const [start, end] = [0, HOUR].map((more) => new Date(Date.parse(hour(n)) + 90_000 + more)) as [
      Date,
      Date,
    ];
    await handle.backfill({ start, end, overlap: 'ALLOW_ALL' });
  }
  for (const [what, at] of exports) {
    const run = await eventually(async () => {
      const { results } = await operator.ask('GET', `${at}runs/`);
      const found = results.find(
        (one: Row) => Date.parse(one.data_interval_end as string) === Date.parse(hour(n + 1)),
      );
      return found?.finished_at ? found : undefined;
    });
    expect({ what, status: run.status, error: run.latest_error }).toEqual({
      what,
      status: 'Completed',
      error: null,
    });
  }
}

const nameOf = (n: number) => [n, n + 1].map((one) => hour(one).replace('.000Z', '+00:00')).join('-');

/** What the n-th hour of a model is, after all formats and places agreed on it. */
async function exported(model: Model, n: number): Promise<Row[]> {
  const bytes = (format: string, ending: string) =>
    readFileSync(
      path.join(
        world.root,
        '@projects',
        String(operator.tenant.projectId),
        `${model}-${format}`,
        `${nameOf(n)}.${ending}`,
      ),
    );
  const lines = (text: string): Row[] =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  const rows = byKey(lines(bytes('JSONLines', 'jsonl').toString()));
  const s3Rows = lines(gunzipSync(await bucket.read(`lake/${model}/${nameOf(n)}.jsonl.gz`)).toString());
  expect(byKey(s3Rows)).toEqual(rows);
  expect(byKey(fromCsv(bytes('CSV', 'csv').toString())).map(withParsed)).toEqual(
    rows.map(asText).map(withParsed),
  );
  const parquet = await readParquetRows(bytes('Parquet', 'parquet'));
  expect(byKey(parquet).map(withParsed)).toEqual(rows);
  return rows;
}
const view = (session: string, n: number, minutes: number, more: object = {}, distinct_id = 'ann') => ({
  ...{ uuid: uuidv7(), event: '$pageview', distinct_id, timestamp: minute(n, minutes) },
  properties: { $session_id: session, $current_url: `https://example.com/${minutes}?a=1`, ...more },
});

describe('persons and sessions in files', () => {
  const hex = (FIRST + 60_000).toString(16).padStart(12, '0');
  const session = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-00000000000a`;
  let ann: string;

  test('are there with their fields and types', async () => {
    const identify = {
      $anon_distinct_id: 'anon-1',
      $set: { name: 'Ann é "q"', plan: null },
      $session_id: session,
    };
    await capture(0, [
      view(
        session,
        0,
        1,
        { utm_source: 'google', utm_medium: 'cpc', gclid: 'g1', $referring_domain: 'www.google.com' },
        'anon-1',
      ),
      {
        uuid: uuidv7(),
        event: '$identify',
        distinct_id: 'ann',
        timestamp: minute(0, 2),
        properties: identify,
      },
      view(session, 0, 20),
      { ...view(session, 0, 21), event: '$autocapture' },
      { ...view(session, 0, 22, { $web_vitals_LCP_value: 1234.5 }), event: '$web_vitals' },
      {
        uuid: uuidv7(),
        event: 'signed up',
        distinct_id: 'bob',
        timestamp: minute(0, 3),
        properties: { $set: { n: 1 } },
      },
      {
        uuid: uuidv7(),
        event: 'x',
        distinct_id: 'none',
        timestamp: minute(0, 3),
        properties: { $process_person_profile: false },
      },
    ]);
    await schedulesFire(0);
    const persons = await exported('persons', 0);
    expect(persons.map((row) => row.distinct_id)).toEqual(['ann', 'anon-1', 'bob']);
    ann = persons[0]?.person_id as string;
    expect(persons[0]).toEqual({
      ...{
        team_id: operator.tenant.projectId,
        distinct_id: 'ann',
        person_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
      properties: expect.objectContaining({ name: 'Ann é "q"', plan: null, $initial_utm_source: 'google' }),
      ...{ person_distinct_id_version: expect.any(Number), person_version: expect.any(Number) },
      ...{ created_at: micros(minute(0, 1)), is_deleted: false, _inserted_at: micros(minute(0, 40)) },
    });
    expect(persons[1]).toMatchObject({ person_id: ann, is_deleted: false });

    const sessions = await exported('sessions', 0);
    expect(sessions).toEqual([
      {
        ...{
          session_id: session,
          session_id_v7: session,
          team_id: operator.tenant.projectId,
          distinct_id: 'ann',
        },
        ...{ start_timestamp: micros(minute(0, 1)), end_timestamp: micros(minute(0, 22)) },
        ...{
          urls: [
            'https://example.com/1?a=1',
            'https://example.com/20?a=1',
            'https://example.com/21?a=1',
            'https://example.com/22?a=1',
          ],
        },
        ...{ num_uniq_urls: 4, entry_current_url: 'https://example.com/1?a=1', entry_pathname: '/1' },
        ...{
          entry_hostname: 'example.com',
          end_current_url: 'https://example.com/22?a=1',
          end_pathname: '/22',
        },
        ...{
          end_hostname: 'example.com',
          exit_current_url: 'https://example.com/22?a=1',
          exit_pathname: '/22',
        },
        ...{
          entry_utm_source: 'google',
          entry_utm_campaign: null,
          entry_utm_medium: 'cpc',
          entry_utm_term: null,
        },
        ...{
          entry_utm_content: null,
          entry_referring_domain: 'www.google.com',
          entry_gclid: 'g1',
          entry_fbclid: null,
        },
        ...{
          entry_gad_source: null,
          entry_gclsrc: null,
          entry_dclid: null,
          entry_gbraid: null,
          entry_wbraid: null,
        },
        ...{
          entry_msclkid: null,
          entry_twclid: null,
          entry_li_fat_id: null,
          entry_mc_cid: null,
          entry_igshid: null,
        },
        ...{
          entry_ttclid: null,
          entry_irclid: null,
          entry__kx: null,
          pageview_count: 2,
          autocapture_count: 1,
        },
        ...{
          screen_count: 0,
          channel_type: 'Paid Search',
          session_duration: 1_260,
          duration: 1_260,
          is_bounce: false,
        },
        ...{ last_external_click_url: null, page_screen_autocapture_count_up_to: 2, vitals_lcp: 1234.5 },
        _inserted_at: micros(minute(0, 40)),
      },
    ]);
    const types = async (model: Model) =>
      columnsOf(
        readFileSync(
          path.join(
            world.root,
            '@projects',
            String(operator.tenant.projectId),
            `${model}-Parquet`,
            `${nameOf(0)}.parquet`,
          ),
        ),
      );
    expect(await types('persons')).toMatchObject({
      ...{ team_id: 'INT32', distinct_id: 'UTF8', person_id: 'UTF8', properties: 'UTF8' },
      ...{ person_distinct_id_version: 'INT64', person_version: 'INT64', created_at: 'TIMESTAMP_MICROS' },
      ...{ is_deleted: 'BOOLEAN', _inserted_at: 'TIMESTAMP_MICROS' },
    });
    expect(await types('sessions')).toMatchObject({
      ...{ session_id: 'UTF8', start_timestamp: 'TIMESTAMP_MICROS', urls: 'LIST', pageview_count: 'INT32' },
      ...{ is_bounce: 'BOOLEAN', vitals_lcp: 'DOUBLE', _inserted_at: 'TIMESTAMP_MICROS' },
    });
  });

  test('are there again in the hour in which they changed', async () => {
    const first = { persons: await exported('persons', 0), sessions: await exported('sessions', 0) };
    await capture(1, [
      {
        uuid: uuidv7(),
        event: '$set',
        distinct_id: 'ann',
        timestamp: minute(1, 1),
        properties: { $set: { plan: 'pro' } },
      },
      // Came in late, in the middle of the session.
      view(session, 0, 10),
    ]);
    await schedulesFire(1);
    const persons = await exported('persons', 1);
    expect(persons.map((row) => [row.distinct_id, row.person_id])).toEqual([
      ['ann', ann],
      ['anon-1', ann],
    ]);
    const [before] = first.persons as [Row];
    for (const row of persons) {
      expect(row.properties).toMatchObject({ name: 'Ann é "q"', plan: 'pro' });
      expect(row.person_version).toBeGreaterThan(before.person_version as number);
    }
    expect(await exported('sessions', 1)).toEqual([
      expect.objectContaining({
        ...{ session_id: session, pageview_count: 3, end_timestamp: first.sessions[0]?.end_timestamp },
        _inserted_at: micros(minute(1, 40)),
      }),
    ]);
    // What was exported before stands as it was.
    expect(await exported('persons', 0)).toEqual(first.persons);
    expect(await exported('sessions', 0)).toEqual(first.sessions);
  });

  test('who were joined and deleted are told of', async () => {
    const before = (await world.pool.query('select clock_timestamp() as now')).rows[0].now;
    const [bob] = (await exported('persons', 0)).filter((row) => row.distinct_id === 'bob');
    await capture(2, [
      {
        uuid: uuidv7(),
        event: '$merge_dangerously',
        distinct_id: 'ann',
        timestamp: minute(2, 1),
        properties: { alias: 'bob' },
      },
      {
        uuid: uuidv7(),
        event: 'came',
        distinct_id: 'cleo',
        timestamp: minute(2, 1),
        properties: { $set: { a: 1 } },
      },
    ]);
    const [cleo] = (
      await operator.ask('GET', `/api/projects/${operator.tenant.projectId}/persons/?distinct_id=cleo`)
    ).results;
    await operator.ask('DELETE', `/api/projects/${operator.tenant.projectId}/persons/${cleo.id}/`);
    await stamp(2, before);
    await schedulesFire(2);
    const persons = await exported('persons', 2);
    expect(persons.map((row) => [row.distinct_id, row.is_deleted])).toEqual([
      ['ann', false],
      ['anon-1', false],
      ['bob', false],
      ['cleo', true],
    ]);
    expect(persons[2]).toMatchObject({ person_id: ann, properties: { n: 1, plan: 'pro' } });
    expect(persons[2]?.person_distinct_id_version).toBeGreaterThan(bob?.person_distinct_id_version as number);
    expect(persons[3]).toMatchObject({ person_id: cleo.id, properties: {} });
    expect(await exported('persons', 1)).toHaveLength(2);
  });
});
