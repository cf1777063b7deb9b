// `npm run bench -- flag-changes [--flags 5000] [--processes 4] [--changes 100] [--requests 20000] [--rounds 5]`
// Many flags of one project: how much a request for their definitions costs while nothing changes, beside a bare route, and how
// soon every process tells a change. Prints tables for RESULTS.md.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { createPool, transaction } from '../../db/pool.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { createUser } from '../../tenancy/users.ts';
import { freePort, startApi } from '../api-process.ts';
import { filtersOf } from '../flags/dataset.ts';
import { buildGo } from '../go-program.ts';
import { threadsCpu } from '../process-stat.ts';

const { values } = parseArgs({
  options: {
    flags: { type: 'string', default: '5000' },
    processes: { type: 'string', default: '4' },
    changes: { type: 'string', default: '100' },
    requests: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '5' },
  },
});
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const loadProgram = buildGo('bench/flags/load', path.join(stateDir, 'load'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const pool = createPool({ url: postgres.url, size: 2, name: 'bench' });
const children: ChildProcess[] = [];

interface Server {
  port: number;
  pid: number;
}

/** An API that writes down how late its event loop is. */
interface Watched extends Server {
  loopFile: string;
}

async function startWatched(): Promise<Watched> {
  const loopFile = path.join(stateDir, `loop-${children.length}`);
  const options = ['--import', path.join(root, 'bench/neighbour/watch-loop.ts')];
  const env = { LOOP_FILE: loopFile };
  return {
    ...(await startApi({ databaseUrl: postgres.url, stateDir, children, env, options })),
    loopFile,
  };
}

async function startBare(): Promise<Server> {
  const port = await freePort();
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'bare.ts')], {
    env: { ...process.env, NODE_ENV: 'production', PORT: String(port) },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  children.push(child);
  return { port, pid: child.pid as number };
}

const at = (sorted: number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const median = (numbers: number[]) =>
  at(
    numbers.toSorted((a, b) => a - b),
    0.5,
  );

/** Requests over one connection that is kept. */
function asker(port: number, token: string) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const body = JSON.stringify({ api_key: token, distinct_id: 'somebody', flag_keys: ['flag-0'] });
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length) };
  return {
    isOn: () =>
      new Promise<boolean>((resolve, reject) => {
        const request = http.request(
          { host: '127.0.0.1', port, agent, method: 'POST', path: '/flags?v=2', headers },
          (response) => {
            let text = '';
            response.setEncoding('utf8').on('data', (part: string) => {
              text += part;
            });
            response.once('end', () => resolve(text.includes('"enabled":true')));
          },
        );
        request.once('error', reject);
        request.end(body);
      }),
    close: () => agent.destroy(),
  };
}

/** How soon all processes tell a change, in milliseconds from the end of the request that changed it. */
async function changes(servers: Server[], made: { projectId: number; token: string; key: string }) {
  const askers = servers.map(({ port }) => asker(port, made.token));
  const [{ id }] = (
    await pool.query("select id from feature_flags where project_id = $1 and key = 'flag-0'", [
      made.projectId,
    ])
  ).rows;
  const url = `http://127.0.0.1:${(servers[0] as Server).port}/api/projects/${made.projectId}/feature_flags/${id}/`;
  for (const one of askers) await one.isOn();
  const seen: number[] = [];
  for (let n = 0; n < Number(values.changes); n += 1) {
    const percentage = n % 2 === 0 ? 0 : 100;
    const answer = await fetch(url, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${made.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ filters: { groups: [{ properties: [], rollout_percentage: percentage }] } }),
    });
    if (answer.status !== 200) throw new Error(await answer.text());
    await answer.arrayBuffer();
    const begin = performance.now();
    await Promise.all(
      askers.map(async (one) => {
        while ((await one.isOn()) !== (percentage === 100));
      }),
    );
    seen.push(performance.now() - begin);
  }
  for (const one of askers) one.close();
  return seen.sort((a, b) => a - b);
}

const longest = ({ loopFile }: Watched, since: number) =>
  readFileSync(loopFile, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { at: number; cpu: number })
    .filter((line) => line.at >= since)
    .reduce((most, { cpu }) => Math.max(most, cpu), 0);

