// `npm run bench -- flags [--requests 10000] [--warmup 40000] [--rounds 5] [--flags 50] [--connections 64] [--cases bare,own,…]
// [--against folder] [--profile folder]`
// Compares `/flags` with the yardsticks, in alternating short rounds. Prints a table for RESULTS.md.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { API_OPTIONS, freePort, ready } from '../api-process.ts';
import { buildGo } from '../go-program.ts';
import { childrenCpu, processStat, threadsCpu } from '../process-stat.ts';
import { bodiesOf, bodyOf, definitionsOf, prepare } from './dataset.ts';

const { values } = parseArgs({
  options: {
    // Requests are counted, not seconds: on a busy machine, a few seconds do not even warm a server up.
    requests: { type: 'string', default: '10000' },
    // A Node server is slow until its code is compiled, after some ten thousand requests.
    warmup: { type: 'string', default: '40000' },
    rounds: { type: 'string', default: '5' },
    flags: { type: 'string', default: '50' },
    connections: { type: 'string', default: '64' },
    persons: { type: 'string', default: '100000' },
    cases: { type: 'string', default: 'bare,own,stored,go' },
    // Another checkout with its dependencies, measured as `before` and `before-stored`.
    against: { type: 'string' },
    // The folder for the CPU profiles of the Node servers.
    profile: { type: 'string' },
  },
});
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const [flags, persons] = [Number(values.flags), Number(values.persons)];

interface Case {
  server: string;
  path: string;
  /** Whether requests carry the properties of the person. */
  own: boolean;
}
const CASES: Record<string, Case> = {
  bare: { server: 'bare', path: '/flags', own: true },
  own: { server: 'api', path: '/flags?v=2', own: true },
  stored: { server: 'api', path: '/flags?v=2', own: false },
  before: { server: 'before', path: '/flags?v=2', own: true },
  'before-stored': { server: 'before', path: '/flags?v=2', own: false },
  go: { server: 'go', path: '/flags', own: true },
  'posthog-node': { server: 'posthog-node', path: '/flags', own: true },
  growthbook: { server: 'growthbook', path: '/flags', own: true },
};
const names = values.cases.split(',');
for (const name of names) {
  if (!CASES[name])
    throw new Error(`There is no case "${name}"; there are ${Object.keys(CASES).join(', ')}.`);
}
const caseOf = (name: string) => CASES[name] as Case;

const build = (folder: string, name: string): string => buildGo(folder, path.join(stateDir, name));

const loadProgram = build('bench/flags/load', 'load');
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const servers = new Map<string, { child: ChildProcess; port: number }>();

async function start(name: string): Promise<void> {
  const port = await freePort();
  const isProfiled = values.profile !== undefined && name !== 'go';
  const profiling = isProfiled
    ? [
        '--cpu-prof',
        `--cpu-prof-name=${name}.cpuprofile`,
        '--cpu-prof-dir',
        path.resolve(values.profile as string),
      ]
    : [];
  const ofApi = (folder: string) => [...API_OPTIONS, path.join(folder, 'api/main.ts')];
  const own = (file: string) => [path.join(import.meta.dirname, file)];
  const programs: Record<string, () => [string, string[]]> = {
    api: () => [process.execPath, ofApi(root)],
    before: () => [process.execPath, ofApi(path.resolve(values.against as string))],
    bare: () => [process.execPath, own('bare.ts')],
    'posthog-node': () => [process.execPath, own('posthog-node.ts')],
    growthbook: () => [process.execPath, own('growthbook.ts')],
    go: () => [build('bench/yardsticks/flags-go', 'flags-go'), []],
  };
  const [program, args] = (programs[name] as () => [string, string[]])();
  const child = spawn(program, program === process.execPath ? [...profiling, ...args] : args, {
    env: {
      ...process.env,
      ...{ NODE_ENV: 'production', PORT: String(port), ADDRESS: `127.0.0.1:${port}` },
      ...{ SLUICE_HOST: '127.0.0.1', SLUICE_DATA_DIR: stateDir, SLUICE_LOG_LEVEL: 'error' },
      ...{ TEMPORAL_ADDRESS: '127.0.0.1:1', DATABASE_URL: postgres.url },
      ...{ ANSWER: path.join(stateDir, 'answer.json'), DEFINITIONS: path.join(stateDir, 'definitions.json') },
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  servers.set(name, { child, port });
  if (name === 'api' || name === 'before') await ready(port);
}

async function ask(port: number, where: string): Promise<string> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}${where}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: bodyOf(1, true),
    }).catch(() => undefined);
    if (answer?.status === 200) return answer.text();
    if (answer) throw new Error(`The server answered ${answer.status}: ${await answer.text()}`);
    await pause(100);
  }
}

