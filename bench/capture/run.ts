// `npm run bench -- capture [--seconds 5] [--warmup 4] [--rounds 3] [--batches 1,50,500] [--servers ingest,go,…]
// [--against folder] [--profile folder]`
// Compares Sluice's ingestion with the yardsticks in alternating rounds, with a Postgres of its own. Prints a table for
// RESULTS.md. To check the goals without person work, use `--servers api-anonymous,go` (three minutes); for persons,
// use `--servers api,api-set,go`.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { SEALING_SIZES, sealEventIds } from '../../db/event-id-sealing.ts';
import { SEARCH } from '../../db/event-indexes.ts';
import { listEventPartitions } from '../../db/event-partitions.ts';
import { summarizeOpenWeeks } from '../../db/event-weeks.ts';
import { migrate } from '../../db/migrate.ts';
import { createPool } from '../../db/pool.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { API_OPTIONS, freePort, ready } from '../api-process.ts';
import { buildGo } from '../go-program.ts';
import { childrenCpu, processStat, residentPeak } from '../process-stat.ts';

interface Load {
  eventsPerSecond: number;
  measuredEvents: number;
  acknowledged: number;
  failed: number;
  p50: number;
  p99: number;
}
interface Result extends Load {
  /** The CPU time for each event in microseconds, in the server and in Postgres. */
  serverCpu: number;
  postgresCpu: number;
  /** The peak memory in megabytes. */
  memory: number;
}

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    // A Node server is slow until its code is compiled, after about ten thousand requests.
    warmup: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    batches: { type: 'string', default: '1,50,500' },
    servers: { type: 'string', default: 'api,api-anonymous,api-set,ingest,go,go-copy,insert' },
    connections: { type: 'string', default: '64' },
    // So many ids of version 4 are known, and sealed, before the servers that say so are measured.
    known: { type: 'string', default: '0' },
    // Another checkout with its dependencies. Its API is measured as before, before-anonymous and before-set.
    against: { type: 'string' },
    // The folder for the CPU profiles of the Node servers.
    profile: { type: 'string' },
  },
});
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));

const nodeServer = (name: string) => ({
  command: [process.execPath, path.join(import.meta.dirname, 'server.ts')],
  env: { SERVER: name, NODE_ENV: 'production' },
});
const goServer = (env: Record<string, string>) => ({ command: [path.join(stateDir, 'capture-go')], env });
/** Returns the API as it ships, with the complete handling of a request. */
const apiOf = (folder: string) => ({
  command: [process.execPath, ...API_OPTIONS, path.join(folder, 'api/main.ts')],
  env: {
    NODE_ENV: 'production',
    SLUICE_HOST: '127.0.0.1',
    SLUICE_DATA_DIR: stateDir,
    SLUICE_LOG_LEVEL: 'error',
    TEMPORAL_ADDRESS: '127.0.0.1:1',
  },
  isApi: true,
});
const api = apiOf(root);
const before = values.against === undefined ? undefined : apiOf(path.resolve(values.against));
interface Server {
  command: string[];
  env: Record<string, string>;
  /** The kind of its events, see the load generator. */
  kind?: string;
  isApi?: boolean;
  /** What happens with the index `search` meanwhile: it is not there, or it is told once what was stored. By default neither. */
  search?: 'absent' | 'summarized';
  /** The version of the uuids of its events: 7 unless told. */
  uuids?: 4;
  /** Whether the ids of `--known` are known. By default, nobody asks for sealed ids in vain; `absent` leaves the question out. */
  knows?: true | 'absent';
}
const SERVERS: Record<string, Server> = {
  // `api` gets events of 10,000 known persons, `api-anonymous` gets events without a person, and in `api-set` each
  // event changes its person.
  api,
  'api-anonymous': { ...api, kind: 'anonymous' },
  'api-set': { ...api, kind: 'set' },
  // What the index by which few events of many are found costs.
  'api-no-search': { ...api, kind: 'anonymous', search: 'absent' },
  'api-search': { ...api, kind: 'anonymous', search: 'summarized' },
  // What a large ledger costs events whose ids are spread over it.
  'api-v4': { ...api, kind: 'anonymous', uuids: 4 },
  'api-v4-known': { ...api, kind: 'anonymous', uuids: 4, knows: true },
  'api-unasked': { ...api, kind: 'anonymous', knows: 'absent' },
  'api-known': { ...api, kind: 'anonymous', knows: true },
  ...(before && {
    before,
    'before-anonymous': { ...before, kind: 'anonymous' },
    'before-set': { ...before, kind: 'set' },
  }),
  ingest: nodeServer('ingest'),
  insert: nodeServer('insert'),
  echo: nodeServer('echo'),
  go: goServer({ LEDGER: 'insert', DECODE: 'raw' }),
  'go-copy': goServer({ LEDGER: 'copy', DECODE: 'raw' }),
  'go-map': goServer({ LEDGER: 'insert', DECODE: 'map' }),
};

