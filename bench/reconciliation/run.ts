// `npm run bench -- reconciliation [--exports 1000,10000] [--page 100] [--rounds 3] [--write]`
// Looks for missing intervals of hourly exports with a week of runs behind them, on Postgres as it ships: when all is well,
// when one export in a hundred misses an interval, and when each export has something open, so that each gets the
// closer look that all of them got before. The three take turns.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { insertBatchExport } from '../../exports/rows/batch-exports.ts';
import { listUncheckedRuns } from '../../exports/rows/checks.ts';
import { type ReconcileDependencies, reconcilePage } from '../../exports/runs/reconcile.ts';
import { namesOfModels } from '../../models/index.ts';
import { createSchedules } from '../../schedules/schedules.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { startTemporal } from '../../stack/temporal.ts';
import { createLogger } from '../../telemetry/logger.ts';

const { values } = parseArgs({
  options: {
    exports: { type: 'string', default: '1000,10000' },
    page: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '3' },
    write: { type: 'boolean', default: false },
  },
});
const PROJECTS = 100;
const HOURS = 7 * 24 + 2;

async function fill(pool: Pool, count: number): Promise<void> {
  await pool.query('truncate batch_exports, batch_export_runs, batch_export_checks, batch_export_health');
  const first = await insertBatchExport(pool, {
    ...{ project_id: 1, name: 'Export', model: 'events', interval: 'hour', destination_type: 'File' },
    config: { directory: 'bench', prefix: '', file_format: 'JSONLines' },
  });
  await pool.query(
    `insert into batch_exports
     select (jsonb_populate_record(one, jsonb_build_object('id', gen_random_uuid(), 'project_id', 1 + n % ${PROJECTS},
       'name', 'Export ' || n))).*
     from batch_exports one, generate_series(2, $2::int) n where id = $1`,
    [first.id, count],
  );
  await pool.query(
    `update batch_exports set created_at = now() - interval '30 days', scheduled_from = now() - interval '30 days',
       last_updated_at = now() - interval '30 days'`,
  );
  // In the order in which runs are made: those of one hour lie beside each other, and those of one export do not.
  await pool.query(
    `insert into batch_export_runs (project_id, id, batch_export_id, workflow_id, workflow_run_id, status,
       data_interval_start, data_interval_end, fence, records_completed, records_total_count, records_failed, content_hash,
       manifest_key, created_at, last_updated_at, finished_at)
     select e.project_id, gen_random_uuid(), e.id, e.id || '-' || hour, gen_random_uuid()::text, 'Completed',
       hour - interval '1 hour', hour, 1, 100, 100, 0, repeat('0', 64), 'bench/manifest.json', hour, hour, hour
     from generate_series(date_trunc('hour', now()) - $1 * interval '1 hour', now(), '1 hour') hour, batch_exports e`,
    [HOURS],
  );
  await pool.query(
    `insert into batch_export_checks (project_id, batch_export_id, data_interval_start, data_interval_end, state, run_id,
       source_rows, content_hash)
     select project_id, batch_export_id, data_interval_start, data_interval_end, 'same', id, 100, content_hash
     from batch_export_runs`,
  );
  await pool.query('vacuum analyze batch_exports, batch_export_runs, batch_export_checks');
}

/** What the passes find, and how the tables are made so. Each undoes what the one before did. */
const STATES: Record<string, (pool: Pool) => Promise<void>> = {
  async well(pool) {
    await pool.query(`update batch_export_checks set state = 'same', problem = null where state <> 'same'`);
    await pool.query(`update batch_export_runs set status = 'Completed' where status <> 'Completed'`);
  },
  async 'one in a hundred misses an interval'(pool) {
    await STATES.well?.(pool);
    await pool.query(
      `update batch_export_runs set status = 'Failed'
       where data_interval_end = date_trunc('hour', now()) - interval '5 hours'
         and id in (select id from batch_export_runs where data_interval_end = date_trunc('hour', now()) - interval '5 hours'
           order by batch_export_id limit (select count(*) / 100 from batch_exports))`,
    );
  },
  async 'each has something open'(pool) {
    await STATES.well?.(pool);
    await pool.query(
      `update batch_export_checks set state = 'differs', problem = 'bench'
       where data_interval_end = date_trunc('hour', now()) - interval '5 hours'`,
    );
  },
};

