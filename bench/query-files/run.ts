// `npm run bench -- query-files [--rows 1000000] [--rounds 3]`
// How fast the whole result of a query leaves Sluice as a file, and what memory that takes. The yardstick is
// `psql \copy (…) to stdout csv` with the same question in SQL that somebody has written by hand, in turn with Sluice. Both
// throw away what they receive: psql and curl are processes of their own.
import { type ChildProcess, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { createPool, transaction } from '../../db/pool.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { createUser } from '../../tenancy/users.ts';
import { type ApiProcess, startApi } from '../api-process.ts';
import { createEvents, repeatEvents } from '../export-formats/dataset.ts';

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '1000000' }, rounds: { type: 'string', default: '3' } },
});
const ROWS = Number(values.rows);
const DRAWN = Math.min(ROWS, 100_000);
const ROUNDS = Number(values.rounds);
const FORMATS = ['csv', 'jsonl', 'parquet', 'arrow'];
const MEGABYTE = 1024 * 1024;

const QUESTIONS = {
  columns: {
    hogql: 'select uuid, timestamp, event, distinct_id, person_id from events',
    sql: 'select uuid, timestamp, event, distinct_id, person_id from events where project_id = 1',
  },
  documents: {
    hogql: 'select uuid, timestamp, event, distinct_id, properties from events',
    sql: 'select uuid, timestamp, event, distinct_id, properties from events where project_id = 1',
  },
  'two properties': {
    hogql: 'select timestamp, event, properties.$browser as browser, properties.$os as os from events',
    sql: "select timestamp, event, properties->>'$browser' as browser, properties->>'$os' as os from events where project_id = 1",
  },
};
type Question = (typeof QUESTIONS)[keyof typeof QUESTIONS];

const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const settings = { fsync: 'off' };
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0, settings });
const children: ChildProcess[] = [];
try {
  await setUpDatabase({ url: postgres.url });
  const key = await fill(postgres.url);
  const api = await startApi({ databaseUrl: postgres.url, stateDir, children });
  compareSpeed(api, key);
  compareMemory(api, key);
} finally {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(
    children.map((child) => child.exitCode ?? new Promise((resolve) => child.once('exit', resolve))),
  );
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}

/** Makes a project, the first one, with events and a key. Returns the key. */
async function fill(url: string): Promise<string> {
  const start = new Date();
  const pool = createPool({ url, size: 1, name: 'bench' });
  const key = await transaction(pool, async (client) => {
    const user = await createUser(client, { email: 'bench@example.com', firstName: 'Bench' });
    if (!user) throw new Error('there is a user already');
    await createOrganization(client, { name: 'Bench', userId: user.id });
    return issuePersonalApiKey(client, { userId: user.id, label: 'bench', scopes: ['*'] });
  });
  await ensureEventPartitions(pool, start, 1);
  await pool.end();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await createEvents(client, DRAWN, start);
  await repeatEvents(client, DRAWN, ROWS, start);
  await client.end();
  return key.value;
}

/** Runs a program whose output nobody reads, and returns the seconds. */
function timed(program: string, args: string[]): number {
  const begin = performance.now();
  const { status, stderr, error } = spawnSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  if (status !== 0) throw error ?? new Error(`${program}: ${stderr}`);
  return (performance.now() - begin) / 1000;
}

function download({ port }: ApiProcess, key: string, { hogql }: Question, format: string): number {
  const body = JSON.stringify({ query: { kind: 'HogQLQuery', query: hogql } });
  return timed('curl', [
    ...['-sS', '--fail', '-o', '/dev/null', '-H', `Authorization: Bearer ${key}`],
    ...['-H', 'Content-Type: application/json', '-d', body],
    `http://127.0.0.1:${port}/api/projects/1/query/?format=${format}`,
  ]);
}

function byHand({ sql }: Question): number {
  return timed('psql', [postgres.url, '-qX', '-c', `\\copy (${sql}) to stdout csv header`]);
}

function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number;
}

function compareSpeed(api: ApiProcess, key: string): void {
  console.log(`${ROWS} rows, ${ROUNDS} rounds, medians\n`);
  console.log('| CSV of | psql s | Sluice s | × psql |\n| --- | --- | --- | --- |');
  for (const [name, question] of Object.entries(QUESTIONS)) {
    const own: number[] = [];
    const yardstick: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      yardstick.push(byHand(question));
      own.push(download(api, key, question, 'csv'));
    }
    const [a, b] = [median(yardstick), median(own)];
    console.log(`| ${name} | ${a.toFixed(2)} | ${b.toFixed(2)} | ${(a / b).toFixed(2)} |`);
  }
}

/** The greatest memory that a process had since it was last asked, in MB. */
function peak({ pid }: ApiProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  // From here on, it counts anew.
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  return (Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * 1024) / MEGABYTE;
}

function compareMemory(api: ApiProcess, key: string): void {
  console.log('\n| documents as | s | greatest memory of the API, MB |\n| --- | --- | --- |');
  for (const format of FORMATS) {
    peak(api);
    const seconds = download(api, key, QUESTIONS.documents, format);
    console.log(`| ${format} | ${seconds.toFixed(2)} | ${peak(api).toFixed(0)} |`);
  }
}
