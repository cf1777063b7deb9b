import { afterAll, describe, expect, test } from '@jest/globals';
import { failureOf } from '../../activities/failures.ts';
import { Turns } from '../../db/turns.ts';
import { DestinationError } from '../../destinations/errors.ts';
import { createEgress } from '../../egress/egress.ts';
import { listTestSteps, testExportDestination } from '../../exports/commands/test-destination.ts';
import { judge } from '../../exports/runs/judgement.ts';
import { createExportMetrics } from '../../exports/runs/metrics.ts';
import { ofSource } from '../../exports/runs/source.ts';
import { describeRejected } from '../../exports/runs/transfer.ts';
import type { Column } from '../../formats/columns.ts';
import { BrokenRowsError } from '../../formats/copy-format.ts';
import { createCompiler, ModelError } from '../../models/index.ts';
import { parseKeyring } from '../../secrets/envelope.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import { exportConcurrency, lanesOf } from '../../worker/export-tools.ts';
import { PATIENCE } from '../support/eventually.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { exportWorldForFile, fillHour, hourly } from './support.ts';

const world = exportWorldForFile();

const postgresConfig = (table: string) => postgresSettings(world.config.DATABASE_URL as string, table);

describe('rows into Postgres', () => {
  test('go into a table that is made for them, once', async () => {
    const uuids = await fillHour(world.pool, 0, 50);
    const row = await world.create('Postgres', postgresConfig('lake'));
    for (let time = 0; time < 2; time += 1) {
      const { run } = await world.run(row, hourly(0));
      expect(run).toMatchObject({ status: 'Completed', records_completed: 50, records_failed: 0 });
    }
    const { rows } = await world.pool.query('select uuid from lake order by uuid');
    expect(rows.map((one) => one.uuid)).toEqual([...uuids].sort());
  });

  test('that its columns do not take are left out, counted and named; the others are there', async () => {
    const uuids = await fillHour(world.pool, 1, 6);
    await world.pool.query(
      'create table narrow (uuid uuid primary key, event varchar(8), timestamp timestamptz, properties jsonb)',
    );
    // `$pageview` has nine characters, `bought` has six.
    const row = await world.create('Postgres', postgresConfig('narrow'));
    const { run } = await world.run(row, hourly(1));
    expect(run).toMatchObject({
      status: 'Completed',
      records_completed: 3,
      records_total_count: 6,
      records_failed: 3,
    });
    const { rows } = await world.pool.query('select uuid from narrow');
    expect(rows).toHaveLength(3);
    const warnings = (await world.logsOf(row)).filter((one) => one.level === 'WARNING');
    expect(warnings).toHaveLength(4);
    expect(warnings.at(-1)?.message).toMatch(
      /^50 % of the rows were left out: the destination does not fit them\./,
    );
    const there = new Set(rows.map((one) => one.uuid));
    for (const uuid of uuids.filter((one) => !there.has(one)))
      expect(warnings.some((one) => one.message.startsWith('Left out') && one.message.includes(uuid))).toBe(
        true,
      );
    expect((await world.logsOf(row)).at(-1)?.message).toMatch(/with 3 records .*; 3 left out/);
  });
});

describe('the test of a Postgres', () => {
  const compiler = createCompiler({ threads: 1, timeoutMs: PATIENCE });
  const compiling = new Turns({ atOnce: 1 });
  afterAll(() => compiler.close());
  const lastStep = async (table: string, model?: 'persons', query?: string) => {
    const row = await world.create('Postgres', postgresConfig(table), {
      ...(model ? { model } : {}),
      ...(query ? { hogql_query: query } : {}),
    });
    const egress = createEgress({ allow: '127.0.0.1,localhost' });
    const keyring = parseKeyring(world.config.SLUICE_ENCRYPTION_KEYS as string);
    const deps = { pool: world.pool, egress, keyring, exportRoot: world.root, compiler, compiling };
    const wanted = { step: listTestSteps('Postgres').length - 1 };
    return testExportDestination(deps, OPERATOR, row, undefined, wanted).finally(() => egress.close());
  };

  test('warns of columns that a run would leave rows out for', async () => {
    await world.pool.query(
      `create table doubtful (uuid uuid primary key, event varchar(8), timestamp timestamptz, properties jsonb,
         distinct_id integer, ip text, elements json, site_url varchar(200), team_id bigint, tenant text not null,
         seen timestamptz not null default now())`,
    );
    expect((await lastStep('doubtful')).result).toEqual({
      status: 'Passed',
      message:
        'Warning: "public"."doubtful" may not take all rows, and a run leaves out those that it does not take: ' +
        'event is character varying(8), and the export writes texts; distinct_id is integer, and the export writes texts; ' +
        'tenant must have a value (not null), and the export writes none.',
    });
  });

  test('knows the columns that a query selects', async () => {
    await world.pool.query(
      'create table chosen (name varchar(5), n integer, event text, missing text not null)',
    );
    const query = 'select event as name, toInt(1) as n, event from events';
    expect((await lastStep('chosen', undefined, query)).result).toEqual({
      status: 'Passed',
      message:
        'Warning: "public"."chosen" may not take all rows, and a run leaves out those that it does not take: ' +
        'name is character varying(5), and the export writes texts; ' +
        'n is integer, and the export writes large integers; ' +
        'missing must have a value (not null), and the export writes none.',
    });
  });

  test('says nothing of a table that Sluice made, for any model', async () => {
    await fillHour(world.pool, 5, 3);
    const events = await world.create('Postgres', postgresConfig('made'));
    await world.run(events, hourly(5));
    expect((await lastStep('made')).result).toEqual({ status: 'Passed', message: null });
    const persons = await world.create('Postgres', postgresConfig('made_persons'), { model: 'persons' });
    await world.run(persons, hourly(5));
    expect((await lastStep('made_persons', 'persons')).result).toEqual({ status: 'Passed', message: null });
  });
});

