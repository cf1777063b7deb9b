// `npm run bench -- flags [--seconds 5] [--warmup 4] [--rounds 3] [--flags 50] [--connections 64]`
// Compares `/flags` with a bare Fastify route that answers the same bytes, in alternating rounds: with the person's
// properties in the request (`own`), and with persons that are read from Postgres (`stored`).
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { API_OPTIONS, freePort, ready } from '../api-process.ts';

interface Load {
  perSecond: number;
  failed: number;
  bytes: number;
  p50: number;
  p99: number;
}

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    warmup: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    flags: { type: 'string', default: '50' },
    connections: { type: 'string', default: '64' },
    persons: { type: 'string', default: '100000' },
  },
});
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
execFileSync('go', ['build', '-o', path.join(stateDir, 'load'), '.'], {
  cwd: path.join(root, 'bench/flags/load'),
  stdio: 'inherit',
});
const persons = Number(values.persons);

/** Of 50 flags: 20 are on, 15 at half, 10 have two conditions on the person, and 5 have three variants. */
function filtersOf(index: number): object {
  const kind = index % 50;
  const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] };
  if (kind < 20) return everybody;
  if (kind < 35) return { groups: [{ properties: [], rollout_percentage: 50 }] };
  if (kind < 45) {
    return {
      groups: [
        {
          properties: [
            { key: 'email', type: 'person', operator: 'icontains', value: '@example.org' },
            { key: 'plan', type: 'person', operator: 'exact', value: ['enterprise', 'pro'] },
          ],
          rollout_percentage: 100,
        },
        {
          properties: [{ key: 'age', type: 'person', operator: 'gte', value: '30' }],
          rollout_percentage: 60,
        },
      ],
    };
  }
  const variants = [50, 30, 20].map((share, place) => ({
    key: `variant-${place}`,
    rollout_percentage: share,
  }));
  return { ...everybody, multivariate: { variants }, payloads: { 'variant-1': '{"color":"blue"}' } };
}

/** The properties of a person, as SQL makes them too. */
const propertiesOf = (person: number) => ({
  email: `person-${person}@example.com`,
  plan: ['free', 'pro', 'enterprise'][person % 3],
  age: 20 + (person % 40),
});
const idOf = (person: number) => `0190f3d2-7c1e-7d3a-9a51-${String(person).padStart(12, '0')}`;

async function prepare(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(
      `with o as (insert into organizations (id, name, slug) values (gen_random_uuid(), 'bench', 'bench') returning id)
       insert into projects (uuid, organization_id, name, api_token) select gen_random_uuid(), id, 'bench', 'phc_bench' from o`,
    );
    for (let index = 0; index < Number(values.flags); index += 1) {
      await client.query(
        `insert into feature_flags (project_id, key, filters) select id, $1, $2 from projects`,
        [`a-feature-flag-${index}`, JSON.stringify(filtersOf(index))],
      );
    }
    await client.query(
      `insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
       select p.id, md5('person' || n)::uuid, now(), true, jsonb_build_object('email', 'person-' || n || '@example.com',
         'plan', (array['free', 'pro', 'enterprise'])[1 + n % 3], 'age', 20 + n % 40, 'name', 'Person ' || n,
         '$browser', 'Chrome', '$os', 'Mac OS X', '$initial_referrer', 'https://www.google.com/search?q=' || md5(n::text)), 0, now()
       from projects p, generate_series(0, $1::int - 1) n`,
      [persons],
    );
    await client.query(
      `insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
       select p.id, '0190f3d2-7c1e-7d3a-9a51-' || lpad(n::text, 12, '0'), md5('person' || n)::uuid, 0, now()
       from projects p, generate_series(0, $1::int - 1) n`,
      [persons],
    );
    await client.query('analyze');
  } finally {
    await client.end();
  }
}

function writeBodies(name: string, withProperties: boolean): string {
  const file = path.join(stateDir, `${name}.jsonl`);
  const bodies = Array.from({ length: 5_000 }, (_, index) => {
    const person = (index * 7_919) % persons;
    return JSON.stringify({
      ...{ api_key: 'phc_bench', distinct_id: idOf(person) },
      ...(withProperties ? { person_properties: propertiesOf(person) } : {}),
    });
  });
  writeFileSync(file, bodies.join('\n'));
  return file;
}

async function load(port: number, bodies: string): Promise<Load> {
  const output = await new Promise<string>((resolve, reject) => {
    const child = spawn(
      path.join(stateDir, 'load'),
      [
        ...['-host', `127.0.0.1:${port}`, '-path', '/flags?v=2', '-bodies', bodies],
        ...['-connections', values.connections, '-warmup', `${values.warmup}s`],
        ...['-duration', `${values.seconds}s`],
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    child.once('error', reject).once('close', () => resolve(text));
  });
  return JSON.parse(output) as Load;
}

const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number;
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const children: ChildProcess[] = [];
function start(args: readonly string[], env: Record<string, string>): void {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  children.push(child);
}
try {
  await migrate(postgres.url);
  await prepare(postgres.url);
  const [port, barePort] = [await freePort(), await freePort()];
  start([...API_OPTIONS, path.join(root, 'api/main.ts')], {
    ...{ SLUICE_HOST: '127.0.0.1', SLUICE_DATA_DIR: stateDir, SLUICE_LOG_LEVEL: 'error' },
    ...{ TEMPORAL_ADDRESS: '127.0.0.1:1', DATABASE_URL: postgres.url, PORT: String(port) },
  });
  await ready(port);
  const first = JSON.stringify({
    ...{ api_key: 'phc_bench', distinct_id: idOf(1), person_properties: propertiesOf(1) },
  });
  const answer = await fetch(`http://127.0.0.1:${port}/flags?v=2`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: first,
  });
  if (answer.status !== 200) throw new Error(`Sluice answered ${answer.status}: ${await answer.text()}`);
  const file = path.join(stateDir, 'answer.json');
  writeFileSync(file, await answer.text());
  start([path.join(import.meta.dirname, 'bare.ts')], { PORT: String(barePort), ANSWER: file });
  await pause(1_500);
  const [own, stored] = [writeBodies('own', true), writeBodies('stored', false)];
  const rounds: Record<string, Load[]> = { bare: [], own: [], stored: [] };
  for (let round = 0; round < Number(values.rounds); round += 1) {
    rounds.bare?.push(await load(barePort, own));
    rounds.own?.push(await load(port, own));
    rounds.stored?.push(await load(port, stored));
  }
  const bare = median((rounds.bare as Load[]).map((one) => one.perSecond));
  const bareP99 = median((rounds.bare as Load[]).map((one) => one.p99));
  console.log('| | requests/s | × bare route | p50 ms | p99 ms | × bare route | bytes | failed |');
  console.log('|---|---|---|---|---|---|---|---|');
  for (const [name, loads] of Object.entries(rounds)) {
    const rate = median(loads.map((one) => one.perSecond));
    const p99 = median(loads.map((one) => one.p99));
    console.log(
      `| ${name} | ${Math.round(rate)} | ${(rate / bare).toFixed(2)} | ${median(loads.map((one) => one.p50)).toFixed(1)} | ` +
        `${p99.toFixed(1)} | ${(p99 / bareP99).toFixed(2)} | ${loads[0]?.bytes} | ${loads.reduce((sum, one) => sum + one.failed, 0)} |`,
    );
  }
} finally {
  for (const child of children) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
