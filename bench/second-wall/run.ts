// `npm run bench -- second-wall [--millions 20] [--rounds 7] [--write]`
// Measures what the second wall costs: the same queries of exports and previews, run as the reader, for whom Postgres
// itself checks the project of each row, and as the server, for whom it does not. The events belong to 50 projects.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { copyOut } from '../../db/copy-out.ts';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { createPool, type Pool, transaction } from '../../db/pool.ts';
import { quoted } from '../../db/sql-literal.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { createParser } from '../../hog/parser/index.ts';
import { type ModelOptions, type ModelQuery, modelQuery, previewRows } from '../../models/index.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { createEvents, spanOf } from '../export-formats/dataset.ts';
import { processStat } from '../process-stat.ts';

const { values } = parseArgs({
  options: {
    millions: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '7' },
    write: { type: 'boolean', default: false },
  },
});
const EVENTS = Number(values.millions) * 1_000_000;
const ROUNDS = Number(values.rounds);
const DRAWN = 500_000;
const PROJECTS = 50;

const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const settings = { fsync: 'off' };
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0, settings });
const parser = createParser();
try {
  const roles = await setUpDatabase({ url: postgres.url });
  if (!roles.wall.up) throw new Error(`The second wall is off: ${roles.wall.reason}`);
  const start = await fill(postgres.url);
  const who = { server: roles.server, reader: roles.reader };
  const pools = Object.fromEntries(
    Object.entries(who).map(([name, url]) => [name, createPool({ url, size: 1, name })]),
  ) as Record<keyof typeof who, Pool>;
  const results = [];
  for (const [what, options] of queriesOf(start)) results.push(await compare(pools, what, options));
  for (const pool of Object.values(pools)) await pool.end();
  print(results);
  if (values.write) {
    const file = path.join(import.meta.dirname, 'results.json');
    const measured = {
      at: new Date().toISOString(),
      events: EVENTS,
      projects: PROJECTS,
      rounds: ROUNDS,
      results,
    };
    writeFileSync(file, `${JSON.stringify(measured, undefined, 2)}\n`);
  }
} finally {
  await parser.close();
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}

/** Fills the table with events of all projects, at the same moments. */
async function fill(url: string): Promise<Date> {
  const start = new Date();
  const pool = createPool({ url, size: 1, name: 'bench' });
  await ensureEventPartitions(pool, start, 1);
  await pool.end();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const drawn = Math.min(EVENTS, DRAWN);
  await createEvents(client, drawn, start);
  const { rows } = await client.query(
    `select string_agg(quote_ident(column_name), ', ') as names from information_schema.columns
     where table_schema = 'public' and table_name = 'events' and column_name not in ('uuid', 'inserted_at', 'project_id')`,
  );
  for (let at = drawn; at < EVENTS; at += drawn) {
    await client.query(
      `insert into events (uuid, inserted_at, project_id, ${rows[0].names})
       select uuidv7(), inserted_at + make_interval(secs => $1::float8 / 1000),
         1 + (row_number() over () % $4)::int, ${rows[0].names} from events
       where inserted_at >= $2 and inserted_at < $3`,
      [spanOf(at), start, new Date(start.getTime() + spanOf(Math.min(drawn, EVENTS - at))), PROJECTS],
    );
  }
  await client.query('vacuum (analyze) events');
  await client.query('checkpoint');
  await client.end();
  return start;
}

/** The first drawn events are all of project 1. What comes later is of all projects. */
function queriesOf(start: Date): [what: string, options: Partial<ModelOptions>][] {
  const at = (rows: number) => start.getTime() + spanOf(rows);
  const dense = { start: at(0), end: at(DRAWN) };
  const sparse = { start: at(DRAWN), end: at(Math.min(EVENTS, DRAWN * 9)) };
  const filters = [{ type: 'event', key: 'plan', operator: 'exact', value: 'team' }];
  return [
    ['an interval of one project', { projectId: 1, interval: dense }],
    ['an interval with a filter', { projectId: 1, interval: dense, filters }],
    [
      'an interval of chosen columns',
      {
        projectId: 1,
        interval: dense,
        hogqlQuery: 'select event, properties.$current_url as url, upper(distinct_id) as who from events',
      },
    ],
    ['an interval of a project among fifty', { projectId: 7, interval: sparse }],
    ['the same with a filter', { projectId: 7, interval: sparse, filters }],
  ];
}