test('a row that was left out is named by its key, or by its number', () => {
  const columns: Column[] = [
    { name: 'n', type: 'int32', nullable: true },
    { name: 'uuid', type: 'uuid', nullable: false },
  ];
  const field = (bytes: Buffer | null) => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(bytes?.length ?? -1);
    return Buffer.concat([length, bytes ?? Buffer.alloc(0)]);
  };
  const row = (...fields: (Buffer | null)[]) =>
    Buffer.concat([Buffer.from([0, fields.length]), ...fields.map(field)]);
  const uuid = Buffer.from('0190aaaabbbb7ccc8ddd0123456789ab', 'hex');
  const reason = 'it is too much';
  const named = 'uuid 0190aaaa-bbbb-7ccc-8ddd-0123456789ab: it is too much';
  expect(describeRejected(columns, { row: 4, reason, bytes: row(null, uuid) })).toBe(named);
  expect(describeRejected(columns, { row: 4, reason, bytes: row(Buffer.from([0, 0, 0, 1]), uuid) })).toBe(
    named,
  );
  expect(describeRejected(columns, { row: 4, reason, bytes: row(null, null) })).toBe('row 5: it is too much');
  expect(describeRejected(columns.slice(0, 1), { row: 0, reason, bytes: row(null) })).toBe(
    'row 1: it is too much',
  );
});

test.each<[string, unknown, boolean]>([
  ['a destination that is away', new DestinationError('unreachable', 'x'), true],
  ['a full disk', new DestinationError('no-space', 'x'), true],
  ['missing rights', new DestinationError('denied', 'x'), false],
  ['wrong filters', new ModelError('filters', 'x'), false],
  ['a COPY that was cut off', new BrokenRowsError('x', { retryable: true }), true],
  ['rows that do not fit their columns', new BrokenRowsError('x', { retryable: false }), false],
  ['a value that Postgres refuses', ofSource(Object.assign(new Error('x'), { code: '22P02' })), false],
  ['a statement that it refuses', ofSource(Object.assign(new Error('x'), { code: '42883' })), false],
  ['a Postgres that restarts', Object.assign(new Error('x'), { code: '57P01' }), true],
  ['a connection that is cut', Object.assign(new Error('x'), { code: 'ECONNRESET' }), true],
  ['anything else', new Error('x'), true],
])('%s: tried again %s', (_what, error, again) => {
  expect(judge(error)).toMatchObject({ again });
  expect(judge(error).message).toContain('x');
});

test.each<[number, number | undefined, number]>([
  [1, undefined, 1_000],
  [5, undefined, 16_000],
  [40, undefined, 3_600_000],
  [5, 90_000, 90_000],
  [1, 365 * 86_400_000, 3_600_000],
])('after attempt %d, asked to wait %s ms, the next one begins in %d ms', (attempt, asked, pause) => {
  const failure = failureOf({ ...judge(new Error('x')), retryAfterMilliseconds: asked }, attempt);
  expect(failure).toMatchObject({ nonRetryable: false, nextRetryDelay: pause });
});

test('a worker does as many runs at once as it has memory for', () => {
  const GIGABYTE = 1024 ** 3;
  const of = (memory: number, given?: number) =>
    exportConcurrency({ SLUICE_EXPORT_CONCURRENCY: given }, memory * GIGABYTE);
  expect([of(0.5), of(1), of(2), of(3), of(64)]).toEqual([2, 2, 4, 6, 8]);
  expect(of(0.5, 30)).toBe(30);
  expect([1, 2, 3, 4, 8, 30].map((atOnce) => Object.values(lanesOf(atOnce)))).toEqual([
    [1, 1],
    [1, 1],
    [2, 1],
    [2, 2],
    [5, 3],
    [20, 10],
  ]);
});

test('metrics have a help and a name of the same form', async () => {
  const registry = createRegistry('worker');
  createExportMetrics(registry);
  const own = (await registry.getMetricsAsJSON()).filter((one) => one.name.startsWith('sluice_export_'));
  expect(own).toHaveLength(10);
  for (const one of own) expect(one.help).toMatch(/\.$/);
  // Without it the first failure would be no increase, and no alert.
  expect(await registry.metrics()).toContain(
    'sluice_export_runs_total{status="Failed",destination="S3",process="worker"} 0',
  );
});
