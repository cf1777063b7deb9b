// `npm run bench -- function-fairness [--seconds 20] [--rate 20] [--backlog 100000] [--answer 50]`
// The time from capture's answer 200 to the arrival at the target of a function that does nothing wrong: alone, and while the
// target of another function of the project never answers, and a third one has a backlog whose target takes `answer`
// milliseconds for each request.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
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
import { storeFunctions } from '../function-dispatch/functions.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '20' },
    backlog: { type: 'string', default: '100000' },
    answer: { type: 'string', default: '50' },
  },
});
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const arrived = new Map<string, number>();
let [hanging, drained] = [0, 0];

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const healthy = await serve((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text) => {
    body += text;
  });
  request.on('end', () => {
    arrived.set(JSON.parse(body).id, performance.now());
    response.end('{}');
  });
});
const hangs = await serve((request) => {
  hanging += 1;
  request.resume();
});
const slow = await serve((request, response) => {
  drained += 1;
  request.resume();
  setTimeout(() => response.end('{}'), Number(values.answer));
});
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const port = await freePort();
const env = {
  ...process.env,
  ...{ NODE_ENV: 'production', SLUICE_HOST: '127.0.0.1', SLUICE_DATA_DIR: stateDir },
  ...{ SLUICE_LOG_LEVEL: 'error', TEMPORAL_ADDRESS: '127.0.0.1:1', PORT: String(port) },
  ...{ DATABASE_URL: postgres.url, SLUICE_EGRESS_ALLOW: '127.0.0.1' },
};
const children: ChildProcess[] = [];
const start = (file: string, options: readonly string[] = []) =>
  children.push(
    spawn(process.execPath, [...options, path.join(root, file)], {
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    }),
  );
const capture = async (event: string, id: string) => {
  const answer = await fetch(`http://127.0.0.1:${port}/batch/`, {
    method: 'POST',
    body: JSON.stringify({
      api_key: 'phc_bench',
      batch: [{ event, distinct_id: 'probe', uuid: id, properties: { id } }],
    }),
  });
  await answer.text();
};

/** Captures probes, and returns the times that they take. `beside` is captured with each of them. */
async function measure(beside?: string): Promise<number[]> {
  const answered = new Map<string, number>();
  const every = 1_000 / Number(values.rate);
  const end = performance.now() + Number(values.seconds) * 1_000;
  const asked: Promise<void>[] = [];
  for (let next = performance.now(); next < end; next += every) {
    await pause(Math.max(0, next - performance.now()));
    const id = crypto.randomUUID();
    if (beside) asked.push(capture(beside, crypto.randomUUID()));
    asked.push(
      capture('healthy', id).then(() => {
        answered.set(id, performance.now());
      }),
    );
  }
  await Promise.all(asked);
  for (const id of answered.keys()) while (!arrived.has(id)) await pause(20);
  return [...answered].map(([id, at]) => Math.max(0, (arrived.get(id) as number) - at)).sort((a, b) => a - b);
}

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
  const hog = "fetch(inputs.url, {'body': {'id': event.properties.id ?? event.uuid}})";
  for (const [event, url] of Object.entries({ healthy, hangs, slow })) {
    const filters = [{ events: [{ id: event, type: 'events' }] }];
    await storeFunctions(admin, { projectId: 1, url, filters, hog });
  }
  start('api/main.ts', API_OPTIONS);
  start('bench/function-dispatch/worker.ts');
  await ready(port);
  for (let at = 0; at < 100; at += 1) await capture('healthy', crypto.randomUUID());
  await pause(3_000);
  const rows = ['| | p50 ms | p95 ms | p99 ms |', '| --- | --- | --- | --- |'];
  const shown = (name: string, times: number[]) => {
    const at = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))] as number;
    rows.push(`| ${name} | ${[0.5, 0.95, 0.99].map((one) => at(one).toFixed(0)).join(' | ')} |`);
    return at(0.95);
  };
  const alone = shown('alone', await measure());
  const event = crypto.randomUUID();
  await capture('slow', event);
  await admin.query(
    `insert into function_queue (id, project_id, function_id, version, event_uuid, event_timestamp, distinct_id, person_id, clock, seed)
     select gen_random_uuid(), 1, f.id, f.version, e.uuid, e.timestamp, e.distinct_id, e.person_id, now(), 1
     from events e, functions f, generate_series(1, $2::int)
     where e.uuid = $1 and f.filters->'events'->0->>'id' = 'slow'`,
    [event, Number(values.backlog)],
  );
  for (let at = 0; at < 500; at += 1) await capture('hangs', crypto.randomUUID());
  await pause(3_000);
  const before = drained;
  const beside = shown('beside both', await measure('hangs'));
  const { rows: left } = await admin.query(
    `select count(*)::int as left from function_queue q join functions f on f.id = q.function_id
     where f.filters->'events'->0->>'id' = 'slow'`,
  );
  if (left[0].left === 0) console.error('The backlog was gone before the end: take a larger one.');
  console.log(rows.join('\n'));
  console.log(
    `p95 beside both: ${(beside / alone).toFixed(2)} × that alone. ${hanging} requests hung, ${drained - before} of the backlog were sent meanwhile, ${left[0].left} were left.`,
  );
  await admin.end();
} finally {
  for (const child of children) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
process.exit(0);