try {
  await migrate(postgres.url);
  const made = await transaction(pool, async (client) => {
    const user = await createUser(client, { email: 'bench@example.com', firstName: 'Bench' });
    if (!user) throw new Error('the user is there already');
    const { project } = await createOrganization(client, { name: 'Bench', userId: user.id });
    const { value: key } = await issuePersonalApiKey(client, { userId: user.id, label: 'b', scopes: ['*'] });
    const indexes = Array.from({ length: Number(values.flags) }, (_, index) => index);
    await client.query(
      `insert into feature_flags (project_id, key, filters) select $1, f.key, f.filters::json
       from unnest($2::text[], $3::text[]) as f (key, filters)`,
      [project.id, indexes.map((n) => `flag-${n}`), indexes.map((n) => JSON.stringify(filtersOf(n)))],
    );
    return { projectId: project.id, token: project.api_token, key };
  });
  const servers: Watched[] = [];
  for (let n = 0; n < Number(values.processes); n += 1) {
    servers.push(await startWatched());
  }
  const api = servers[0] as Watched;
  const where = `/flags/definitions?token=${made.token}`;
  const authorization = `Bearer ${made.key}`;
  const first = await fetch(`http://127.0.0.1:${api.port}${where}`, { headers: { authorization } });
  const bytes = (await first.arrayBuffer()).byteLength;
  console.log(`${values.flags} flags, definitions of ${(bytes / 1e6).toFixed(1)} MB`);

  const bare = await startBare();
  for (;;) {
    const there = await fetch(`http://127.0.0.1:${bare.port}/flags/definitions`).catch(() => undefined);
    await there?.arrayBuffer();
    if (there) break;
  }
  const loads = {
    bare: { ...bare, headers: 'If-None-Match: "known"', path: '/flags/definitions' },
    sluice: {
      ...{ ...api, path: where },
      headers: `Authorization: ${authorization}\\nIf-None-Match: ${first.headers.get('etag')}`,
    },
  };
  type Name = keyof typeof loads;
  const names = Object.keys(loads) as Name[];
  const load = async (name: Name, requests: number) => {
    const { port, pid, headers, path: asked } = loads[name];
    const before = threadsCpu(pid);
    const { stdout } = await promisify(execFile)(loadProgram, [
      ...['-host', `127.0.0.1:${port}`, '-path', asked, '-requests', String(requests)],
      ...['-headers', headers, '-expect', '304'],
    ]);
    const result = JSON.parse(stdout) as { perSecond: number; p99: number; failed: number };
    if (result.failed > 0) throw new Error(`${name}: ${result.failed} requests did not get 304`);
    return { ...result, cpu: ((threadsCpu(pid) - before) / requests) * 1e6 };
  };
  const results = new Map<Name, Awaited<ReturnType<typeof load>>[]>(names.map((name) => [name, []]));
  for (const name of names) await load(name, Number(values.requests) * 2);
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      results.get(name)?.push(await load(name, Number(values.requests)));
    }
  }
  console.log('\n| 304 | requests/s | × bare route | p99 ms | CPU µs | × bare route per CPU |');
  console.log('| --- | --- | --- | --- | --- | --- |');
  const of = (name: Name, key: 'perSecond' | 'p99' | 'cpu') =>
    median((results.get(name) ?? []).map((one) => one[key]));
  for (const name of names) {
    console.log(
      `| ${name} | ${Math.round(of(name, 'perSecond')).toLocaleString('en')} | ` +
        `${(of(name, 'perSecond') / of('bare', 'perSecond')).toFixed(2)} | ${of(name, 'p99').toFixed(1)} | ` +
        `${of(name, 'cpu').toFixed(1)} | ${(of('bare', 'cpu') / of(name, 'cpu')).toFixed(2)} |`,
    );
  }

  const since = Date.now();
  const seen = await changes(servers, made);
  // The watcher writes once a second.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const goes = servers.map((one) => longest(one, since));
  console.log(
    `\nA change is told by all ${servers.length} processes after ${at(seen, 0.5).toFixed(0)} ms (p50), ` +
      `${at(seen, 0.99).toFixed(0)} ms (p99), ${(seen.at(-1) ?? Number.NaN).toFixed(0)} ms (most). The main threads took at most ` +
      `${Math.max(...goes).toFixed(0)} ms in one go.`,
  );
} finally {
  for (const child of children) child.kill('SIGKILL');
  await pool.end();
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
