// `npm run bench -- real-traffic [--persons 1000000] [--seconds 40] [--warmup 6] [--rounds 2] [--servers api,go]
// [--uniform] [--against folder]`
// Compares the API as it ships with the Go yardstick, which stores the same events without any work on persons, on traffic of
// visitors (bench/capture/load/sessions.go). Both get the same requests in alternating rounds, on a Postgres of their own with the
// settings that it ships with. A checkpoint happens at the beginning and in the middle of each measurement. Prints a table for
// RESULTS.md. The full size is `--persons 5000000`. `--against` measures the API of another checkout too, as `before`.
// Beside the API, copied properties are carried into persons as maintenance does it, but much more often: a visit of the benchmark
// does not last for minutes. What is left at the end is carried after the measurement, and counted too.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { carryCopied } from '../../capture/carry.ts';
import { loadConfig } from '../../config.ts';
import { createPool } from '../../db/pool.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { freePort, startApi } from '../api-process.ts';
import { buildGo } from '../go-program.ts';
import { childrenCpu, processStat, residentPeak } from '../process-stat.ts';
import { fillPersons } from './persons.ts';

const { values } = parseArgs({
  options: {
    persons: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '40' },
    warmup: { type: 'string', default: '6' },
    rounds: { type: 'string', default: '2' },
    servers: { type: 'string', default: 'api,go' },
    connections: { type: 'string', default: '64' },
    // How many events are prepared for each run: more than a server takes in its time.
    events: { type: 'string', default: '900000' },
    // The stress case: all persons come equally often.
    uniform: { type: 'boolean', default: false },
    // Another checkout with its dependencies. Its API has a database of its own and is measured as `before`.
    against: { type: 'string' },
    // How often copied properties are carried into persons.
    carry: { type: 'string', default: '20' },
  },
});
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const seconds = Number(values.seconds);
const warmup = Number(values.warmup);

interface Load {
  eventsPerSecond: number;
  measuredEvents: number;
  acknowledged: number;
  failed: number;
  exhausted: boolean;
  p50: number;
  p99: number;
}
interface Result extends Load {
  /** Writes of persons for each event, in the transactions of events. */
  writes: number;
  /** Writes of persons for each event when copied properties are carried into them. */
  carried: number;
  /** Bytes of the log for each event. */
  logBytes: number;
  /** Bytes of the stored event, with its indexes and its id. */
  diskBytes: number;
  serverCpu: number;
  postgresCpu: number;
  memory: number;
}

/** A checkout and the database that its migrations have made. */
interface Side {
  folder: string;
  url: string;
  admin: pg.Client;
}

/** Migrates a database as a checkout does, and connects. */
async function openSide(folder: string, url: string): Promise<Side> {
  const { migrate } = (await import(
    path.join(folder, 'db/migrate.ts')
  )) as typeof import('../../db/migrate.ts');
  await migrate(url);
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  return { folder, url, admin };
}

/** Fills a database, and one more for another checkout: this one then has a copy of it, as after an upgrade. */
async function openSides(url: string): Promise<{ now: Side; before?: Side }> {
  const first = await openSide(values.against === undefined ? root : path.resolve(values.against), url);
  await fillPersons(first.admin, Number(values.persons));
  if (values.against === undefined) return { now: first };
  await first.admin.end();
  const copy = new URL(url);
  copy.pathname = '/now';
  const maintenance = new URL(url);
  maintenance.pathname = '/postgres';
  const admin = new pg.Client({ connectionString: maintenance.href });
  await admin.connect();
  await admin.query(`create database now template ${pg.escapeIdentifier(new URL(url).pathname.slice(1))}`);
  await admin.end();
  return { before: await openSide(first.folder, url), now: await openSide(root, copy.href) };
}

