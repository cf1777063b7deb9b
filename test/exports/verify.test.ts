import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DeleteObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { describe, expect, test } from '@jest/globals';
import { type BatchExportRow, deleteBatchExport } from '../../exports/rows/batch-exports.ts';
import { listChecks } from '../../exports/rows/checks.ts';
import type { VerifyReport } from '../../exports/rules/verify-report.ts';
import { withDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { insertPerson } from '../support/rows.ts';
import { s3ForFile } from '../support/versitygw.ts';
import { exportWorldForFile, filesIn, fillHour, hourly } from './support.ts';

const s3 = s3ForFile();
const world = exportWorldForFile();
let projects = 60;
const nextProject = () => {
  projects += 1;
  return projects;
};
const PATIENCE = { waitMilliseconds: 120_000 };

async function verify(row: BatchExportRow, n = 0): Promise<VerifyReport> {
  const report = await world.schedules.exports.verify(row, hourly(n), PATIENCE);
  if (!report) throw new Error('no report came in time');
  return report;
}

/** An export into files whose first hour was exported; in two files. */
async function exported(directory: string, project_id: number, given: Record<string, unknown> = {}) {
  const config = { directory, prefix: 'p', file_format: 'JSONLines', compression: 'zstd', ...given };
  const row = await world.create('File', config, { project_id });
  await fillHour(world.pool, 0, 300, project_id);
  const { result } = await world.run(row, hourly(0));
  expect(result).toMatchObject({ status: 'Completed', records: 300 });
  const folder = path.join(world.root, directory);
  const files = filesIn(folder).map((file) => path.join(folder, file));
  const manifest = files.find((file) => file.endsWith('_manifest.json')) as string;
  return { row, runId: result.runId, file: files.find((one) => one !== manifest) as string, manifest };
}

describe('files', () => {
  test('that are as they were exported', async () => {
    const { row, runId } = await exported('whole', 51);
    const report = await verify(row);
    expect(report).toEqual({
      interval: hourly(0),
      run_id: runId,
      source: { state: 'read', rows: 300, hash: expect.stringMatching(/^[0-9a-f]{16}$/) },
      destination: {
        rows: 300,
        files: [
          {
            key: expect.stringMatching(/\.jsonl\.zst$/),
            state: 'same',
            expected: expect.anything(),
            found: expect.anything(),
          },
        ],
      },
      manifest: { run_id: runId, rows: 300, bytes: expect.any(Number), hash: report.source.hash, files: 1 },
      verdict: 'same',
      problems: [],
      checked_at: expect.any(String),
    });
    const key = { projectId: 51, exportId: row.id };
    const { start, end } = hourly(0);
    expect(await listChecks(world.pool, key, { after: start, until: end })).toMatchObject([
      { state: 'same', run_id: runId, source_rows: 300, content_hash: report.source.hash, problem: null },
    ]);
  });

  test.each<[string, (paths: { file: string; manifest: string }) => void, string, RegExp]>([
    [
      'altered',
      ({ file }) => writeFileSync(file, Buffer.alloc(readFileSync(file).length)),
      'differs',
      /has another checksum/,
    ],
    ['truncated', ({ file }) => truncateSync(file, 10), 'differs', /has 10 bytes, the manifest says/],
    ['longer', ({ file }) => appendFileSync(file, 'x'), 'differs', /bytes, the manifest says/],
    ['deleted', ({ file }) => rmSync(file), 'missing', /is not there/],
    ['without a manifest', ({ manifest }) => rmSync(manifest), 'missing', /^The manifest .* is not there/],
    [
      'with something else as its manifest',
      ({ manifest }) => writeFileSync(manifest, 'hello'),
      'differs',
      /is no manifest of Sluice/,
    ],
    [
      'with a manifest that was edited',
      ({ manifest }) =>
        writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"rows": 300', '"rows": 299')),
      'differs',
      /The manifest says 299 rows, the run 300/,
    ],
  ])('%s', async (name, change, verdict, problem) => {
    const { row, file, manifest } = await exported(name.replaceAll(' ', '-'), nextProject());
    change({ file, manifest });
    const report = await verify(row);
    expect(report.verdict).toBe(verdict);
    expect(report.problems[0]).toMatch(problem);
    // Run again, it is whole again, whatever was wrong.
    await world.run(row, hourly(0));
    expect((await verify(row)).verdict).toBe('same');
  });

  test('whose rows were deleted, or changed, in the database', async () => {
    const { row } = await exported('source', 90);
    await world.pool.query(`update events set event = 'else' where project_id = 90 and event = 'bought'`);
    const changed = await verify(row);
    expect([changed.verdict, changed.source.rows]).toEqual(['differs', 300]);
    expect(changed.problems).toEqual([expect.stringContaining('their checksums differ')]);
    await world.pool.query(`delete from events where project_id = 90 and event = 'else'`);
    const deleted = await verify(row);
    expect(deleted.problems).toEqual(['The database has 150 rows of this interval, the run exported 300.']);
    expect(deleted.destination.files[0]?.state).toBe('same');
  });

  test('of several, with other columns and another format', async () => {
    const { row } = await exported('parquet', 91, {
      file_format: 'Parquet',
      compression: 'snappy',
      max_file_size_mb: 1,
    });
    expect(await verify(row)).toMatchObject({ verdict: 'same', destination: { rows: 300 } });
  });

  test('of persons, who change afterwards', async () => {
    const row = await world.create('File', { directory: 'persons' }, { project_id: 92, model: 'persons' });
    const id = '0190d3a0-0000-7000-8000-000000000001';
    await insertPerson(world.pool, 92, { id, distinct_ids: ['a', 'b'] });
    const end = new Date(Math.floor(Date.now() / 1000) * 1000 + 1000).toISOString();
    const interval = { start: new Date(Date.now() - 3_600_000).toISOString(), end };
    const { result } = await world.run(row, interval);
    expect(result).toMatchObject({ status: 'Completed', records: 2 });
    await world.pool.query(`update persons set changed_at = now() + interval '1 day' where project_id = 92`);
    const report = await world.schedules.exports.verify(row, interval, PATIENCE);
    expect(report).toMatchObject({
      verdict: 'same',
      source: { state: 'changing', rows: 0 },
      destination: { rows: 2 },
    });
  });
});

test('an interval that was never exported', async () => {
  const row = await world.create('File', { directory: 'never' }, { project_id: 93 });
  expect(await verify(row)).toMatchObject({
    verdict: 'missing',
    run_id: null,
    problems: ['No run has completed this interval.', expect.stringContaining('is not there')],
  });
});

test('settings that were changed since, and a destination that cannot be reached', async () => {
  const { row } = await exported('moved', 94);
  await world.pool.query(
    `update batch_exports set config = jsonb_set(config, '{prefix}', '"q"') where id = $1`,
    [row.id],
  );
  expect((await verify(row)).problems[0]).toMatch(
    /^The manifest q\/.* is not there\. The run wrote p\/.*settings of the export were changed/,
  );
  await world.pool.query(`update batch_exports set config = '{"directory": "../out"}' where id = $1`, [
    row.id,
  ]);
  expect(await verify(row)).toMatchObject({
    verdict: 'unknown',
    problems: [expect.stringContaining('directory')],
  });
});

test('an export that was deleted is refused with a sentence', async () => {
  const row = await world.create('File', { directory: 'gone' }, { project_id: 95 });
  await deleteBatchExport(world.pool, { projectId: 95, exportId: row.id });
  await expect(verify(row)).rejects.toThrow('The batch export was deleted.');
});

test('whoever asks while it is being verified joins; what nobody waited for is kept for who asks next', async () => {
  const { row } = await exported('joined', 96);
  const [one, other] = await Promise.all([verify(row), verify(row)]);
  expect(one).toEqual(other);
  const again = await verify(row);
  expect(again.checked_at > one.checked_at).toBe(true);
  await world.worker.stop();
  const { exports } = world.schedules;
  expect(await exports.verify(row, hourly(0), { waitMilliseconds: 1_000 })).toBeUndefined();
  world.worker = await world.startWorker();
  const handle = world.client.workflow.getHandle(`${row.id}-verify-${hourly(0).start}-${hourly(0).end}`);
  await eventually(async () => (await handle.describe()).historyLength > 8);
  const kept = await verify(row);
  expect(kept.verdict).toBe('same');
  expect((await verify(row)).checked_at > kept.checked_at).toBe(true);
});

describe('S3', () => {
  test('an object that was removed', async () => {
    const bucket = await s3.createBucket();
    const config = {
      ...{ bucket_name: bucket, region: 'us-east-1', endpoint_url: s3.endpoint, prefix: 'lake' },
      ...{ aws_access_key_id: s3.accessKeyId, aws_secret_access_key: s3.secretAccessKey },
      ...{ file_format: 'JSONLines', compression: 'gzip' },
    };
    const row = await world.create('S3', config, { project_id: 97 });
    await fillHour(world.pool, 0, 100, 97);
    await world.run(row, hourly(0));
    expect((await world.runsOf(row))[0]).toMatchObject({ status: 'Completed', latest_error: null });
    expect(await verify(row)).toMatchObject({ verdict: 'same', destination: { rows: 100 } });
    const { Contents = [] } = await s3.client.send(new ListObjectsV2Command({ Bucket: bucket }));
    const key = Contents.find((one) => one.Key?.endsWith('.gz'))?.Key as string;
    await s3.client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
    const report = await verify(row);
    expect(report.verdict).toBe('missing');
    expect(report.destination.files).toMatchObject([{ key, state: 'missing', found: null }]);
  });
});

describe('Postgres', () => {
  test('rows that were deleted in the table', async () => {
    await withDatabase(async (target) => {
      const row = await world.create(
        'Postgres',
        { ...postgresSettings(target.url, 'copied'), schema: 'public' },
        { project_id: 98 },
      );
      await fillHour(world.pool, 0, 100, 98);
      await world.run(row, hourly(0));
      expect((await world.runsOf(row))[0]).toMatchObject({ status: 'Completed', latest_error: null });
      expect(await verify(row)).toMatchObject({ verdict: 'same', destination: { rows: 100, files: [] } });
      await target.pool.query(`delete from copied where ctid in (select ctid from copied limit 3)`);
      expect(await verify(row)).toMatchObject({
        verdict: 'differs',
        destination: { rows: 97 },
        problems: ['The destination has 97 of the 100 rows.'],
      });
      await target.pool.query('delete from copied');
      expect((await verify(row)).verdict).toBe('missing');
    });
  });
});
