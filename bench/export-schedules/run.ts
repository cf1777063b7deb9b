// `npm run bench -- export-schedules [--exports 1000] [--events 500] [--write]`
// Runs many exports on one worker: real schedules fire at the same moment, as they do every hour. It measures when each
// run completes, counted from the end of its interval and including the jitter of up to a minute. Then it measures how
// long it takes to restore schedules that were deleted, paused and changed, and to check every export once.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Pool } from '../../db/pool.ts';
import { insertBatchExport } from '../../exports/rows/batch-exports.ts';
import { intervalAt } from '../../intervals/index.ts';
import { type ExportStack, startExportStack } from '../export-stack.ts';
import { measureUpkeep } from './upkeep.ts';

const { values } = parseArgs({
  options: {
    exports: { type: 'string', default: '1000' },
    events: { type: 'string', default: '500' },
    write: { type: 'boolean', default: false },
  },
});
const EXPORTS = Number(values.exports);
const EVENTS = Number(values.events);
const PROJECTS = 100;
/** Twelve times as often as in the goal, so that the benchmark need not wait for an hour. */
const cadence = {
  interval: 'every 5 minutes',
  timezone: 'UTC',
  offsetHour: 0,
  offsetDay: 0,
} as const;
const MINUTE = 60_000;
/** After this time, a run counts as lost. */
const PATIENCE = 15 * MINUTE;

/** Inserts events of many projects, as capture would have stored them within the interval. */
async function fill(pool: Pool, { start, end }: { start: number; end: number }): Promise<void> {
  await pool.query(
    `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
       elements_chain, person_id, person_mode, person_properties)
     select project, gen_random_uuid(), at, at, at, false, '$pageview', 'user-' || n % 50,
       json_build_object('$current_url', 'https://example.com/' || n, 'text', repeat('x', 500)), '',
       '00000000-0000-4000-8000-000000000001', 'full', '{}'
     from generate_series(1, $1::int) as project, generate_series(1, $2::int) as n,
       lateral (select $3::timestamptz + ($4::timestamptz - $3::timestamptz) * n / ($2 + 1) as at) as moment`,
    [PROJECTS, EVENTS, new Date(start), new Date(end)],
  );
}

async function createExports(pool: Pool) {
  const rows = [];
  for (let n = 0; n < EXPORTS; n += 1) {
    rows.push(
      await insertBatchExport(pool, {
        project_id: 1 + (n % PROJECTS),
        name: `Export ${n}`,
        model: 'events',
        interval: cadence.interval,
        destination_type: 'File',
        config: { directory: `export-${n}`, prefix: '', file_format: 'JSONLines', compression: 'zstd' },
      }),
    );
  }
  return rows;
}

function manifestRows(exportRoot: string): number[] {
  return readdirSync(exportRoot, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('_manifest.json'))
    .map((name) => JSON.parse(readFileSync(path.join(exportRoot, name), 'utf8')).rows);
}

const at = (sorted: number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

async function bench({ pool, schedules, worker, exportRoot, temporalAddress }: ExportStack) {
  const rows = await createExports(pool);
  const syncStart = performance.now();
  for (let n = 0; n < rows.length; n += 20) {
    await Promise.all(rows.slice(n, n + 20).map((row) => schedules.exports.sync(row)));
  }
  const syncSeconds = (performance.now() - syncStart) / 1000;
  console.error(`${EXPORTS} schedules made in ${syncSeconds.toFixed(1)} s`);
  let interval = intervalAt(cadence, Date.now());
  // The events must be stored before the interval ends.
  if (interval.end - Date.now() < 30_000) interval = intervalAt(cadence, interval.end);
  while (Date.now() < interval.start) await pause(1000);
  await fill(pool, interval);
  await pool.query('analyze events');
  console.error(`${PROJECTS * EVENTS} events; the schedules fire at ${new Date(interval.end).toISOString()}`);
  while (Date.now() < interval.end) await pause(1000);

  const before = worker.cpu;
  const key = [new Date(interval.start), new Date(interval.end)];
  for (;;) {
    const { rows: counted } = await pool.query(
      `select count(*) filter (where status = 'Completed')::int as done from batch_export_runs
       where data_interval_start = $1 and data_interval_end = $2`,
      key,
    );
    console.error(`${counted[0].done} done after ${Math.round((Date.now() - interval.end) / 1000)} s`);
    if (counted[0].done >= EXPORTS || Date.now() > interval.end + PATIENCE) break;
    await pause(5_000);
  }
  const after = { cpu: worker.cpu, memory: worker.peakMemory };
  const { rows: runs } = await pool.query(
    `select batch_export_id, status, records_completed as records,
       (extract(epoch from finished_at - data_interval_end) * 1000)::int as lag,
       (extract(epoch from finished_at - created_at) * 1000)::int as took
     from batch_export_runs where data_interval_start = $1 and data_interval_end = $2`,
    key,
  );
  const sorted = (name: 'lag' | 'took') => runs.map((run) => run[name] / 1000).sort((a, b) => a - b);
  const [lags, took] = [sorted('lag'), sorted('took')];
  const manifests = manifestRows(exportRoot);
  const wrong =
    runs.filter((run) => run.status !== 'Completed' || run.records !== EVENTS).length +
    Math.abs(new Set(runs.map((run) => run.batch_export_id)).size - EXPORTS) +
    Math.abs(runs.length - EXPORTS) +
    manifests.filter((count) => count !== EVENTS && count !== 0).length;
  const upkeep = await measureUpkeep(
    { address: temporalAddress, rows },
    {
      workerCpu: () => worker.cpu,
      transactions: async () => {
        const counted = await pool.query(
          'select xact_commit::int as count from pg_stat_database where datname = current_database()',
        );
        return counted.rows[0].count;
      },
    },
  );
  return {
    exports: EXPORTS,
    eventsEach: EVENTS,
    schedulesMadeSeconds: Number(syncSeconds.toFixed(1)),
    runsWrong: wrong,
    lagSeconds: { median: at(lags, 0.5), p99: at(lags, 0.99), most: lags.at(-1) },
    runSeconds: { median: at(took, 0.5), p99: at(took, 0.99), most: took.at(-1) },
    workerCpuSeconds: Number((after.cpu - before).toFixed(1)),
    workerPeakMegabytes: after.memory,
    ...upkeep,
  };
}

const stack = await startExportStack();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stack.stop().finally(() => process.exit(1)));
try {
  const result = await bench(stack);
  console.log(JSON.stringify(result, null, 2));
  const most = result.lagSeconds.most ?? Number.POSITIVE_INFINITY;
  const met = result.runsWrong === 0 && most < 5 * 60;
  const mended = result.restoredSeconds.most;
  console.log(
    `${mended <= 60 ? 'met' : 'MISSED'}: ${result.restoredSeconds.schedules} of ${EXPORTS} schedules are restored ${mended.toFixed(1)} s after they were changed (goal: a minute)`,
  );
  console.log(
    `${met ? 'met' : 'MISSED'}: ${EXPORTS} exports that are due at the same moment complete within ${most.toFixed(1)} s (goal: before the next are due, after 300 s here and 3,600 s for hourly exports)`,
  );
  if (values.write)
    writeFileSync(path.join(import.meta.dirname, 'results.json'), `${JSON.stringify(result, null, 2)}\n`);
} finally {
  await stack.stop();
}