async function startGo(url: string, children: ChildProcess[]): Promise<{ port: number; pid: number }> {
  const port = await freePort();
  const child = spawn(path.join(stateDir, 'capture-go'), {
    env: { ...process.env, LEDGER: 'insert', DECODE: 'raw', DATABASE_URL: url, ADDRESS: `127.0.0.1:${port}` },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  children.push(child);
  while (
    await fetch(`http://127.0.0.1:${port}/`).then(
      () => false,
      () => true,
    )
  )
    await pause(50);
  return { port, pid: child.pid as number };
}

async function one(admin: pg.Client, text: string): Promise<number> {
  const { rows } = await admin.query(`select (${text})::float8 as value`);
  return rows[0].value;
}

const CHANGES = `select coalesce(sum(n_tup_upd + n_tup_ins), 0) from pg_stat_user_tables where relname = 'persons'`;
const LOG = `pg_current_wal_lsn() - '0/0'`;

async function measure(name: string, seed: number): Promise<Result> {
  const side = name === 'before' ? (sides.before as Side) : sides.now;
  const { admin } = side;
  await admin.query('truncate events, event_ids, event_weeks');
  await admin.query('checkpoint');
  const children: ChildProcess[] = [];
  const end = async () => {
    for (const child of children.splice(0)) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    }
  };
  try {
    const { port, pid } =
      name === 'go'
        ? await startGo(side.url, children)
        : await startApi({ databaseUrl: side.url, stateDir, children, folder: side.folder });
    const changesBefore = await one(admin, CHANGES);
    const carrying = name === 'api' ? startCarrying(side.url) : undefined;
    const load = spawn(path.join(stateDir, 'load'), [
      ...['-kind', 'sessions', '-host', `127.0.0.1:${port}`, '-connections', values.connections],
      ...['-persons', values.persons, '-events', values.events, '-seed', String(seed)],
      ...[
        '-warmup',
        `${warmup}s`,
        '-duration',
        `${seconds}s`,
        '-marks',
        ...(values.uniform ? ['-uniform'] : []),
      ],
    ]);
    let output = '';
    let [before, after] = [
      [0, 0],
      [0, 0],
    ];
    const usage = () => [
      processStat(pid)?.own ?? 0,
      (processStat(postmaster)?.own ?? 0) + childrenCpu(postmaster),
    ];
    let log: Promise<number[]> | undefined;
    load.stderr.pipe(process.stderr);
    load.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('begin')) {
        before = usage();
        log = (async () => {
          const from = await one(admin, LOG);
          await admin.query('checkpoint');
          await pause((seconds * 1000) / 2);
          await admin.query('checkpoint');
          return [from];
        })();
      }
      if (text.includes('end')) {
        after = usage();
        log = log?.then(async ([from]) => [from as number, await one(admin, LOG)]);
      }
      output += text;
    });
    await new Promise((resolve) => load.once('close', resolve));
    const [from = 0, to = 0] = (await log) ?? [];
    const result = JSON.parse(output.slice(output.indexOf('{'))) as Load;
    const memory = residentPeak(pid);
    const began = performance.now();
    const carried = (await carrying?.stop()) ?? 0;
    if (carrying)
      console.error(`the rest was carried in ${((performance.now() - began) / 1000).toFixed(1)} s`);
    // Postgres counts the writes of a connection when it ends.
    await end();
    await pause(1_500);
    const { rows } = await admin.query(
      'select (select count(*)::int from events), (select count(*)::int as ids from event_ids)',
    );
    if (rows[0].count !== result.acknowledged || rows[0].ids !== result.acknowledged) {
      throw new Error(
        `${name}: ${result.acknowledged} events acknowledged, ${rows[0].count} stored, ${rows[0].ids} ids`,
      );
    }
    if (result.exhausted) throw new Error('There were too few events for the time: say more with --events.');
    const disk = await one(
      admin,
      `select pg_total_relation_size('event_ids') + (
         select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'events'::regclass)`,
    );
    const perEvent = (index: 0 | 1) =>
      (((after[index] as number) - (before[index] as number)) / result.measuredEvents) * 1e6;
    return {
      ...result,
      ...{ serverCpu: perEvent(0), postgresCpu: perEvent(1), memory },
      writes: ((await one(admin, CHANGES)) - changesBefore - carried) / result.acknowledged,
      carried: carried / result.acknowledged,
      logBytes: (to - from) / result.measuredEvents,
      diskBytes: disk / result.acknowledged,
    };
  } finally {
    await end();
  }
}

