// `npm run bench -- function-dispatch [--seconds 6] [--warmup 4] [--rounds 3] [--batches 50,500]
// [--modes none,twenty,many,listed,transformations] [--members 3000000]`
// Measures what functions cost capture: the API at its full rate, beside a worker, with no function, with twenty, with 5,000
// of which 4,980 name other events, with twenty of which five ask whether a static cohort lists the person, and with three
// transformations. Also how far functions are behind.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { API_OPTIONS, freePort, ready } from '../api-process.ts';
import { buildGo } from '../go-program.ts';
import { childrenCpu, processStat } from '../process-stat.ts';
import { others, storeFunctions, storeTransformations, twenty } from './functions.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    warmup: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    batches: { type: 'string', default: '50,500' },
    modes: { type: 'string', default: 'none,twenty,many' },
    members: { type: 'string', default: '3000000' },
    profile: { type: 'string' },
  },
});
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
buildGo('bench/capture/load', path.join(stateDir, 'load'));
const target = createServer((request, response) => {
  request.resume();
  response.end('{}');
}).listen(0, '127.0.0.1');
await new Promise((resolve) => target.once('listening', resolve));
const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const env = {
  ...process.env,
  ...{
    NODE_ENV: 'production',
    SLUICE_HOST: '127.0.0.1',
    SLUICE_DATA_DIR: stateDir,
    SLUICE_LOG_LEVEL: 'error',
  },
  ...{ TEMPORAL_ADDRESS: '127.0.0.1:1', DATABASE_URL: postgres.url, SLUICE_EGRESS_ALLOW: '127.0.0.1' },
};

interface Result {
  rate: number;
  p99: number;
  /** How far functions are behind at most, in milliseconds. */
  lag: number;
  /** How long they take for the rest, when capture ends, in milliseconds. */
  rest: number;
  matched: number;
}

const stop = async (child: ChildProcess) => {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await Promise.race([gone, pause(15_000)]);
  child.kill('SIGKILL');
};

/** Follows how far functions are behind: the age of the oldest batch, by when its id was first seen as the newest. */
function watchLag(admin: pg.Client) {
  const seen: { id: number; at: number }[] = [];
  let [most, stopped] = [0, false];
  const run = (async () => {
    while (!stopped) {
      const { rows } = await admin.query(
        'select min(id)::int as first, (select last_value::int from function_batches_id_seq) as last from function_batches',
      );
      const at = performance.now();
      seen.push({ id: rows[0].last, at });
      const oldest = rows[0].first && seen.find((one) => one.id >= rows[0].first);
      if (oldest) most = Math.max(most, at - oldest.at);
      await pause(50);
    }
  })();
  return async () => {
    stopped = true;
    await run;
    return most;
  };
}

/** Returns a static cohort with many members, of whom nobody has events. */
async function listedCohort(admin: pg.Client) {
  const cohort = { name: 'many', isStatic: true, filters: '{}' };
  const found = await admin.query('select id from cohorts');
  if (found.rows[0]) return { ...cohort, id: found.rows[0].id as number };
  const began = performance.now();
  const { rows } = await admin.query(
    `insert into cohorts (project_id, name, is_static, filters) values (1, 'many', true, '{}') returning id`,
  );
  await admin.query(
    `insert into cohort_people (project_id, cohort_id, person_id)
     select 1, $1, id from (select gen_random_uuid() as id from generate_series(1, $2)) one order by id`,
    [rows[0].id, Number(values.members)],
  );
  await admin.query('vacuum (analyze) cohort_people');
  console.error(`${values.members} members stored in ${Math.round((performance.now() - began) / 1000)} s`);
  return { ...cohort, id: rows[0].id as number };
}

