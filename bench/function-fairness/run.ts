// `npm run bench -- function-fairness [--seconds 20] [--rate 20] [--backlog 100000] [--answer 50] [--large 40] [--hostile 1000] [--only hostile]`
// The time from capture's answer 200 to the arrival at the target of a function that does nothing wrong: alone, and while the
// target of another function of the project never answers, and a third one has a backlog whose target takes `answer`
// milliseconds for each request. Then while each event of another project begins `large` programs with two answers of 1 MB,
// and as many that hold 16 MB. Then while each event of that project, of 200 kB, begins `hostile` programs: some whose target never
// answers, some with large answers, some that never end, some that send the event. `--only` leaves out all others but the first.
// Also shows how much memory the worker takes.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
    large: { type: 'string', default: '40' },
    hostile: { type: 'string', default: '1000' },
    only: { type: 'string' },
  },
});
const isChosen = (name: string) => values.only === undefined || values.only === name;
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
const megabyte = JSON.stringify(Array.from({ length: 20_000 }, (_, id) => ({ id, name: 'x'.repeat(30) })));
const large = await serve((request, response) => {
  request.resume();
  response.end(megabyte);
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
const start = (file: string, options: readonly string[] = []) => {
  const child = spawn(process.execPath, [...options, path.join(root, file)], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  children.push(child);
  return child;
};
/** The most memory that a process has taken since it began, in megabytes. */
const peak = ({ pid }: ChildProcess) =>
  Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);
const capture = async (event: string, id: string, token = 'phc_bench', more: object = {}) => {
  const answer = await fetch(`http://127.0.0.1:${port}/batch/`, {
    method: 'POST',
    body: JSON.stringify({
      api_key: token,
      batch: [{ event, distinct_id: 'probe', uuid: id, properties: { id, ...more } }],
    }),
  });
  await answer.text();
};

/** Captures probes, and returns the times that they take. `beside` is done with each of them. */
async function measure(beside?: () => Promise<void>): Promise<number[]> {
  const answered = new Map<string, number>();
  const every = 1_000 / Number(values.rate);
  const end = performance.now() + Number(values.seconds) * 1_000;
  const asked: Promise<void>[] = [];
  for (let next = performance.now(); next < end; next += every) {
    await pause(Math.max(0, next - performance.now()));
    const id = crypto.randomUUID();
    if (beside) asked.push(beside());
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
     values (gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'bench', 'phc_bench'),
       (gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'other', 'phc_other')`,
  );
  const hog = "fetch(inputs.url, {'body': {'id': event.properties.id ?? event.uuid}})";
  for (const [event, url] of Object.entries({ healthy, hangs, slow })) {
    const filters = [{ events: [{ id: event, type: 'events' }] }];
    await storeFunctions(admin, { projectId: 1, url, filters, hog });
  }
  const every = Array.from({ length: Number(values.large) }, () => ({
    events: [{ id: 'large', type: 'events' }],
  }));
  const asks =
    'let one := fetch(inputs.url); let two := fetch(inputs.url); print(length(one.body), length(two.body))';
  const holds = "let text := 'x'; for (let n := 0; n < 24; n := n + 1) { text := concat(text, text) }";
  for (const hog of [asks, `${holds}; fetch(inputs.url); print(length(text))`]) {
    await storeFunctions(admin, { projectId: 2, url: large, filters: every, hog });
  }
  const hostile = [
    [hangs, 'fetch(inputs.url)'],
    [large, asks],
    [healthy, 'let n := 0; while (true) { n := n + 1 }'],
    [large, "fetch(inputs.url, {'body': event.properties})"],
  ] as const;
  const ofEach = Math.ceil(Number(values.hostile) / hostile.length);
  for (const [url, hog] of hostile) {
    const filters = Array.from({ length: ofEach }, () => ({ events: [{ id: 'hostile', type: 'events' }] }));
    if (isChosen('hostile')) await storeFunctions(admin, { projectId: 2, url, filters, hog });
  }
  start('api/main.ts', API_OPTIONS);
  const worker = start('bench/function-dispatch/worker.ts');
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
  const told: string[] = [];
  const ratio = (name: string, p95: number) =>
    told.push(`p95 beside ${name}: ${(p95 / alone).toFixed(2)} × that alone.`);
  const small = peak(worker);
  const cleared = async () => {
    await admin.query('truncate function_queue, function_batches, function_late_batches, function_positions');
    await pause(3_000);
  };
  if (isChosen('both')) {
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
    ratio('both', shown('beside both', await measure(() => capture('hangs', crypto.randomUUID()))));
    const { rows: left } = await admin.query(
      `select count(*)::int as left from function_queue q join functions f on f.id = q.function_id
     where f.filters->'events'->0->>'id' = 'slow'`,
    );
    if (left[0].left === 0) console.error('The backlog was gone before the end: take a larger one.');
    told.push(
      `${hanging} requests hung, ${drained - before} of the backlog were sent meanwhile, ${left[0].left} were left.`,
    );
    await cleared();
  }
  if (isChosen('large')) {
    const name = `${values.large} programs of another project with large answers, and as many with much in memory, for each event`;
    ratio(
      'large answers',
      shown(`beside ${name}`, await measure(() => capture('large', crypto.randomUUID(), 'phc_other'))),
    );
    told.push(`The worker took at most ${peak(worker)} MB.`);
    await cleared();
  }
  if (isChosen('hostile')) {
    const more = { text: 'x'.repeat(200_000) };
    const times = await measure(() => capture('hostile', crypto.randomUUID(), 'phc_other', more));
    ratio('hostile functions', shown(`beside ${values.hostile} hostile functions for each event`, times));
  }
  told.push(`The worker took ${small} MB alone, and at most ${peak(worker)} MB.`);
  console.log([...rows, '', ...told].join('\n'));
  await admin.end();
} finally {
  for (const child of children) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
process.exit(0);