/** Carries copied properties into persons until it is stopped, and then what is left. */
function startCarrying(url: string): { stop(): Promise<number> } {
  const pool = createPool({ url, size: 2, name: 'carry' });
  const work = { signal: new AbortController().signal, beat: () => undefined };
  const stopping = new AbortController();
  let carried = 0;
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await pause(Number(values.carry) * 1_000, undefined, { signal: stopping.signal }).catch(
        () => undefined,
      );
      carried += await carryCopied(pool, work, { patience: 0, horizon: 0 });
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await running;
      carried += await carryCopied(pool, work, { patience: 0, horizon: 0 });
      await pool.end();
      return carried;
    },
  };
}

const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] as number;

buildGo('bench/yardsticks/capture-go', path.join(stateDir, 'capture-go'));
buildGo('bench/capture/load', path.join(stateDir, 'load'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void postgres.stop().finally(() => process.exit(1)));
}
const sides = await openSides(postgres.url);
const { rows: backends } = await sides.now.admin.query('select pg_backend_pid() as pid');
const postmaster = processStat(backends[0].pid)?.parent ?? 0;
try {
  const names = [...values.servers.split(','), ...(sides.before ? ['before'] : [])];
  const results = new Map<string, Result[]>(names.map((name) => [name, []]));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    // Every other round runs backwards, so that no server always follows the same other one.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const result = await measure(name, round + 1);
      results.get(name)?.push(result);
      console.error(
        `${name}: ${Math.round(result.eventsPerSecond)}/s p99 ${result.p99.toFixed(0)} writes ${result.writes.toFixed(3)}+${result.carried.toFixed(3)} log ${Math.round(result.logBytes)} cpu ${result.serverCpu.toFixed(1)}+${result.postgresCpu.toFixed(1)} failed ${result.failed}`,
      );
    }
  }
  const of = (name: string, key: Exclude<keyof Result, 'exhausted'>) =>
    median((results.get(name) ?? []).map((result) => result[key]));
  console.log(
    [
      '| server | events/s | × go | p50 ms | p99 ms | writes of persons per event, + carried | log bytes per event | disk bytes per event | CPU µs/event server + Postgres | peak MB |',
      '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
      ...names.map((name) => {
        const speeds = (results.get(name) ?? []).map((result) => Math.round(result.eventsPerSecond));
        const times = results.has('go')
          ? (of(name, 'eventsPerSecond') / of('go', 'eventsPerSecond')).toFixed(2)
          : '';
        return (
          `| ${name} | ${Math.round(of(name, 'eventsPerSecond')).toLocaleString('en')} (${Math.min(...speeds)}–${Math.max(...speeds)}) | ${times} | ` +
          `${of(name, 'p50').toFixed(0)} | ${of(name, 'p99').toFixed(0)} | ${of(name, 'writes').toFixed(3)} + ${of(name, 'carried').toFixed(3)} | ${Math.round(of(name, 'logBytes')).toLocaleString('en')} | ` +
          `${Math.round(of(name, 'diskBytes')).toLocaleString('en')} | ` +
          `${of(name, 'serverCpu').toFixed(1)} + ${of(name, 'postgresCpu').toFixed(1)} | ${Math.round(of(name, 'memory'))} |`
        );
      }),
    ].join('\n'),
  );
} finally {
  for (const side of Object.values(sides)) await side.admin.end();
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
