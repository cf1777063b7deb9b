// `npm run bench -- export-memory [--sizes 0.5,2,5] [--write]`
// Measures the memory of a worker while it exports half a million, two million and five million events to a folder. The
// worker runs as it ships, and each run starts like "run now". Sizes are in millions.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { insertBatchExport } from '../../exports/rows/batch-exports.ts';
import { createEvents, repeatEvents, spanOf } from '../export-formats/dataset.ts';
import { type ExportStack, startExportStack } from '../export-stack.ts';

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '0.5,2,5' },
    write: { type: 'boolean', default: false },
  },
});
const sizes = values.sizes.split(',').map((millions) => Number(millions) * 1_000_000);
const DRAWN = 500_000;
const WAYS = [
  { file_format: 'JSONLines', compression: 'zstd' },
  { file_format: 'Parquet', compression: 'zstd' },
];
const MOST_MEGABYTES = 150;

async function fill(stack: ExportStack): Promise<Date> {
  const start = new Date();
  await ensureEventPartitions(stack.pool, start, 1);
  const client = new pg.Client({ connectionString: stack.url });
  await client.connect();
  const most = Math.max(...sizes);
  const drawn = Math.min(most, DRAWN);
  await createEvents(client, drawn, start);
  await repeatEvents(client, drawn, most, start);
  await client.end();
  return start;
}

async function exportOnce({ pool, schedules, worker }: ExportStack, start: Date, rows: number, way: object) {
  const row = await insertBatchExport(pool, {
    project_id: 1,
    name: 'bench',
    model: 'events',
    interval: 'hour',
    paused: true,
    destination_type: 'File',
    config: { directory: randomUUID(), prefix: '', ...way },
  });
  await pool.query('checkpoint');
  const idle = worker.memory;
  worker.forgetPeak();
  const cpu = worker.cpu;
  const { workflowId } = await schedules.exports.startRun(
    row,
    {
      start: start.toISOString(),
      end: new Date(start.getTime() + spanOf(rows)).toISOString(),
    },
    'repair',
  );
  for (;;) {
    await pause(200);
    const found = await pool.query(
      `select status, records_completed::int as records, latest_error,
         extract(epoch from finished_at - created_at)::float8 as seconds
       from batch_export_runs where workflow_id = $1 and finished_at is not null`,
      [workflowId],
    );
    const run = found.rows[0];
    if (!run) continue;
    if (run.status !== 'Completed' || run.records !== rows) throw new Error(JSON.stringify(run));
    return {
      ...{ rows, ...way, seconds: Number(run.seconds.toFixed(1)) },
      workerCpuMicrosecondsPerRow: Number((((worker.cpu - cpu) / rows) * 1e6).toFixed(2)),
      ...{ idleMegabytes: idle, peakMegabytes: worker.peakMemory },
    };
  }
}

const stack = await startExportStack();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stack.stop().finally(() => process.exit(1)));
try {
  const start = await fill(stack);
  // Only past intervals can be exported.
  await pause(Math.max(0, start.getTime() + spanOf(Math.max(...sizes)) - Date.now()) + 1_000);
  // A new worker uses less memory than one that has exported before.
  for (const way of WAYS) await exportOnce(stack, start, Math.min(...sizes), way);
  const results = [];
  for (const way of WAYS) {
    for (const rows of sizes) {
      await pause(5_000);
      const result = await exportOnce(stack, start, rows, way);
      console.error(JSON.stringify(result));
      results.push(result);
    }
  }
  const most = Math.max(...results.map((one) => one.peakMegabytes - one.idleMegabytes));
  console.log(JSON.stringify(results, null, 2));
  console.log(
    `${most <= MOST_MEGABYTES ? 'met' : 'MISSED'}: the worker grows by ${most} MB at most (goal: ${MOST_MEGABYTES})`,
  );
  if (values.write)
    writeFileSync(path.join(import.meta.dirname, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
} finally {
  await stack.stop();
}