const build = (folder: string, name: string): string => buildGo(folder, path.join(stateDir, name));

async function listening(port: number, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null)
      throw new Error(`the server ended with ${child.exitCode} before it listened`);
    const open = await new Promise<boolean>((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (open) return;
    await pause(50);
  }
}

async function measure(admin: pg.Client, postmaster: number, name: string, batch: number): Promise<Result> {
  const server = SERVERS[name];
  if (!server) throw new Error(`There is no server "${name}"; there are ${Object.keys(SERVERS).join(', ')}.`);
  await admin.query('truncate events, event_ids, event_weeks');
  await admin.query(`update event_id_segments set sealed_at = ${server.knows === true ? 'now()' : 'null'}`);
  const state = server.knows === 'absent' ? 'disable' : 'enable';
  await admin.query(`alter table event_ids ${state} trigger refuse_sealed`);
  await admin.query('checkpoint');
  if (server.search === 'absent')
    await eachPartition((one) => admin.query(`drop index ${one}_${SEARCH.name}`));
  try {
    return await measureServer(admin, postmaster, name, server, batch);
  } finally {
    if (server.search === 'absent')
      await eachPartition((one) => admin.query(`create index ${one}_${SEARCH.name} on ${one} ${SEARCH.of}`));
  }
}

async function eachPartition(work: (partition: string) => Promise<unknown>): Promise<void> {
  for (const { name } of await listEventPartitions(pool)) await work(name);
}

async function measureServer(
  admin: pg.Client,
  postmaster: number,
  name: string,
  server: Server,
  batch: number,
): Promise<Result> {
  const port = await freePort();
  const [program, ...args] = server.command as [string, ...string[]];
  const isProfiled = values.profile !== undefined && program === process.execPath;
  if (isProfiled) args.unshift('--cpu-prof', `--cpu-prof-name=${name}-${batch}.cpuprofile`);
  if (isProfiled) args.unshift('--cpu-prof-dir', path.resolve(values.profile as string));
  const child = spawn(program, args, {
    env: {
      ...process.env,
      ...server.env,
      DATABASE_URL: databaseUrl,
      ADDRESS: `127.0.0.1:${port}`,
      PORT: String(port),
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  try {
    await listening(port, child);
    if (server.isApi) await ready(port);
    const load = spawn(path.join(stateDir, 'load'), [
      ...[
        '-host',
        `127.0.0.1:${port}`,
        '-path',
        batch === 1 ? '/i/v0/e/' : '/batch/',
        '-batch',
        String(batch),
        '-kind',
        server.kind ?? 'plain',
        '-version',
        String(server.uuids ?? 7),
      ],
      ...[
        '-connections',
        values.connections,
        '-warmup',
        `${values.warmup}s`,
        '-duration',
        `${values.seconds}s`,
        '-marks',
      ],
    ]);
    let [output, before, after] = ['', [0, 0], [0, 0]];
    let summary: Promise<unknown> | undefined;
    const work = { signal: new AbortController().signal, beat: () => undefined };
    const usage = () => [
      processStat(child.pid as number)?.own ?? 0,
      (processStat(postmaster)?.own ?? 0) + childrenCpu(postmaster),
    ];
    load.stderr.pipe(process.stderr);
    load.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('begin')) {
        before = usage();
        if (server.search === 'summarized') summary = summarizeOpenWeeks(pool, work);
      }
      if (text.includes('end')) after = usage();
      output += text;
    });
    await new Promise((resolve) => load.once('close', resolve));
    await summary;
    const result = JSON.parse(output.slice(output.indexOf('{'))) as Load;
    const { rows } = await admin.query(
      'select (select count(*)::int from events), (select count(*)::int as ids from event_ids)',
    );
    if (name !== 'echo' && (rows[0].count !== result.acknowledged || rows[0].ids !== result.acknowledged)) {
      throw new Error(
        `${name}: ${result.acknowledged} events acknowledged, ${rows[0].count} stored, ${rows[0].ids} ids`,
      );
    }
    const perEvent = (index: 0 | 1) =>
      (((after[index] as number) - (before[index] as number)) / result.measuredEvents) * 1e6;
    return {
      ...result,
      serverCpu: perEvent(0),
      postgresCpu: perEvent(1),
      memory: residentPeak(child.pid as number),
    };
  } finally {
    // A process only writes its profile if it exits by itself.
    child.kill(isProfiled ? 'SIGTERM' : 'SIGKILL');
    await gone;
  }
}