interface Load {
  perSecond: number;
  failed: number;
  bytes: number;
  p50: number;
  p99: number;
  /** CPU time for a request in microseconds, of the server and of Postgres. */
  cpu: number;
  postgresCpu: number;
}

/** A peer that is so slow that it gets a part of the requests only. */
const partOf = (name: string) => (name === 'posthog-node' ? 0.05 : 1);

async function load(name: string, requests: number): Promise<Load> {
  const { server, path: where, own } = caseOf(name);
  const { child, port } = servers.get(server) as { child: ChildProcess; port: number };
  const usage = () => [
    threadsCpu(child.pid as number),
    (processStat(postmaster)?.own ?? 0) + childrenCpu(postmaster),
  ];
  const count = Math.ceil(requests * partOf(name));
  const before = usage();
  const { stdout } = await promisify(execFile)(loadProgram, [
    ...['-host', `127.0.0.1:${port}`, '-path', where, '-requests', String(count)],
    ...['-bodies', path.join(stateDir, own ? 'own.jsonl' : 'stored.jsonl')],
    ...['-connections', values.connections],
  ]);
  const after = usage();
  const each = (index: 0 | 1) => (((after[index] as number) - (before[index] as number)) / count) * 1e6;
  return { ...(JSON.parse(stdout) as Load), cpu: each(0), postgresCpu: each(1) };
}

let postmaster = 0;
const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number;
try {
  await migrate(postgres.url);
  await prepare(postgres.url, flags, persons);
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  const { rows } = await admin.query('select pg_backend_pid() as pid');
  postmaster = processStat(rows[0].pid)?.parent ?? 0;
  await admin.end();
  writeFileSync(path.join(stateDir, 'own.jsonl'), bodiesOf(persons, true));
  writeFileSync(path.join(stateDir, 'stored.jsonl'), bodiesOf(persons, false));
  writeFileSync(path.join(stateDir, 'definitions.json'), JSON.stringify(definitionsOf(flags)));
  await start('api');
  writeFileSync(
    path.join(stateDir, 'answer.json'),
    await ask(servers.get('api')?.port as number, '/flags?v=2'),
  );
  for (const name of names) {
    const { server, path: where } = caseOf(name);
    if (!servers.has(server)) await start(server);
    await ask(servers.get(server)?.port as number, where);
  }
  const rounds = new Map<string, Load[]>(names.map((name) => [name, []]));
  for (const name of names) await load(name, Number(values.warmup));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    // Every other round runs backwards, so that no server always follows the same other one.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const one = await load(name, Number(values.requests));
      rounds.get(name)?.push(one);
      console.error(
        `${name}: ${Math.round(one.perSecond)}/s p99 ${one.p99.toFixed(1)} ms, CPU ${one.cpu.toFixed(1)} + ${one.postgresCpu.toFixed(1)} µs`,
      );
    }
  }
  const least = (name: string) => Math.min(...(rounds.get(name) ?? []).map((one) => one.cpu));
  const of = (name: string, key: keyof Load) => median((rounds.get(name) ?? []).map((one) => one[key]));
  console.log(
    '| | requests/s | × bare route | p50 ms | p99 ms | × bare route | CPU µs server + Postgres | × bare route per CPU | least CPU µs | × bare route | bytes | failed |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const [name, loads] of rounds) {
    const versus = (key: keyof Load, up: boolean) =>
      rounds.has('bare')
        ? (up ? of(name, key) / of('bare', key) : of('bare', key) / of(name, key)).toFixed(2)
        : '';
    console.log(
      `| ${name} | ${Math.round(of(name, 'perSecond')).toLocaleString('en')} | ${versus('perSecond', true)} | ` +
        `${of(name, 'p50').toFixed(1)} | ${of(name, 'p99').toFixed(1)} | ${versus('p99', true)} | ` +
        `${of(name, 'cpu').toFixed(1)} + ${of(name, 'postgresCpu').toFixed(1)} | ${versus('cpu', false)} | ` +
        `${least(name).toFixed(1)} | ${rounds.has('bare') ? (least('bare') / least(name)).toFixed(2) : ''} | ` +
        `${loads[0]?.bytes} | ${loads.reduce((sum, one) => sum + one.failed, 0)} |`,
    );
  }
} finally {
  for (const [name, { child }] of servers) {
    // A process only writes its profile if it ends by itself.
    const isProfiled = values.profile !== undefined && name !== 'go';
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(isProfiled ? 'SIGTERM' : 'SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await Promise.race([gone, pause(5_000)]);
  }
  await postgres.stop();
  if (existsSync(stateDir)) rmSync(stateDir, { recursive: true, force: true });
}