interface Compared {
  what: string;
  rows: number;
  seconds: { server: number; reader: number };
  cpu: { server: number; reader: number };
  samePlan: boolean;
}

async function compare(
  pools: Record<'server' | 'reader', Pool>,
  what: string,
  options: Partial<ModelOptions>,
): Promise<Compared> {
  const query = await modelQuery(parser, {
    model: 'events',
    columnSet: 'files',
    projectId: 1,
    ...options,
  } as ModelOptions);
  const taken = { server: [] as Taken[], reader: [] as Taken[] };
  const names = ['server', 'reader'] as const;
  for (const name of names) await once(pools[name], query);
  for (let round = 0; round < ROUNDS; round += 1) {
    // In another order each time, so that none always finds what the other has just read.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      taken[name].push(await once(pools[name], query));
    }
  }
  const counts = new Set([...taken.server, ...taken.reader].map((one) => one.rows));
  if (counts.size !== 1) throw new Error(`${what}: the roles saw ${[...counts].join(' and ')} rows`);
  const plans = await Promise.all(names.map((name) => shapeOf(pools[name], query)));
  const shown = await Promise.all(
    names.map((name) => previewRows(pools[name], query, 10, { timeoutMs: 60_000 })),
  );
  if (JSON.stringify(shown[0]) !== JSON.stringify(shown[1])) throw new Error(`${what}: the previews differ`);
  const both = (of: (one: Taken) => number) => ({
    server: median(taken.server.map(of)),
    reader: median(taken.reader.map(of)),
  });
  return {
    what,
    rows: [...counts][0] as number,
    seconds: both((one) => one.seconds),
    cpu: both((one) => one.cpu),
    samePlan: plans[0] === plans[1],
  };
}

interface Taken {
  rows: number;
  seconds: number;
  /** Of the process of Postgres that serves the connection. */
  cpu: number;
}

/** Reads all rows as an export does. */
async function once(pool: Pool, query: ModelQuery): Promise<Taken> {
  const { rows: found } = await pool.query('select pg_backend_pid() as pid');
  const cpu = () => processStat(found[0].pid)?.own ?? 0;
  const [cpuBefore, began] = [cpu(), performance.now()];
  const copy = copyOut(pool, query.text, { settings: query.settings });
  for await (const _chunk of copy);
  return { rows: copy.rows as number, seconds: (performance.now() - began) / 1000, cpu: cpu() - cpuBefore };
}

/** The nodes of the plan, without costs. */
function shapeOf(pool: Pool, query: ModelQuery): Promise<string> {
  return transaction(pool, async (client) => {
    for (const [name, value] of Object.entries(query.settings)) {
      await client.query(`set local ${name} = ${quoted(value)}`);
    }
    const { rows } = await client.query(`explain (costs off) ${query.select}`);
    // The policy adds a condition to each scan, and nothing else may differ.
    return rows
      .map((row) => row['QUERY PLAN'])
      .filter((line) => !/^\s*(Filter|One-Time Filter|InitPlan)/.test(line))
      .map((line) => line.replace(/^\s*(->)?\s*/, ''))
      .join('\n');
  });
}

function median(numbers: number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

function print(results: readonly Compared[]): void {
  console.log('| query | rows | server s | reader s | reader / server | CPU of Postgres | same plan |');
  console.log('| --- | --- | --- | --- | --- | --- | --- |');
  for (const { what, rows, seconds, cpu, samePlan } of results) {
    const ratio = (seconds.reader / seconds.server).toFixed(2);
    const work = (cpu.reader / cpu.server).toFixed(2);
    console.log(
      `| ${what} | ${rows.toLocaleString('en')} | ${seconds.server.toFixed(2)} | ${seconds.reader.toFixed(2)} | ${ratio} | ${work} | ${samePlan ? 'yes' : 'no'} |`,
    );
  }
}
