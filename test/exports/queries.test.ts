import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { columnsOf, readParquetRows } from '../formats/encode.ts';
import { foreignDatabaseForFile } from '../support/database.ts';
import { faultyS3ForFile } from '../support/faulty-s3.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { programsForFile } from '../support/programs.ts';
import { insertEvents } from '../support/rows.ts';
import { fromCsv, type Row } from './people-rows.ts';
import { exportWorldForFile, FIRST, fillHour, HOUR, hour } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const programs = programsForFile();
const s3 = faultyS3ForFile();
const world = exportWorldForFile();
const target = foreignDatabaseForFile();
const operator = operatorForFile(programs, world);

const minute = (n: number, minutes: number) => new Date(FIRST + n * HOUR + minutes * 60_000).toISOString();
const hex = (FIRST + 60_000).toString(16).padStart(12, '0');
const session = (n: number) => `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-00000000000${n}`;
const THEIRS = 900_001;

const QUERIES = {
  events: `select uuid, team_id, event, properties.n as n, toInt(properties.n) * 2 as twice, properties.none as none,
    timestamp as at, event = 'bought' as bought, toFloat(properties.n) / 4 as quarter, [event, distinct_id] as words,
    [1, 2] as numbers, properties, 'é "q", x' as fixed from events where event = 'bought' and toInt(properties.n) < 4`,
  persons: `select team_id, distinct_id, person_distinct_id_version, person_version, id as person, properties.name as name,
    is_deleted, created_at as since from persons where properties.plan = 'pro'`,
  sessions: `select team_id, session_id, end_timestamp, $pageview_count as views, urls, $entry_utm_source as source,
    duration > 100 as long from sessions where duration > 60`,
} as const;
type Model = keyof typeof QUERIES;
const ORDER: Record<Model, string> = { events: 'n', persons: 'distinct_id', sessions: 'session_id' };

/** What the first hour of each query is. */
const EXPECTED: Record<Model, Row[]> = { events: [], persons: [], sessions: [] };

beforeAll(async () => {
  const mine = operator.tenant.projectId;
  const uuids = await fillHour(world.pool, 0, 10, mine);
  await fillHour(world.pool, 0, 10, THEIRS);
  EXPECTED.events = [0, 2].map((n) => ({
    ...{
      uuid: uuids[n],
      team_id: mine,
      event: 'bought',
      n: String(n),
      twice: 2 * n,
      none: null,
      bought: true,
    },
    ...{
      at: minute(0, n * 6).replace('Z', '000Z'),
      quarter: n / 4,
      words: ['bought', 'user-1'],
      numbers: [1, 2],
    },
    ...{ properties: { n, text: 'é "quoted"' }, fixed: 'é "q", x' },
  }));
  for (const [project, name] of [
    [mine, 'ann'],
    [mine, 'bob'],
    [THEIRS, 'eve'],
  ] as const) {
    const id = uuidv7();
    const plan = name === 'bob' ? 'free' : 'pro';
    await world.pool.query('insert into persons values ($1, $2, $3, true, $4, 3, $5)', [
      ...[project, id, minute(0, 1), { name, plan }, minute(0, 40)],
    ]);
    await world.pool.query('insert into person_distinct_ids values ($1, $2, $3, 1, $4)', [
      ...[project, `${name}-1`, id, minute(0, 40)],
    ]);
    if (name !== 'ann') continue;
    EXPECTED.persons = [
      {
        ...{
          team_id: mine,
          distinct_id: 'ann-1',
          person_distinct_id_version: 1,
          person_version: 3,
          person: id,
        },
        ...{ name: 'ann', is_deleted: false, since: minute(0, 1).replace('Z', '000Z') },
      },
    ];
  }
  const view = (project_id: number, n: number, minutes: number) => ({
    ...{ project_id, session_id: session(n), event: '$pageview', timestamp: minute(1, minutes) },
    properties: { $current_url: `https://example.com/${minutes}` },
  });
  await insertEvents(world.pool, [
    ...[view(mine, 1, 1), view(mine, 1, 4), view(mine, 2, 5)],
    ...[view(THEIRS, 3, 1), view(THEIRS, 3, 9)],
  ]);
  EXPECTED.sessions = [
    {
      ...{
        team_id: mine,
        session_id: session(1),
        end_timestamp: minute(1, 4).replace('Z', '000Z'),
        views: 2,
      },
      ...{ urls: ['https://example.com/1', 'https://example.com/4'], source: null, long: true },
    },
  ];
});

const START: Record<Model, string> = { events: hour(0), persons: hour(0), sessions: hour(1) };
const nameOf = (start: string) =>
  [start, new Date(Date.parse(start) + HOUR).toISOString()]
    .map((one) => one.replace('.000Z', '+00:00'))
    .join('-');

