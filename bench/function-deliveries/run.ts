// `npm run bench -- function-deliveries [--count 40000] [--places 256] [--rounds 3]
//   [--kinds bare,row,sluice,snapshot,bullmq,graphile]`
// Compares deliveries of functions, each durably recorded with its result, log and metrics, with a loop that only makes the
// same requests, with a queue that takes one row in each transaction, with BullMQ (Redis with `appendfsync always`; it must
// be on the PATH), and with graphile-worker. `snapshot`: deliveries while a transaction stays open that has seen the queue
// full, as an export's may, so that nothing which they delete can be cleaned up.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { freePort } from '../api-process.ts';
import { storeFunctions } from '../function-dispatch/functions.ts';
import { childrenCpu, processStat } from '../process-stat.ts';

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '40000' },
    places: { type: 'string', default: '256' },
    rounds: { type: 'string', default: '3' },
    kinds: { type: 'string', default: 'bare,row,sluice' },
    profile: { type: 'string' },
  },
});
const count = Number(values.count);
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const port = await freePort();
const target = `http://127.0.0.1:${port}/`;
const env = {
  ...process.env,
  ...{
    NODE_ENV: 'production',
    SLUICE_DATA_DIR: stateDir,
    SLUICE_LOG_LEVEL: 'error',
    TARGET: target,
    TARGET_PORT: String(port),
  },
  ...{
    DATABASE_URL: postgres.url,
    SLUICE_EGRESS_ALLOW: '127.0.0.1',
    SLUICE_FUNCTION_CONCURRENCY: values.places,
  },
  ...{ COUNT: values.count, PLACES: values.places },
};
const children: ChildProcess[] = [];
const start = (file: string, more: Record<string, string> = {}, options: string[] = []) => {
  const child = spawn(process.execPath, [...options, path.join(root, file)], {
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
};
start('bench/function-deliveries/target.ts');

async function measured(child: ChildProcess): Promise<number> {
  let output = '';
  child.stdout?.on('data', (text) => {
    output += text;
  });
  await new Promise((resolve) => child.once('close', resolve));
  const { seconds, cpu } = JSON.parse(output.slice(output.lastIndexOf('{')));
  console.error(`CPU µs for each: process ${((cpu / count) * 1e6).toFixed(0)}`);
  return count / seconds;
}

const yardstick = (kind: string) => measured(start('bench/function-deliveries/yardstick.ts', { KIND: kind }));

/** Other queues have their packages in a folder of their own. */
let queues: string | undefined;
function queue(kind: string, more: Record<string, string> = {}): Promise<number> {
  if (!queues) {
    queues = path.join(stateDir, 'queues');
    cpSync(path.join(root, 'bench/yardsticks/queues'), queues, { recursive: true });
    execFileSync('npm', ['install', '--no-audit', '--no-fund'], { cwd: queues, stdio: 'inherit' });
  }
  const child = spawn(process.execPath, [path.join(queues, 'run.js')], {
    env: { ...env, KIND: kind, ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return measured(child);
}

async function bullmq(): Promise<number> {
  const redisPort = await freePort();
  const dir = path.join(stateDir, `redis-${redisPort}`);
  mkdirSync(dir);
  const options = ['--port', String(redisPort), '--dir', dir, '--save', '', '--appendonly', 'yes'];
  const redis = spawn('redis-server', [...options, '--appendfsync', 'always'], { stdio: 'ignore' });
  children.push(redis);
  await pause(500);
  const rate = await queue('bullmq', { REDIS_PORT: String(redisPort) });
  console.error(
    `CPU µs for each: Redis ${(((processStat(redis.pid as number)?.own ?? 0) / count) * 1e6).toFixed(0)}`,
  );
  redis.kill('SIGKILL');
  return rate;
}

async function graphile(admin: pg.Client): Promise<number> {
  await admin.query('drop schema if exists graphile_worker cascade');
  return queue('graphile');
}

async function sluice(admin: pg.Client): Promise<number> {
  await admin.query(
    'truncate events, event_ids, functions, function_queue, function_invocations, function_logs, function_metrics',
  );
  await storeFunctions(admin, {
    ...{ projectId: 1, url: target, filters: [{}] },
    hog: "fetch(inputs.url, {'body': {'id': event.uuid, 'text': event.properties.text}})",
  });
  await admin.query(
    `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
       elements_chain, person_id, person_mode, person_properties)
     select 1, gen_random_uuid(), clock_timestamp(), now(), now(), false, 'paid', 'user-' || n % 1000,
       json_build_object('text', repeat('x', 900), 'plan', 'premium', 'n', n), '', gen_random_uuid(), 'full', '{}'
     from generate_series(1, $1::int) n`,
    [count],
  );
  await admin.query('vacuum analyze events');
  await admin.query(
    `insert into function_queue (id, project_id, function_id, version, event_uuid, event_timestamp, distinct_id, person_id, clock, seed)
     select gen_random_uuid(), 1, f.id, f.version, e.uuid, e.timestamp, e.distinct_id, e.person_id, now(), 1
     from events e, functions f`,
  );
  await admin.query('checkpoint');
  const options = values.profile ? ['--cpu-prof', '--cpu-prof-dir', path.resolve(values.profile)] : [];
  const worker = start('bench/function-dispatch/worker.ts', {}, options);
  const left = async () =>
    (await admin.query('select count(*)::int as left from function_queue')).rows[0].left as number;
  try {
    // What a process needs to start does not count, nor what its threads need to compile.
    let begun = count;
    while (begun > count * 0.9) {
      begun = await left();
      await pause(100);
    }
    const began = performance.now();
    const { rows: backend } = await admin.query('select pg_backend_pid() as pid');
    const postmaster = processStat(backend[0].pid)?.parent ?? 0;
    const usage = () => [
      processStat(worker.pid as number)?.own ?? 0,
      (processStat(postmaster)?.own ?? 0) + childrenCpu(postmaster),
    ];
    const before = usage();
    while ((await left()) > 0) await pause(100);
    const seconds = (performance.now() - began) / 1_000;
    const used = usage().map((one, index) => (((one - (before[index] as number)) / begun) * 1e6).toFixed(0));
    console.error(`CPU µs for each: worker ${used[0]}, Postgres ${used[1]}`);
    const { rows } = await admin.query(
      `select (select count(*)::int from function_invocations where status = 'succeeded') as ended,
         (select count(*)::int from function_logs) as logs,
         (select sum(count)::int from function_metrics where name = 'succeeded') as counted`,
    );
    if (rows[0].ended !== count || rows[0].logs !== count || rows[0].counted !== count) {
      throw new Error(`${count} deliveries, but ${JSON.stringify(rows[0])}`);
    }
    return begun / seconds;
  } finally {
    const gone = new Promise((resolve) => worker.once('exit', resolve));
    worker.kill('SIGTERM');
    await gone;
  }
}

async function snapshot(admin: pg.Client): Promise<number> {
  const reader = new pg.Client({ connectionString: postgres.url });
  await reader.connect();
  await reader.query('begin isolation level repeatable read; select pg_current_snapshot()');
  try {
    return await sluice(admin);
  } finally {
    await reader.end();
  }
}

async function row(admin: pg.Client): Promise<number> {
  await admin.query('drop table if exists bench_queue, bench_done');
  await admin.query('create table bench_queue (id bigint primary key, body text)');
  await admin.query('create table bench_done (id bigint primary key, status int)');
  await admin.query(
    `insert into bench_queue select n, json_build_object('id', n, 'text', repeat('x', 980)) from generate_series(1, $1::int) n`,
    [count],
  );
  return yardstick('row');
}

const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] as number;

try {
  await migrate(postgres.url);
  const admin = new pg.Client({ connectionString: postgres.url });
  admin.on('error', () => undefined);
  await admin.connect();
  await admin.query(
    `insert into organizations (id, name, slug) values ('00000000-0000-7000-8000-000000000000', 'bench', 'bench');
     insert into projects (uuid, organization_id, name, api_token)
     values (gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'bench', 'phc_bench')`,
  );
  const ways: Record<string, () => Promise<number>> = {
    bullmq,
    graphile: () => graphile(admin),
    bare: () => yardstick('bare'),
    row: () => row(admin),
    sluice: () => sluice(admin),
    snapshot: () => snapshot(admin),
  };
  const kinds = values.kinds.split(',');
  const results = new Map<string, number[]>(kinds.map((kind) => [kind, []]));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const kind of round % 2 === 0 ? kinds : kinds.toReversed()) {
      const rate = await (ways[kind] as () => Promise<number>)();
      results.get(kind)?.push(rate);
      console.error(`${kind}: ${Math.round(rate)}/s`);
    }
  }
  const of = (kind: string) => median(results.get(kind) ?? [Number.NaN]);
  const [first = ''] = kinds;
  console.log(`| deliveries | a second | × ${first} |\n| --- | --- | --- |`);
  for (const kind of kinds) {
    console.log(
      `| ${kind} | ${Math.round(of(kind)).toLocaleString('en')} | ${(of(kind) / of(first)).toFixed(2)} |`,
    );
  }
  await admin.end();
} finally {
  for (const child of children) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
