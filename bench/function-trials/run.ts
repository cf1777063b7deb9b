// `npm run bench -- function-trials [--seconds 5] [--rounds 3] [--at-once 8]` measures how long the requests of one tenant
// take while another one tries programs: those of templates, and those that loop or allocate. In alternating rounds the
// first tenant is alone, beside the trials, and beside processes that only compute, which shows what the machine does.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import os, { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { API_OPTIONS, freePort, ready } from '../api-process.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    'at-once': { type: 'string', default: '8' },
  },
});
const EVERY_MS = 20;
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const settings = { fsync: 'off' };
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0, settings });

const PROGRAMS = [
  'while (true) {}',
  "let text := 'x' while (true) { text := concat(text, text) }",
  'let all := [1] while (true) { all := arrayPushBack(all, all) }',
  "for (let one in range(20000)) { let body := jsonStringify({'n': one, 'event': event}) } return 1",
  "return fetch('https://example.com', {'body': {'event': event}})",
];

interface Tenant {
  key: string;
  project: number;
}
type Phase = 'alone' | 'trials' | 'busy';

let port = 0;
const asking = async ({ key }: Tenant, method: string, place: string, body?: object): Promise<number> => {
  const answer = await fetch(`http://127.0.0.1:${port}${place}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  await answer.arrayBuffer();
  return answer.status;
};

const env = {
  ...{ ...process.env, SLUICE_LOG_LEVEL: 'error', SLUICE_DATA_DIR: stateDir },
  ...{ TEMPORAL_ADDRESS: '127.0.0.1:1', DATABASE_URL: postgres.url },
};
const sluice = (...given: string[]) =>
  execFileSync(process.execPath, [path.join(root, 'cli/sluice.mjs'), ...given], { env, encoding: 'utf8' });

/** Two tenants of organizations of their own. */
async function tenants(): Promise<[Tenant, Tenant]> {
  const { personal_api_key: key, project_id: project } = JSON.parse(sluice('init'));
  const answer = await fetch(`http://127.0.0.1:${port}/api/organizations/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Other' }),
  });
  const { teams } = (await answer.json()) as { teams: { id: number }[] };
  sluice('user', 'create', '--organization', 'other', '--level', 'admin', 'other@example.com');
  const said = sluice('key', 'create', '--scopes', '*', 'other@example.com');
  const [found] = /phx_\w+/.exec(said) ?? [];
  return [
    { key, project },
    { key: found as string, project: teams[0]?.id as number },
  ];
}

/** Asks at a fixed rate, however long the answers take, and returns how long each took. */
async function probe(tenant: Tenant, milliseconds: number): Promise<number[]> {
  const places = ['hog_functions/', 'events/', 'actions/'].map(
    (one) => `/api/projects/${tenant.project}/${one}`,
  );
  const times: Promise<number>[] = [];
  const end = performance.now() + milliseconds;
  for (let at = performance.now(), index = 0; at < end; at += EVERY_MS, index += 1) {
    await pause(Math.max(0, at - performance.now()));
    times.push(
      (async () => {
        const status = await asking(tenant, 'GET', places[index % places.length] as string);
        if (status !== 200) throw new Error(`the tenant who behaves got ${status}`);
        return performance.now() - at;
      })(),
    );
  }
  return Promise.all(times);
}

/** Tries programs until it is told to stop. Returns how many trials there were, by status. */
function tryForever(tenant: Tenant, signal: AbortSignal): Promise<Map<number, number>> {
  const counts = new Map<number, number>();
  const place = `/api/projects/${tenant.project}/hog_functions/new/invocations/`;
  const globals = { event: { event: 'paid', distinct_id: 'ada', properties: {} } };
  const one = async (first: number) => {
    for (let index = first; !signal.aborted; index += 1) {
      const hog = PROGRAMS[index % PROGRAMS.length];
      const status = await asking(tenant, 'POST', place, { configuration: { hog }, globals });
      counts.set(status, (counts.get(status) ?? 0) + 1);
      if (status === 429 || status === 503) await pause(100);
    }
  };
  return Promise.all(Array.from({ length: Number(values['at-once']) }, (_, index) => one(index))).then(
    () => counts,
  );
}

/** Processes that compute, with the priority of the threads that try programs. */
function burn(): () => void {
  const children = os.cpus().map((): ChildProcess => {
    const child = spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' });
    os.setPriority(child.pid as number, 10);
    return child;
  });
  return () => {
    for (const child of children) child.kill('SIGKILL');
  };
}

const percentile = (times: number[], part: number) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * part)] ?? Number.NaN;

let api: ChildProcess | undefined;
try {
  await migrate(postgres.url);
  port = await freePort();
  const log = openSync(path.join(stateDir, 'api.log'), 'w');
  api = spawn(process.execPath, [...API_OPTIONS, path.join(root, 'api/main.ts')], {
    env: { ...env, NODE_ENV: 'production', SLUICE_HOST: '127.0.0.1', PORT: String(port) },
    stdio: ['ignore', log, log],
  });
  await ready(port);
  const [good, bad] = await tenants();
  await probe(good, 3_000);
  const milliseconds = Number(values.seconds) * 1_000;
  const times: Record<Phase, number[]> = { alone: [], trials: [], busy: [] };
  const tried = new Map<number, number>();
  for (let round = 0; round < Number(values.rounds); round += 1) {
    times.alone.push(...(await probe(good, milliseconds)));
    const stop = new AbortController();
    const trials = tryForever(bad, stop.signal);
    await pause(500);
    times.trials.push(...(await probe(good, milliseconds)));
    stop.abort();
    for (const [status, count] of await trials) tried.set(status, (tried.get(status) ?? 0) + count);
    const done = burn();
    await pause(500);
    times.busy.push(...(await probe(good, milliseconds)));
    done();
  }
  const own = percentile(times.alone, 0.99);
  for (const [phase, all] of Object.entries(times)) {
    const [p50, p99] = [percentile(all, 0.5), percentile(all, 0.99)];
    console.log(
      `${phase}: ${all.length} requests, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${(p99 / own).toFixed(2)} x alone`,
    );
  }
  console.log(`trials by status: ${JSON.stringify(Object.fromEntries(tried))}`);
} finally {
  if (api) {
    const gone = new Promise((resolve) => api?.once('exit', resolve));
    api.kill('SIGTERM');
    await gone;
  }
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
