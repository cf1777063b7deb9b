// `npm run bench -- function-latency [--seconds 20] [--rate 20] [--load 0,2]`
// Measures the time from capture's answer 200 to the arrival at the webhook: alone, and while so many connections capture
// batches of 50 events at the same time.
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
import { storeFunctions, twenty } from '../function-dispatch/functions.ts';
import { buildGo } from '../go-program.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '20' },
    load: { type: 'string', default: '0,2' },
  },
});
const root = path.resolve(import.meta.dirname, '../..');
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
buildGo('bench/capture/load', path.join(stateDir, 'load'));
const arrived = new Map<string, number>();
const target = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text) => {
    body += text;
  });
  request.on('end', () => {
    arrived.set(JSON.parse(body).id, performance.now());
    response.end('{}');
  });
}).listen(0, '127.0.0.1');
await new Promise((resolve) => target.once('listening', resolve));
const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const port = await freePort();
const env = {
  ...process.env,
  ...{
    NODE_ENV: 'production',
    SLUICE_HOST: '127.0.0.1',
    SLUICE_DATA_DIR: stateDir,
    SLUICE_LOG_LEVEL: 'error',
  },
  ...{
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    DATABASE_URL: postgres.url,
    SLUICE_EGRESS_ALLOW: '127.0.0.1',
    PORT: String(port),
  },
};
const children: ChildProcess[] = [];
const start = (file: string, options: readonly string[] = []) => {
  const child = spawn(process.execPath, [...options, path.join(root, file)], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  children.push(child);
};
const capture = (events: object[]) =>
  fetch(`http://127.0.0.1:${port}/batch/`, {
    method: 'POST',
    body: JSON.stringify({ api_key: 'phc_bench', batch: events }),
  });
const quantile = (sorted: number[], part: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

async function measure(connections: number): Promise<string> {
  const seconds = Number(values.seconds);
  let output = '';
  let load: ChildProcess | undefined;
  if (connections > 0) {
    load = spawn(path.join(stateDir, 'load'), [
      ...['-host', `127.0.0.1:${port}`, '-path', '/batch/', '-batch', '50', '-kind', 'plain'],
      ...['-connections', String(connections), '-warmup', '5s', '-duration', `${seconds}s`],
    ]);
    load.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    await pause(5_000);
  }
  const answered = new Map<string, number>();
  const every = 1_000 / Number(values.rate);
  const end = performance.now() + seconds * 1_000;
  const asked: Promise<void>[] = [];
  for (let next = performance.now(); next < end; next += every) {
    await pause(Math.max(0, next - performance.now()));
    const id = crypto.randomUUID();
    asked.push(
      capture([{ event: 'probe', distinct_id: 'probe', uuid: id, properties: { id } }]).then(
        async (answer) => {
          await answer.text();
          answered.set(id, performance.now());
        },
      ),
    );
  }
  await Promise.all(asked);
  if (load) await new Promise((resolve) => load.once('close', resolve));
  for (const id of answered.keys()) while (!arrived.has(id)) await pause(20);
  const times = [...answered]
    .map(([id, at]) => Math.max(0, (arrived.get(id) as number) - at))
    .sort((a, b) => a - b);
  const rate = output ? Math.round(JSON.parse(output.slice(output.indexOf('{'))).eventsPerSecond) : 0;
  const shown = [0.5, 0.9, 0.99].map((part) => quantile(times, part)?.toFixed(0)).join(' | ');
  return `| ${connections} | ${rate.toLocaleString('en')} | ${times.length} | ${shown} |`;
}

try {
  await migrate(postgres.url);
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query(
    `insert into organizations (id, name, slug) values ('00000000-0000-7000-8000-000000000000', 'bench', 'bench');
     insert into projects (uuid, organization_id, name, api_token)
     values (gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'bench', 'phc_bench')`,
  );
  const filters = [...twenty(), { events: [{ id: 'probe', type: 'events' }] }];
  const hog = "fetch(inputs.url, {'body': {'id': event.properties.id ?? event.uuid}})";
  await storeFunctions(admin, { projectId: 1, url, filters, hog });
  start('api/main.ts', API_OPTIONS);
  start('bench/function-dispatch/worker.ts');
  await ready(port);
  for (let at = 0; at < 50; at += 1) await capture([{ event: 'probe', distinct_id: 'warm', properties: {} }]);
  await pause(2_000);
  console.log(
    '| connections that capture | events/s | probes | p50 ms | p90 ms | p99 ms |\n| --- | --- | --- | --- | --- | --- |',
  );
  for (const one of values.load.split(',').map(Number)) console.log(await measure(one));
  await admin.end();
} finally {
  for (const child of children) child.kill('SIGKILL');
  target.close();
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