/** Makes sealed ids, as maintenance would have left them. */
async function knowIds(admin: pg.Client, count: number): Promise<void> {
  for (let [number, left] = [1, count]; left > 0; number += 1) {
    const ids = Math.min(left, SEALING_SIZES.segment);
    await admin.query(
      `insert into event_id_blocks (segment, project_id, first, ids)
       select ${number}, 1, (array_agg(uuid order by uuid))[1],
         string_agg(uuid_send(uuid) || timestamptz_send(now()), ''::bytea order by uuid)
       from (select uuid, (row_number() over (order by uuid) - 1) / 336 as block
         from (select gen_random_uuid() as uuid from generate_series(1, ${ids})) as ids) as placed
       group by block;
       insert into event_id_segments (number, ids, filled_at, sealed_at, removed_at) values (${number}, ${ids}, now(), now(), now())`,
    );
    left -= ids;
    console.error(`${left} ids left to make`);
  }
  if (count === 0) return;
  await sealEventIds(pool, { signal: new AbortController().signal, beat: () => undefined });
  await admin.query(
    'vacuum (analyze) event_id_blocks, event_id_filters, event_id_segments, event_id_filter_sets',
  );
  const { rows } = await admin.query(
    `select sum(pg_total_relation_size(name))::float8 / $1::float8 as bytes
     from unnest('{event_id_blocks,event_id_filters,event_id_segments,event_id_filter_sets}'::regclass[]) as name`,
    [count],
  );
  console.error(`${count} ids are known, in ${rows[0].bytes.toFixed(1)} bytes each`);
}

const ratio = (one: number, other: number) => (one / other ? (one / other).toFixed(2) : '');
const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] as number;

build('bench/yardsticks/capture-go', 'capture-go');
build('bench/capture/load', 'load');
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
// Postgres has the settings that it ships with.
const postgres = await startPostgres({
  dataDir: stateDir,
  cacheDir,
  port: 0,
});
const databaseUrl = postgres.url;
const pool = createPool({ url: databaseUrl, size: 2, name: 'bench' });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void postgres.stop().finally(() => process.exit(1)));
}
try {
  await migrate(databaseUrl);
  const admin = new pg.Client({ connectionString: databaseUrl });
  await admin.connect();
  await admin.query(
    `insert into organizations (id, name, slug) values ('00000000-0000-7000-8000-000000000000', 'bench', 'bench');
     insert into projects (uuid, organization_id, name, api_token)
     values (gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'bench', 'phc_bench')`,
  );
  const { rows } = await admin.query('select pg_backend_pid() as pid');
  const postmaster = processStat(rows[0].pid)?.parent ?? 0;
  await knowIds(admin, Number(values.known));
  const names = values.servers.split(',');
  const table: string[] = [
    '| batch | server | events/s | p50 ms | p99 ms | CPU µs/event server + Postgres | peak MB | × go events/s | × go per CPU |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
  ];
  for (const batch of values.batches.split(',').map(Number)) {
    const results = new Map<string, Result[]>(names.map((name) => [name, []]));
    for (let round = 0; round < Number(values.rounds); round += 1) {
      // Every other round runs backwards, so that no server always follows the same other one.
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const result = await measure(admin, postmaster, name, batch);
        results.get(name)?.push(result);
        console.error(
          `batch ${batch} ${name}: ${Math.round(result.eventsPerSecond)}/s p99 ${result.p99.toFixed(1)} cpu ${result.serverCpu.toFixed(1)}+${result.postgresCpu.toFixed(1)} failed ${result.failed}`,
        );
      }
    }
    const of = (name: string, key: keyof Result) => median((results.get(name) ?? []).map((one) => one[key]));
    const total = (name: string) =>
      median((results.get(name) ?? []).map((one) => one.serverCpu + one.postgresCpu));
    for (const name of names) {
      const speeds = (results.get(name) ?? []).map((one) => Math.round(one.eventsPerSecond));
      table.push(
        `| ${batch} | ${name} | ${Math.round(of(name, 'eventsPerSecond')).toLocaleString('en')} (${Math.min(...speeds)}–${Math.max(...speeds)}) | ` +
          `${of(name, 'p50').toFixed(1)} | ${of(name, 'p99').toFixed(1)} | ${of(name, 'serverCpu').toFixed(1)} + ${of(name, 'postgresCpu').toFixed(1)} | ` +
          `${Math.round(of(name, 'memory'))} | ${ratio(of(name, 'eventsPerSecond'), of('go', 'eventsPerSecond'))} | ${ratio(total('go'), total(name))} |`,
      );
    }
  }
  await admin.end();
  await pool.end();
  console.log(table.join('\n'));
} finally {
  await postgres.stop();
  if (existsSync(stateDir)) rmSync(stateDir, { recursive: true, force: true });
}
