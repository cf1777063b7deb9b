// Aggregates of a day and of a month of the large project, through the API, by SQL by hand, and by DuckDB over a Parquet file of
// the same events, which the API itself makes.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { findPythonPackages } from '../../test/support/python-packages.ts';
import { quantile, shown, textOf, within } from './ask.ts';
import { DAY, NOW } from './dataset.ts';
import type { Measured } from './few.ts';

interface Aggregate {
  name: string;
  hogql: string;
  sql: string;
  duckdb: string;
}

const AGGREGATES: readonly Aggregate[] = [
  {
    name: 'events by name',
    hogql: 'select event, count() as events from events where WHEN group by event order by events desc',
    sql: 'select event, count(*) as events from events where WHEN group by 1 order by 2 desc',
    duckdb: 'select event, count(*) as events from FILE group by 1 order by 2 desc',
  },
  {
    name: 'events by day',
    hogql: 'select toDate(timestamp) as day, count() from events where WHEN group by day order by day',
    sql: 'select timestamp::date, count(*) from events where WHEN group by 1 order by 1',
    duckdb: 'select cast(timestamp as date), count(*) from FILE group by 1 order by 1',
  },
  {
    name: 'unique people',
    hogql: 'select uniq(person_id) from events where WHEN',
    sql: 'select count(distinct person_id) from events where WHEN',
    duckdb: 'select count(distinct person_id) from FILE',
  },
  {
    name: 'top values of a property',
    hogql:
      'select properties.plan as plan, count() as events from events where WHEN group by plan order by events desc limit 20',
    sql: `select properties ->> 'plan', count(*) from events where WHEN group by 1 order by 2 desc limit 20`,
    duckdb: `select properties ->> 'plan', count(*) from FILE group by 1 order by 2 desc limit 20`,
  },
  {
    name: 'top values of a property with many',
    hogql:
      'select properties.$current_url as url, count() as events from events where WHEN group by url order by events desc limit 20',
    sql: `select properties ->> '$current_url', count(*) from events where WHEN group by 1 order by 2 desc limit 20`,
    duckdb: `select properties ->> '$."$current_url"', count(*) from FILE group by 1 order by 2 desc limit 20`,
  },
];

/** Runs statements some times over one file, in one process with two threads. Prints the milliseconds of each. */
const PROGRAM = `
import json, sys, time, duckdb
con = duckdb.connect()
con.execute('set threads = 2')
times = []
for statement in json.load(sys.stdin)['statements']:
    taken = []
    for _ in range(4):
        start = time.perf_counter()
        con.execute(statement).fetchall()
        taken.append((time.perf_counter() - start) * 1000)
    times.append(sorted(taken[1:])[1])
print(json.dumps(times))
`;

function duckdb(packages: string, statements: readonly string[]): number[] {
  const { status, stdout, stderr } = spawnSync('python3', ['-c', PROGRAM], {
    input: JSON.stringify({ statements }),
    encoding: 'utf8',
    env: { ...process.env, PYTHONPATH: packages },
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as number[];
}

/** Prints a table: each aggregate over each range of times. The first time of each is left out. */
export async function measureAggregates(measured: Measured, folder: string): Promise<void> {
  const { pool, ask, project } = measured;
  const rounds = Math.min(measured.rounds, 10);
  const { found, reason } = findPythonPackages('duckdb', ['duckdb==1.5.5']);
  if (!found) throw new Error(reason);
  console.log(
    '\n| times | events | aggregate | API p50 ms | worst | Postgres p50 | SQL by hand p50 | DuckDB | API × by hand | API × DuckDB |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const [place, [from, to]] of [
    ['a day of the open week', [NOW - DAY, NOW]],
    ['a day of a sealed week', within(DAY)],
    ['a month of sealed weeks', within(30 * DAY)],
    ['a quarter of sealed weeks', within(91 * DAY)],
  ] as [string, [number, number]][]) {
    const when = `timestamp > '${textOf(from)}' and timestamp < '${textOf(to)}'`;
    const stored = `inserted_at >= '${textOf(from - DAY)}' and inserted_at < '${textOf(to + 7 * DAY)}'`;
    const file = path.join(folder, 'events.parquet');
    const columns = 'event, timestamp, person_id, properties';
    writeFileSync(file, await ask.file(`select ${columns} from events where ${when}`, 'parquet'));
    const byDuckdb = duckdb(
      found,
      AGGREGATES.map((one) => one.duckdb.replace('FILE', `'${file}'`)),
    );
    const { rows } = await pool.query(
      `select count(*) as events from events where project_id = ${project} and ${when} and ${stored}`,
    );
    for (const [index, { name, hogql, sql }] of AGGREGATES.entries()) {
      const taken = { api: [] as number[], run: [] as number[], hand: [] as number[] };
      for (let round = -1; round < rounds; round += 1) {
        const start = performance.now();
        const { run } = await ask(hogql.replace('WHEN', when));
        const middle = performance.now();
        await pool.query(sql.replace('WHEN', `project_id = ${project} and ${when} and ${stored}`));
        const end = performance.now();
        if (round < 0) continue;
        taken.api.push(middle - start);
        taken.run.push(run);
        taken.hand.push(end - middle);
      }
      const [api, run, hand] = [taken.api, taken.run, taken.hand].map((times) => quantile(times, 0.5)) as [
        number,
        number,
        number,
      ];
      const beside = byDuckdb[index] as number;
      const cells = [
        ...[place, String(rows[0].events), name, shown(api), shown(Math.max(...taken.api)), shown(run)],
        ...[shown(hand), shown(beside), (api / hand).toFixed(2), (api / beside).toFixed(1)],
      ];
      console.log(`| ${cells.join(' | ')} |`);
    }
  }
}
