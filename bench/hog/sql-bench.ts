// node bench/hog/sql-bench.ts postgres://… [rows] compares printed SQL with SQL written by hand, over the same events
// in the events table. The two alternate, and the best of several runs counts. It creates a database of its own and
// drops it.
import { existsSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { migrate } from '../../db/migrate.ts';
import { createParser } from '../../hog/parser/index.ts';
import { createSchema, printStatement, selection } from '../../hog/sql/index.ts';
import { YARDSTICKS } from './sql-yardsticks.ts';

const [url, count = '1000000'] = process.argv.slice(2);
if (url === undefined) throw new Error('usage: node bench/hog/sql-bench.ts postgres://… [rows]');
const RUNS = 5;

const PROJECT = 7;

const FILL = `
  insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
    session_id, elements_chain, person_id, person_mode, person_properties)
  select ${PROJECT}, gen_random_uuid(), timestamptz '2026-03-01' + i * interval '1 second', now(), now() + (i % 2) * interval '7 days',
    false, (array['$pageview', '$autocapture', 'signup', 'purchase'])[1 + i % 4], 'user-' || i % 5000,
    json_build_object('$current_url', 'https://example.com/' || (array['docs', 'blog', 'app'])[1 + i % 3] || '/page-' || i % 100,
      'plan', (array['free', 'pro', null])[1 + i % 3], 'price', i % 120, '$browser', 'Chrome', '$os', 'Linux',
      '$lib', 'web', '$lib_version', '1.200.2', '$insert_id', md5(i::text), 'filler', repeat(md5(i::text), 12)),
    's-' || i % 9000, '', md5((i % 5000)::text)::uuid, 'full',
    json_build_object('email', 'user-' || i % 5000 || '@' || (array['x.io', 'y.org'])[1 + i % 2])
  from generate_series(1, $1::int) as i`;

const DATABASE = 'hogql_bench';
const admin = new pg.Client({ connectionString: url });
await admin.connect();
await admin.query(`drop database if exists ${DATABASE}`);
await admin.query(`create database ${DATABASE}`);
const own = new URL(url);
own.pathname = `/${DATABASE}`;
await migrate(own.href);

const client = new pg.Client({ connectionString: own.href });
await client.connect();
const parser = createParser();
const ratios: number[] = [];
const { rows: backend } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
const scheduled = `/proc/${backend[0]?.pid}/schedstat`;

/**
 * Returns the CPU time of the backend in milliseconds, where the system provides it, so that other processes do not
 * count.
 */
const clock = existsSync(scheduled)
  ? () => Number(readFileSync(scheduled, 'utf8').split(' ')[0]) / 1e6
  : () => performance.now();
try {
  await client.query('set max_parallel_workers_per_gather = 0');
  await client.query(FILL, [Number(count)]);
  await client.query('vacuum analyze events');
  const schema = createSchema('on event');
  console.log(`${count} events; best of ${RUNS}, in ms${existsSync(scheduled) ? ' of the processor' : ''}\n`);
  for (const { name, where, hand, select = ['count()', 'count(*)'] } of YARDSTICKS) {
    const selected = await parser.expression(`[${select[0]}]`).catch(() => null);
    const expressions =
      selected?.kind === 'array' ? selected.exprs : [await parser.expression(select[0] as string)];
    const statement = printStatement(
      selection({ table: 'events', select: [...expressions], where: await parser.expression(where) }),
      { schema, projectId: PROJECT, timezone: 'UTC' },
    );
    const byHand = `select ${select[1]} from events e where e.project_id = ${PROJECT} and ${hand}`;
    const best = { printed: Number.POSITIVE_INFINITY, hand: Number.POSITIVE_INFINITY };
    const answers = new Set<string>();
    for (let run = 0; run < RUNS; run++) {
      best.printed = Math.min(
        best.printed,
        await timed(
          () => client.query({ text: statement.text, values: statement.values, rowMode: 'array' }),
          answers,
        ),
      );
      best.hand = Math.min(
        best.hand,
        await timed(() => client.query({ text: byHand, rowMode: 'array' }), answers),
      );
    }
    if (answers.size !== 1) throw new Error(`${name}: the two do not agree: ${[...answers].join(' and ')}`);
    const ratio = best.printed / best.hand;
    ratios.push(ratio);
    console.log(
      `${name.padEnd(28)} ${best.printed.toFixed(1).padStart(8)} ${best.hand.toFixed(1).padStart(8)} ${ratio.toFixed(2).padStart(6)}`,
    );
  }
  const mean = Math.exp(ratios.reduce((sum, one) => sum + Math.log(one), 0) / ratios.length);
  console.log(
    `\nprinted / by hand: geometric mean ${mean.toFixed(2)}, worst ${Math.max(...ratios).toFixed(2)}`,
  );
} finally {
  await client.end();
  await admin.query(`drop database ${DATABASE}`);
  await admin.end();
  await parser.close();
}

async function timed(work: () => Promise<pg.QueryArrayResult>, answers: Set<string>): Promise<number> {
  const start = clock();
  const result = await work();
  const took = clock() - start;
  answers.add(JSON.stringify(result.rows));
  return took;
}