async function exported(type: string, config: object, model: Model): Promise<string> {
  const at = await operator.create(type, config, { hogql_query: QUERIES[model] });
  const run = await operator.run(at, START[model]);
  expect([run.status, run.latest_error, run.records_completed]).toEqual([
    ...['Completed', null, EXPECTED[model].length],
  ]);
  return at;
}

const sorted = (model: Model, rows: Row[]) =>
  rows.toSorted((a, b) => (String(a[ORDER[model]]) < String(b[ORDER[model]]) ? -1 : 1));
const lines = (text: string): Row[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

describe.each(['events', 'persons', 'sessions'] as const)('a query of %s goes', (model) => {
  const inFolder = (folder: string, ending: string) =>
    readFileSync(
      path.join(
        ...[world.root, '@projects', String(operator.tenant.projectId), folder],
        `${nameOf(START[model])}.${ending}`,
      ),
    );

  test('to lines of JSON, and verifies', async () => {
    const folder = `${model}-lines`;
    const at = await exported('File', { directory: folder, file_format: 'JSONLines' }, model);
    expect(sorted(model, lines(inFolder(folder, 'jsonl').toString()))).toEqual(EXPECTED[model]);
    const report = await operator.verify(at, { start_at: START[model] });
    expect(report.verdict).toBe('same');
  });

  test('to CSV', async () => {
    const folder = `${model}-csv`;
    await exported('File', { directory: folder, file_format: 'CSV' }, model);
    const text = (value: unknown) =>
      value === null ? null : typeof value === 'object' ? JSON.stringify(value) : String(value);
    const rows = sorted(model, fromCsv(inFolder(folder, 'csv').toString()));
    const plain = (row: Row) => ({
      ...row,
      ...(typeof row.properties === 'string' && { properties: JSON.parse(row.properties) }),
    });
    const asText = EXPECTED[model].map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, text(value)])),
    );
    expect(rows.map(plain)).toEqual(asText.map(plain));
  });

  test('to Parquet, with the types of its columns', async () => {
    const folder = `${model}-parquet`;
    await exported('File', { directory: folder, file_format: 'Parquet' }, model);
    const bytes = inFolder(folder, 'parquet');
    const documents = (row: Row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          ['properties', 'numbers'].includes(name) && typeof value === 'string' ? JSON.parse(value) : value,
        ]),
      );
    expect(sorted(model, await readParquetRows(bytes)).map(documents)).toEqual(EXPECTED[model]);
    expect(await columnsOf(bytes)).toMatchObject(
      {
        events: {
          ...{ uuid: 'UTF8', team_id: 'INT64', n: 'UTF8', twice: 'INT64', none: 'UTF8', bought: 'BOOLEAN' },
          ...{
            at: 'TIMESTAMP_MICROS',
            quarter: 'DOUBLE',
            words: 'LIST',
            numbers: 'UTF8',
            properties: 'UTF8',
          },
        },
        persons: { team_id: 'INT32', person: 'UTF8', person_version: 'INT64', since: 'TIMESTAMP_MICROS' },
        sessions: { views: 'INT64', urls: 'LIST', end_timestamp: 'TIMESTAMP_MICROS', long: 'BOOLEAN' },
      }[model],
    );
  });

  test('to a bucket', async () => {
    const bucket = await s3.bucket(`lake/${model}`);
    await exported('S3', { ...bucket.config, file_format: 'JSONLines' }, model);
    const rows = lines((await bucket.read(`lake/${model}/${nameOf(START[model])}.jsonl`)).toString());
    expect(sorted(model, rows)).toEqual(EXPECTED[model]);
  });

  test('to a table, and stays the same when it is sent again', async () => {
    const table = `of_${model}`;
    const at = await exported('Postgres', postgresSettings(target.url, table), model);
    const read = async () =>
      (
        await target.pool.query(`select row_to_json(t) as row from ${table} as t order by ${ORDER[model]}`)
      ).rows.map(({ row }) => row);
    const rows = await read();
    const instants = (row: Row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          /^\d{4}-\d\d-\d\dT/.test(String(value)) ? Date.parse(String(value)) : value,
        ]),
      );
    expect(rows.map(instants)).toEqual(EXPECTED[model].map(instants));
    const again = await operator.run(at, START[model]);
    expect(again.status).toBe('Completed');
    expect(await read()).toEqual(rows);
  });
});

test('a backfill of a query has the rows of its condition, each once', async () => {
  const at = await operator.create(
    'File',
    { directory: 'backfilled', file_format: 'JSONLines' },
    { hogql_query: QUERIES.events },
  );
  const { results } = await operator.ask('GET', `${at}runs/`);
  expect(results).toEqual([]);
  await operator.ask('POST', `${at}backfills/`, { start_at: hour(0), end_at: hour(2) });
  const run = await operator.lastRun(at);
  expect(run.status).toBe('Completed');
});
