// `node bench/export-formats/run.ts [--rows 2000000] [--rounds 3] [--ways zstd,gzip,parquet,memory] [--url postgres://…]`
// Exports of the product's own table of events by Sluice and by others, alternating. Prints tables for RESULTS.md.
// With --url, of a database that has the events already.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { findPythonPackages } from '../../test/support/python-packages.ts';
import { QUERY } from './columns.ts';
import { createEvents } from './dataset.ts';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '2000000' },
    rounds: { type: 'string', default: '3' },
    ways: { type: 'string', default: 'zstd,gzip,parquet,memory' },
    sizes: { type: 'string', default: '500000,2000000' },
    url: { type: 'string' },
  },
});

interface Result {
  seconds: number;
  /** Seconds of CPU. */
  client: number;
  postgres: number;
  /** Megabytes: of all its processes at once; and, of Sluice, how much more than before the export. */
  memory: number;
  more: number | undefined;
  megabytes: number;
}

const TICKS = 100;
const folder = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const text = QUERY.replaceAll(/\s+/g, ' ');
const python = findPythonPackages('export-peers', [
  'duckdb==1.5.5',
  'duckdb-extension-postgres-scanner==1.5.5',
  'connectorx==0.4.6',
  'adbc-driver-postgresql==1.13.0',
  'pyarrow==26.0.1',
]);
if (!python.found) console.error(`The peers in Python are left out: ${python.reason}`);

const sluice =
  (format: string, compression: string, level = '', rows = '') =>
  (url: string) =>
    `'${process.execPath}' '${path.join(import.meta.dirname, 'encode.ts')}' '${url}' '${folder}' ${format} ${compression} '${level}' ${rows}`;
const psql = (compress: string) => (url: string) =>
  `psql '${url}' -qc 'copy (select row_to_json(e) from (${text}) e) to stdout' | ${compress} > '${folder}/psql'`;
const peer = (name: string) => (url: string) =>
  `PYTHONPATH='${python.found}' python3 '${path.join(import.meta.dirname, 'peers.py')}' ${name} '${url}' '${text}' '${folder}/${name}'`;

/** What is compared with what; the yardstick comes last. */
const WAYS: Record<string, Record<string, (url: string) => string>> = {
  zstd: {
    'Sluice JSON lines, zstd': sluice('JSONLines', 'zstd'),
    'psql row_to_json, zstd -3': psql('zstd -3 -q'),
  },
  gzip: {
    'Sluice JSON lines, gzip 1': sluice('JSONLines', 'gzip', '1'),
    'psql row_to_json, gzip -1': psql('gzip -1'),
  },
  parquet: {
    'Sluice Parquet, zstd': sluice('Parquet', 'zstd'),
    ...(python.found && {
      'ADBC, pyarrow, zstd': peer('adbc'),
      'ConnectorX stream, pyarrow, zstd': peer('connectorx'),
      'DuckDB postgres scanner, zstd': peer('duckdb'),
    }),
  },
  memory: Object.fromEntries(
    values.sizes.split(',').flatMap((size) => [
      [`Sluice JSON lines, zstd, ${size} rows`, sluice('JSONLines', 'zstd', '', size)],
      [`Sluice JSON lines, gzip 1, ${size} rows`, sluice('JSONLines', 'gzip', '1', size)],
      [`Sluice Parquet, zstd, ${size} rows`, sluice('Parquet', 'zstd', '', size)],
    ]),
  ),
};

function stat(pid: number | string): { parent: number; ticks: number; reaped: number } | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
      .map(Number);
    const at = (index: number) => fields[index] as number;
    return { parent: at(1), ticks: at(11) + at(12), reaped: at(13) + at(14) };
  } catch {
    return undefined;
  }
}

const processes = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name));

/** Seconds of CPU of a process's children, those that ended and those that have not. */
function childrenCpu(pid: number): number {
  let ticks = stat(pid)?.reaped ?? 0;
  for (const entry of processes()) {
    const child = stat(entry);
    if (child?.parent === pid) ticks += child.ticks;
  }
  return ticks / TICKS;
}

