// `npm run bench -- export-formats [--rows 2000000] [--rounds 3] [--write]
// [--only zstd,gzip,parquet,s3,azure,gcs,postgres,memory]`
// Exports the events table with Sluice and with other tools, in alternating rounds. Prints tables for RESULTS.md.
// `--write` replaces results.json beside this file. `--sizes` sets the rows of the exports whose memory is measured.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { migrate } from '../../db/migrate.ts';
import { createPool } from '../../db/pool.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { freePort } from '../../stack/preflight.ts';
import { ACCOUNT, startAzurite } from '../../test/support/azurite-server.ts';
import { startGoogleFront } from '../../test/support/google-front.ts';
import { startGoogleStorage } from '../../test/support/google-storage-server.ts';
import { findPythonPackages } from '../../test/support/python-packages.ts';
import { CREDENTIALS, startVersitygw } from '../../test/support/versitygw-server.ts';
import { processStat } from '../process-stat.ts';
import { type Comparison, comparisons } from './comparisons.ts';
import { createEvents, repeatEvents } from './dataset.ts';
import { type Measured, measure, type Surroundings } from './measure.ts';
import { type ComparisonResult, markdown, resultsOf } from './report.ts';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '2000000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: 'zstd,gzip,parquet,s3,azure,gcs,postgres,memory' },
    sizes: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const rows = Number(values.rows);
const sizes = (values.sizes ?? [rows / 4, rows, rows * 2.5].join(',')).split(',').map(Number);
const wanted = values.only.split(',');

/** How many events are generated at random. The others repeat them, at a distance that no compressor can use. */
const DRAWN = 500_000;
const PEERS = [
  ...['duckdb==1.5.5', 'duckdb-extension-postgres-scanner==1.5.5', 'connectorx==0.4.6'],
  ...['adbc-driver-postgresql==1.13.0', 'pyarrow==26.0.1'],
];

const loadText = () =>
  os
    .loadavg()
    .map((load) => load.toFixed(1))
    .join(' ');

async function compare(
  comparison: Comparison,
  admin: pg.Client,
  surroundings: Surroundings,
): Promise<ComparisonResult> {
  const results = new Map<string, Measured[]>(comparison.ways.map(({ name }) => [name, []]));
  const rounds = comparison.name === 'memory' ? 1 : Number(values.rounds);
  for (let round = 0; round < rounds; round += 1) {
    // Every other round runs backwards, so that no way always follows the same other one.
    for (const way of round % 2 === 0 ? comparison.ways : comparison.ways.toReversed()) {
      for (const statement of way.prepare ?? []) await admin.query(statement);
      const result = await measure(way.command, way.env ?? {}, surroundings);
      results.get(way.name)?.push(result);
      const cpu = `${result.client.toFixed(1)} + ${result.postgres.toFixed(1)} + ${result.server.toFixed(1)}`;
      console.error(
        `${way.name}: ${result.seconds.toFixed(2)} s, CPU ${cpu} s, ${Math.round(result.peak ?? 0)} MB`,
      );
    }
  }
  return resultsOf(comparison, results);
}

const begun = performance.now();
const python = findPythonPackages('export-peers', PEERS);
if (!python.found) console.error(`The peers in Python are left out: ${python.reason}`);
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const stateDir = mkdtempSync(path.join(os.tmpdir(), 'sluice-bench-'));
const folder = path.join(stateDir, 'files');
mkdirSync(folder);
const s3 = await startVersitygw(await freePort());
const azurite = await startAzurite(await freePort());
const google = await startGoogleStorage(await freePort());
const front = await startGoogleFront(google.endpoint);
const postgres = await startPostgres({
  dataDir: stateDir,
  cacheDir,
  port: 0,
});
const stop = async () => {
  await Promise.all([postgres.stop(), s3.stop(), azurite.stop(), front.stop(), google.stop()]);
  rmSync(stateDir, { recursive: true, force: true });
};
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stop().finally(() => process.exit(1)));
try {
  const { url } = postgres;
  await migrate(url);
  const start = new Date();
  const pool = createPool({ url, size: 1, name: 'bench' });
  await ensureEventPartitions(pool, start, 1);
  await pool.end();
  const client = new S3Client({
    ...{ endpoint: s3.endpoint, region: 'us-east-1', forcePathStyle: true, credentials: CREDENTIALS },
  });
  await client.send(new CreateBucketCommand({ Bucket: 'bench' }));
  client.destroy();
  const credential = new StorageSharedKeyCredential(ACCOUNT.name, ACCOUNT.key);
  await new BlobServiceClient(azurite.endpoint, credential).createContainer('bench');
  await fetch(`${google.endpoint}/storage/v1/b`, { method: 'POST', body: '{"name":"bench"}' });
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const drawn = Math.min(rows, DRAWN);
  await createEvents(admin, drawn, start);
  await repeatEvents(admin, drawn, rows, start);
  const { rows: found } = await admin.query(
    'select pg_backend_pid() as pid, (select count(*)::int from events) as count, (select avg(length(properties::text))::int from events) as bytes',
  );
  const said = `${found[0].count} events with ${found[0].bytes} bytes of properties`;
  console.error(`${said}, ${Math.round((performance.now() - begun) / 1000)} s`);
  const postmaster = processStat(found[0].pid)?.parent ?? 0;
  const place = {
    ...{ url, folder, start, rows, python: python.found },
    s3: { ...s3, ...CREDENTIALS, bucket: 'bench' },
    azure: { endpoint: azurite.endpoint, account: ACCOUNT.name, key: ACCOUNT.key, container: 'bench' },
    gcs: { endpoint: front.endpoint, keyFile: front.keyFile, bucket: 'bench' },
  };
  const servers: Record<string, number> = { azure: azurite.pid, gcs: google.pid };
  const results: ComparisonResult[] = [];
  for (const comparison of comparisons(place, sizes)) {
    if (!wanted.includes(comparison.name)) continue;
    // The memory comparison comes last, because it adds events that no other comparison may read.
    if (comparison.name === 'memory') await repeatEvents(admin, rows, Math.max(...sizes), start);
    results.push(
      await compare(comparison, admin, {
        ...{ folder, postmaster },
        server: servers[comparison.name] ?? s3.pid,
      }),
    );
  }
  await admin.end();
  const minutes = ((performance.now() - begun) / 60_000).toFixed(1);
  console.log(`${said}; ${minutes} minutes; load ${loadText()}\n`);
  console.log(markdown(results));
  if (values.write) {
    const about = { node: process.version, cpus: os.cpus().length, rows, rounds: Number(values.rounds) };
    const file = path.join(import.meta.dirname, 'results.json');
    writeFileSync(file, `${JSON.stringify({ ...about, load: loadText(), comparisons: results }, null, 2)}\n`);
  }
} finally {
  await stop();
}
