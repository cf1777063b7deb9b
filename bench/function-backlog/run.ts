// `npm run bench -- function-backlog [--events 1000000] [--rounds 3] [--at-once 2000]`
// How fast a worker goes through events that it has not seen, with the twenty functions of the benchmark function-dispatch,
// beside a loop that only reads the same rows by COPY and parses their JSON. All events are noted, as they are when capture
// cannot leave any out. Also how much memory the worker takes.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { partitionOf } from '../../db/event-partitions.ts';
import { migrate } from '../../db/migrate.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { storeFunctions, twenty } from '../function-dispatch/functions.ts';
import { childrenCpu, processStat } from '../process-stat.ts';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    'at-once': { type: 'string', default: '2000' },
  },
});
const count = Number(values.events);
const atOnce = Number(values['at-once']);
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const env = {
  ...process.env,
  ...{ NODE_ENV: 'production', SLUICE_DATA_DIR: stateDir, SLUICE_LOG_LEVEL: 'error' },
  ...{ DATABASE_URL: postgres.url, SLUICE_EGRESS_ALLOW: '127.0.0.1' },
};
const children: ChildProcess[] = [];
const start = (file: string, more: Record<string, string> = {}) => {
  const child = spawn(process.execPath, [path.join(root, file)], {
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
};
const stop = async (child: ChildProcess) => {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
};
/** Megabytes that a process takes, or has taken at most. */
const memoryOf = (pid: number, name: 'VmRSS' | 'VmHWM') =>
  Number(
    new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0,
  ) / 1024;

const PROPERTIES = `'{"$os":"Mac OS X","$os_version":"10.15.7","$browser":"Chrome","$browser_version":126,"$device_type":"Desktop",' ||
  '"$current_url":"https://example.com/products/' || n || '?utm_source=newsletter","$host":"example.com",' ||
  '"$pathname":"/products/' || n % 10000 || '","$screen_height":1080,"$screen_width":1920,"$viewport_height":969,' ||
  '"$viewport_width":1920,"$lib":"web","$lib_version":"1.434.18","$referrer":"https://www.google.com/",' ||
  '"$referring_domain":"www.google.com","$device_id":"0190f3d2-7c1e-7d3a-9a51-0f7f0f7f0f7f",' ||
  '"$session_id":"0190f3d2-7c1e-7d3a-9a51-aaaaaaaaaaaa","$window_id":"0190f3d2-7c1e-7d3a-9a51-bbbbbbbbbbbb",' ||
  '"plan":"premium","items":3,"total":149.95}'`;
const { name: partition } = partitionOf(new Date());
const pages = `pg_relation_size('${partition}') / 8192`;

/** Stores and notes events as capture does. */
async function fill(admin: pg.Client): Promise<void> {
  for (let at = 0; at < count; at += atOnce) {
    await admin.query('begin');
    const { rows } = await admin.query(`select ${pages} as page`);
    await admin.query(
      `with stored as (insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id,
           properties, elements_chain, person_id, person_mode, person_properties)
         select 1, gen_random_uuid(), clock_timestamp(), now(), now(), false, '$pageview', 'user-' || n % 10000,
           (${PROPERTIES})::json, '', gen_random_uuid(), 'full', '{}' from generate_series(1 + $1::int, $1::int + $2::int) n
         returning project_id, uuid, timestamp)
       insert into function_batches (xid, events, projects, partition, from_page, keys)
       select pg_current_xact_id()::xid, count(*), '{1}', '${partition}', $3,
         string_agg(int4send(project_id) || uuid_send(uuid) || timestamptz_send(timestamp), '') from stored`,
      [at, Math.min(atOnce, count - at), rows[0].page],
    );
    await admin.query(`update function_batches set to_page = ${pages} where to_page is null`);
    await admin.query('commit');
  }
}

async function yardstick(admin: pg.Client): Promise<number> {
  const { rows } = await admin.query(
    'select string_agg(distinct xid::text, $1) as xids from function_batches',
    [','],
  );
  const child = start('bench/function-backlog/yardstick.ts', { PARTITION: partition, XIDS: rows[0].xids });
  let output = '';
  child.stdout.on('data', (text) => {
    output += text;
  });
  await new Promise((resolve) => child.once('close', resolve));
  const { rows: read, seconds, cpu } = JSON.parse(output);
  if (read !== count) throw new Error(`${count} events, but ${read} were read`);
  console.error(`CPU µs an event: loop ${((cpu / count) * 1e6).toFixed(1)}`);
  return count / seconds;
}

/** Starts a worker without work, and returns what it takes. */
async function idleMemory(): Promise<number> {
  const worker = start('bench/function-dispatch/worker.ts');
  await pause(5_000);
  const taken = memoryOf(worker.pid as number, 'VmRSS');
  await stop(worker);
  return taken;
}

async function sluice(admin: pg.Client): Promise<{ rate: number; memory: number }> {
  const left = async () =>
    (
      await admin.query(
        `select (select coalesce(sum(events), 0)::int from function_batches) +
           (select coalesce(sum(octet_length(keys) / 28), 0)::int from function_late_batches) as left`,
      )
    ).rows[0].left;
  const { rows: backend } = await admin.query('select pg_backend_pid() as pid');
  const postmaster = processStat(backend[0].pid)?.parent ?? 0;
  const worker = start('bench/function-dispatch/worker.ts');
  const pid = worker.pid as number;
  const usage = () => [
    processStat(pid)?.own ?? 0,
    (processStat(postmaster)?.own ?? 0) + childrenCpu(postmaster),
  ];
  // What a process needs to start does not count.
  let begun = count;
  while (begun > count * 0.95) {
    await pause(50);
    begun = await left();
  }
  const before = usage();
  const began = performance.now();
  while ((await left()) > 0) await pause(50);
  const seconds = (performance.now() - began) / 1_000;
  const used = usage().map((one, index) => (((one - (before[index] as number)) / begun) * 1e6).toFixed(1));
  const memory = memoryOf(pid, 'VmHWM');
  console.error(`CPU µs an event: worker ${used[0]}, Postgres ${used[1]}`);
  await stop(worker);
  const { rows } = await admin.query(
    "select coalesce(sum(count), 0)::int as count from function_metrics where name = 'triggered'",
  );
  const wanted = Math.floor((count - 7) / 10_000) + 1;
  if (rows[0].count !== wanted) throw new Error(`${wanted} events match, ${rows[0].count} invocations`);
  return { rate: begun / seconds, memory };
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
  await storeFunctions(admin, { projectId: 1, url: 'http://127.0.0.1:1/', filters: twenty() });
  const idle = await idleMemory();
  const rates: Record<'loop' | 'sluice', number[]> = { loop: [], sluice: [] };
  const memories: number[] = [];
  for (let round = 0; round < Number(values.rounds); round += 1) {
    await admin.query(
      'truncate events, function_batches, function_queue, function_invocations, function_metrics',
    );
    await fill(admin);
    await admin.query('checkpoint');
    rates.loop.push(await yardstick(admin));
    const { rate, memory } = await sluice(admin);
    rates.sluice.push(rate);
    memories.push(memory);
    console.error(`loop ${Math.round(rates.loop.at(-1) as number)}/s, sluice ${Math.round(rate)}/s`);
  }
  console.log('| | events a second | × the loop |\n| --- | --- | --- |');
  for (const one of ['loop', 'sluice'] as const) {
    const ratio = median(rates[one]) / median(rates.loop);
    console.log(`| ${one} | ${Math.round(median(rates[one])).toLocaleString('en')} | ${ratio.toFixed(2)} |`);
  }
  console.log(`Memory of the worker: idle ${idle.toFixed(0)} MB, at most ${median(memories).toFixed(0)} MB`);
  await admin.end();
} finally {
  for (const child of children) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