/** Megabytes of a process and everything it started. */
function memoryOf(pid: number): number {
  const parents = new Map(processes().map((entry) => [Number(entry), stat(entry)?.parent]));
  let total = 0;
  for (const entry of parents.keys()) {
    let at: number | undefined = entry;
    while (at !== undefined && at > 1 && at !== pid) at = parents.get(at);
    if (at !== pid) continue;
    try {
      total += Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${entry}/status`, 'utf8'))?.[1] ?? 0) / 1024;
    } catch {
      // It has ended.
    }
  }
  return total;
}

async function measure(command: string, postmaster: number): Promise<Result> {
  for (const name of readdirSync(folder)) rmSync(path.join(folder, name), { recursive: true });
  const before = [stat(process.pid)?.reaped ?? 0, childrenCpu(postmaster)] as const;
  const start = performance.now();
  const child = spawn('bash', ['-o', 'pipefail', '-c', command], { stdio: ['ignore', 'pipe', 'inherit'] });
  let memory = 0;
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const timer = setInterval(() => {
    memory = Math.max(memory, memoryOf(child.pid as number));
  }, 100);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(timer);
  if (code !== 0) throw new Error(`This ended with ${code}: ${command}`);
  const seconds = (performance.now() - start) / 1000;
  const told = output ? (JSON.parse(output) as { idle: number; peak: number }) : undefined;
  const sizes = readdirSync(folder).map((name) => statSync(path.join(folder, name)).size);
  return {
    seconds,
    client: ((stat(process.pid)?.reaped ?? 0) - before[0]) / TICKS,
    postgres: childrenCpu(postmaster) - before[1],
    memory: told?.peak ?? memory,
    more: told && told.peak - told.idle,
    megabytes: sizes.reduce((sum, size) => sum + size, 0) / 1e6,
  };
}

const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number;

async function compare(name: string, url: string, rows: number, postmaster: number): Promise<string[]> {
  const ways = WAYS[name];
  if (!ways) throw new Error(`There is no comparison "${name}"; there are ${Object.keys(WAYS).join(', ')}.`);
  const names = Object.keys(ways);
  const results = new Map<string, Result[]>(names.map((way) => [way, []]));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    // Every other round backwards, so that none always follows the same other.
    for (const way of round % 2 === 0 ? names : names.toReversed()) {
      const result = await measure((ways[way] as (url: string) => string)(url), postmaster);
      results.get(way)?.push(result);
      console.error(`${way}: ${JSON.stringify(result)}`);
    }
  }
  const of = (way: string, key: (one: Result) => number) => median((results.get(way) ?? []).map(key));
  const yardstick = names.at(-1) as string;
  const rowsOf = (way: string) => Number(/(\d+) rows$/.exec(way)?.[1] ?? rows);
  const lines = names.map((way) => {
    const speeds = (results.get(way) ?? []).map(({ seconds }) => Math.round(rowsOf(way) / seconds));
    const more =
      results.get(way)?.[0]?.more === undefined ? '' : ` (+${Math.round(of(way, (one) => one.more ?? 0))})`;
    const cpu = (key: 'client' | 'postgres') => ((of(way, (one) => one[key]) / rowsOf(way)) * 1e6).toFixed(2);
    const total = (other: string) => of(other, (one) => one.client + one.postgres) / rowsOf(other);
    const times =
      median(speeds) /
      median((results.get(yardstick) ?? []).map(({ seconds }) => Math.round(rowsOf(yardstick) / seconds)));
    return (
      `| ${way} | ${median(speeds).toLocaleString('en')} (${Math.min(...speeds)}–${Math.max(...speeds)}) | ` +
      `${cpu('client')} + ${cpu('postgres')} | ${Math.round(of(way, (one) => one.memory))}${more} | ` +
      `${Math.round(of(way, (one) => one.megabytes))} | ${times.toFixed(2)} | ${(total(yardstick) / total(way)).toFixed(2)} |`
    );
  });
  return [
    '| way | rows/s | CPU µs/row, client + Postgres | peak MB (above idle) | written MB | × rows/s | × per CPU |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...lines,
    '',
  ];
}

const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-postgres-'));
const settings = { shared_buffers: '1GB', max_wal_size: '8GB' };
const postgres = values.url
  ? undefined
  : await startPostgres({ dataDir: stateDir, cacheDir, port: 0, settings });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void (postgres?.stop() ?? Promise.resolve()).finally(() => process.exit(1)));
}
try {
  const url = values.url ?? (postgres?.url as string);
  const admin = new pg.Client({ connectionString: url });
  if (postgres) await migrate(url);
  await admin.connect();
  if (postgres) await createEvents(admin, Number(values.rows));
  const { rows } = await admin.query(
    'select pg_backend_pid() as pid, (select count(*)::int from events) as count',
  );
  const postmaster = stat(rows[0].pid)?.parent ?? 0;
  console.log(`${rows[0].count} events\n`);
  for (const name of values.ways.split(',')) {
    const table = await compare(name, url, rows[0].count, postmaster);
    console.log(table.join('\n'));
  }
  await admin.end();
} finally {
  await postgres?.stop();
  for (const path of [folder, stateDir]) rmSync(path, { recursive: true, force: true });
}