async function measure(admin: pg.Client, watcher: pg.Client, mode: string, batch: number): Promise<Result> {
  await admin.query(
    'truncate events, event_ids, functions, function_batches, function_queue, function_invocations',
  );
  await admin.query('truncate function_metrics, function_logs');
  if (mode === 'transformations') await storeTransformations(admin, 1);
  else if (mode === 'listed') {
    const cohorts = [await listedCohort(admin)];
    await storeFunctions(admin, { projectId: 1, url, filters: twenty(cohorts[0]?.id), cohorts });
  } else if (mode !== 'none') {
    const filters = [...twenty(), ...(mode === 'many' ? others(4_980) : [])];
    await storeFunctions(admin, { projectId: 1, url, filters });
  }
  await admin.query('checkpoint');
  const port = await freePort();
  const profiled = (name: string) =>
    values.profile
      ? [
          '--cpu-prof',
          `--cpu-prof-name=${name}-${mode}-${batch}.cpuprofile`,
          '--cpu-prof-dir',
          path.resolve(values.profile),
        ]
      : [];
  const start = (name: string, file: string, options: readonly string[]) =>
    spawn(process.execPath, [...profiled(name), ...options, path.join(root, file)], {
      env: { ...env, PORT: String(port) },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  const api = start('api', 'api/main.ts', API_OPTIONS);
  const worker = start('worker', 'bench/function-dispatch/worker.ts', []);
  try {
    await ready(port);
    await pause(1_000);
    const { rows: backend } = await admin.query('select pg_backend_pid() as pid');
    const postmaster = processStat(backend[0].pid)?.parent ?? 0;
    const usage = () => ({
      api: processStat(api.pid as number)?.own ?? 0,
      worker: processStat(worker.pid as number)?.own ?? 0,
      postgres: (processStat(postmaster)?.own ?? 0) + childrenCpu(postmaster),
    });
    let [before, after] = [usage(), usage()];
    const load = spawn(path.join(stateDir, 'load'), [
      ...['-host', `127.0.0.1:${port}`, '-path', '/batch/', '-batch', String(batch), '-kind', 'plain'],
      ...['-connections', '64', '-warmup', `${values.warmup}s`, '-duration', `${values.seconds}s`],
      '-marks',
    ]);
    let output = '';
    load.stderr.pipe(process.stderr);
    load.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('begin')) before = usage();
      if (text.includes('end')) after = usage();
      output += text;
    });
    const lagOf = watchLag(watcher);
    await new Promise((resolve) => load.once('close', resolve));
    const ended = performance.now();
    for (;;) {
      const { rows } = await admin.query('select count(*)::int as left from function_batches');
      if (rows[0].left === 0) break;
      await pause(10);
    }
    const rest = performance.now() - ended;
    const lag = await lagOf();
    const { eventsPerSecond, p99, acknowledged, measuredEvents } = JSON.parse(
      output.slice(output.indexOf('{')),
    );
    const perEvent = (key: keyof typeof after) =>
      (((after[key] - before[key]) / measuredEvents) * 1e6).toFixed(1);
    console.error(
      `CPU µs an event: API ${perEvent('api')}, worker ${perEvent('worker')}, Postgres ${perEvent('postgres')}`,
    );
    const { rows } = await admin.query(
      `select (select coalesce(sum(count), 0)::int from function_metrics where name = 'triggered') as matched,
         (select count(*)::int from events) as events,
         (select count(*)::int from events where properties->>'$pathname' = '/products/7') as wanted,
         (select count(*)::int from events where transformations is not null) as transformed`,
    );
    const { matched, events, wanted, transformed } = rows[0];
    if (events !== acknowledged) throw new Error(`${acknowledged} events acknowledged, ${events} stored`);
    if (transformed !== (mode === 'transformations' ? events : 0))
      throw new Error(`${transformed} of ${events} events are transformed`);
    if (mode !== 'none' && mode !== 'transformations' && matched !== wanted)
      throw new Error(`${wanted} events match, ${matched} invocations`);
    return { rate: eventsPerSecond, p99, lag, rest, matched };
  } finally {
    await Promise.all([stop(api), stop(worker)]);
  }
}

const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] as number;

try {
  await migrate(postgres.url);
  const connect = async () => {
    const client = new pg.Client({ connectionString: postgres.url });
    await client.connect();
    return client;
  };
  const [admin, watcher] = [await connect(), await connect()];
  await admin.query(
    `insert into organizations (id, name, slug) values ('00000000-0000-7000-8000-000000000000', 'bench', 'bench');
     insert into projects (uuid, organization_id, name, api_token)
     values (gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'bench', 'phc_bench')`,
  );
  const modes = values.modes.split(',');
  const table = [
    '| events a request | functions | events/s | × no function | p99 ms | lag at most ms | rest ms | invocations |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
  ];
  for (const batch of values.batches.split(',').map(Number)) {
    const results = new Map<string, Result[]>(modes.map((mode) => [mode, []]));
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const mode of round % 2 === 0 ? modes : modes.toReversed()) {
        const result = await measure(admin, watcher, mode, batch);
        results.get(mode)?.push(result);
        console.error(
          `batch ${batch} ${mode}: ${Math.round(result.rate)}/s p99 ${result.p99.toFixed(0)} lag ${result.lag.toFixed(0)} rest ${result.rest.toFixed(0)} matched ${result.matched}`,
        );
      }
    }
    const of = (mode: string, key: keyof Result) => median((results.get(mode) ?? []).map((one) => one[key]));
    for (const mode of modes) {
      const ratio = results.has('none') ? (of(mode, 'rate') / of('none', 'rate')).toFixed(2) : '';
      table.push(
        `| ${batch} | ${mode} | ${Math.round(of(mode, 'rate')).toLocaleString('en')} | ${ratio} | ${of(mode, 'p99').toFixed(0)} | ` +
          `${of(mode, 'lag').toFixed(0)} | ${of(mode, 'rest').toFixed(0)} | ${of(mode, 'matched')} |`,
      );
    }
  }
  await Promise.all([admin.end(), watcher.end()]);
  console.log(table.join('\n'));
} finally {
  target.close();
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