interface Pass {
  seconds: number;
  ownCpuSeconds: number;
  transactionsEach: number;
  missing: number;
  differs: number;
}

async function pass(deps: ReconcileDependencies): Promise<Pass> {
  const transactions = async () => {
    await deps.pool.query('select pg_stat_force_next_flush()');
    const { rows } = await deps.pool.query(
      'select xact_commit::int as count from pg_stat_database where datname = current_database()',
    );
    return rows[0].count as number;
  };
  const [before, cpu, began] = [await transactions(), process.cpuUsage(), performance.now()];
  const counts = { exports: 0, missing: 0, differs: 0, failed: 0 };
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof reconcilePage>> = await reconcilePage(
      deps,
      { after, limit: Number(values.page) },
      { beat() {} },
    );
    for (const count of ['exports', 'missing', 'differs', 'failed'] as const) counts[count] += page[count];
    after = page.next;
  } while (after !== null);
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  if (counts.failed > 0) throw new Error(`${counts.failed} exports could not be checked`);
  return {
    seconds,
    ownCpuSeconds: (user + system) / 1e6,
    transactionsEach: ((await transactions()) - before) / counts.exports,
    missing: counts.missing,
    differs: counts.differs,
  };
}

const median = (numbers: number[]) =>
  Number((numbers.sort((a, b) => a - b)[numbers.length >> 1] as number).toFixed(3));

const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const temporal = await startTemporal({ dataDir: stateDir, cacheDir, port: 0, uiPort: 0 });
const pool = createPool({ url: postgres.url, size: 4, name: 'bench' });
const logger = createLogger({ name: 'bench', level: 'warn' });
const schedules = createSchedules(
  loadConfig({ DATABASE_URL: postgres.url, TEMPORAL_ADDRESS: temporal.address }),
  logger,
);
try {
  await schedules.ensure();
  await migrate(postgres.url);
  const deps = { pool, logger, temporal: schedules.exports, repair: false, noticeWebhook: undefined };
  const results = [];
  for (const count of values.exports.split(',').map(Number)) {
    await fill(pool, count);
    const found: Record<string, Pass[]> = Object.fromEntries(Object.keys(STATES).map((name) => [name, []]));
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const [name, make] of Object.entries(STATES)) {
        await make(pool);
        const one = await pass(deps);
        console.error(`${count} exports, ${name}: ${one.seconds.toFixed(2)} s`);
        found[name]?.push(one);
      }
    }
    for (const [state, passes] of Object.entries(found)) {
      const of = (name: keyof Pass) => median(passes.map((one) => one[name]));
      results.push({
        ...{ exports: count, state, seconds: of('seconds'), ownCpuSeconds: of('ownCpuSeconds') },
        ...{ transactionsEach: of('transactionsEach'), missing: of('missing'), differs: of('differs') },
      });
    }
    const began = performance.now();
    const since = new Date(Date.now() - 2 * 86_400_000).toISOString();
    const unchecked = await listUncheckedRuns(
      pool,
      namesOfModels((model) => !model.changes),
      since,
      2_000,
    );
    const seconds = Number(((performance.now() - began) / 1000).toFixed(3));
    results.push({ exports: count, state: 'finding runs to compare', seconds, runs: unchecked.length });
  }
  console.table(results);
  if (values.write)
    writeFileSync(path.join(import.meta.dirname, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
} finally {
  await schedules.close();
  await pool.end();
  await temporal.stop();
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
