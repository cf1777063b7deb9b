// `npm run bench -- function-claims [--count 100000] [--at-once 100]`
// Claims and ends invocations of one function until none is left: alone, while a transaction stays open that has seen all of
// them waiting, and the same with claims that begin at the first invocation each time. What was deleted under an open
// transaction stays in the indexes, as in half an hour of an export that reads.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { createPool } from '../../db/pool.ts';
import { claim } from '../../functions/rows/queue.ts';
import { storeResults } from '../../functions/rows/results.ts';
import { startPostgres } from '../../stack/postgres.ts';

const { values } = parseArgs({
  options: { count: { type: 'string', default: '100000' }, 'at-once': { type: 'string', default: '100' } },
});
const [count, atOnce] = [Number(values.count), Number(values['at-once'])];
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const pool = createPool({ url: postgres.url, size: 2, name: 'bench' });
const key = { projectId: 1, functionId: randomUUID() };

/** How many invocations a second are claimed and ended: of the last quarter, when most is behind the claims. */
async function rate({ isOpen, moves }: { isOpen: boolean; moves: boolean }): Promise<number> {
  await pool.query('truncate function_queue, function_invocations');
  await pool.query(
    `insert into function_queue (id, project_id, function_id, version, clock, seed, due_at)
     select gen_random_uuid(), $1, $2, 1, now(), 1, now() - n * interval '1 millisecond' from generate_series(1, $3::int) n`,
    [key.projectId, key.functionId, count],
  );
  await pool.query('vacuum analyze function_queue');
  const reader = new pg.Client({ connectionString: postgres.url });
  await reader.connect();
  if (isOpen) await reader.query('begin isolation level repeatable read; select pg_current_snapshot()');
  let since = new Date(Date.now() - 86_400_000).toISOString();
  let [done, began] = [0, 0];
  try {
    for (;;) {
      if (began === 0 && done >= count * 0.75) began = performance.now();
      const lease = randomUUID();
      const rows = await claim(pool, [{ ...key, count: atOnce, since }], { lease, seconds: 30 });
      if (rows.length === 0) break;
      if (moves)
        since = rows
          .map((row) => row.was_due)
          .sort()
          .at(-1) as string;
      const ended = { lease, status: 'succeeded' as const, error: null, text: '[]', attempt: 0, after: 0 };
      await storeResults(
        pool,
        rows.map(({ seq }) => ({ ...ended, seq, logs: [], counts: [] })),
      );
      done += rows.length;
    }
    if (done !== count) throw new Error(`${done} of ${count} were claimed`);
    return (count * 0.25 * 1_000) / (performance.now() - began);
  } finally {
    await reader.end();
  }
}

try {
  await migrate(postgres.url);
  const alone = await rate({ isOpen: false, moves: true });
  const rows: [string, number][] = [
    ['alone', alone],
    ['beside an open transaction', await rate({ isOpen: true, moves: true })],
    ['the same, each claim from the first', await rate({ isOpen: true, moves: false })],
  ];
  console.log('| claims | invocations a second | × alone |\n| --- | --- | --- |');
  for (const [name, one] of rows) {
    console.log(`| ${name} | ${Math.round(one).toLocaleString('en')} | ${(one / alone).toFixed(2)} |`);
  }
} finally {
  await pool.end();
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
