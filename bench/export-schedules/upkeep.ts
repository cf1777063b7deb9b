import { setTimeout as pause } from 'node:timers/promises';
import { Client, Connection, type ScheduleHandle } from '@temporalio/client';
import { loadConfig } from '../../config.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { RECONCILE_EXPORTS } from '../../workflows/names.ts';
import type { ReconcileReport } from '../../workflows/reconcile-exports.ts';

const MINUTE = 60_000;
const PATIENCE = 5 * MINUTE;
const EACH = 20;

type Harm = (schedule: ScheduleHandle) => Promise<unknown>;
/** Changes that somebody can make to a schedule outside of Sluice. */
const HARMS: Record<string, Harm> = {
  deleted: (schedule) => schedule.delete(),
  paused: (schedule) => schedule.pause('by hand'),
  retimed: (schedule) =>
    schedule.update((previous) => ({ ...previous, spec: { intervals: [{ every: '7 minutes' }] } })),
};

async function isWhole(schedule: ScheduleHandle): Promise<boolean> {
  const found = await schedule.describe().catch(() => undefined);
  const every = found?.spec.intervals?.[0]?.every;
  return found !== undefined && !found.state.paused && every !== 7 * MINUTE;
}

const rounded = (seconds: number) => Number(seconds.toFixed(1));

export interface Upkeep {
  /** The seconds until a changed schedule matches its row again. */
  restoredSeconds: { schedules: number; median: number; most: number };
  /** One reconciliation of all exports, with nothing else running. */
  reconcile: { exports: number; seconds: number; workerCpuSeconds: number; transactions: number };
}

/** Measures how long the worker takes to find and restore changed schedules, and to check every export once. */
export async function measureUpkeep(
  { address, rows }: { address: string; rows: readonly BatchExportRow[] },
  usage: { workerCpu: () => number; transactions: () => Promise<number> },
): Promise<Upkeep> {
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  try {
    const began = performance.now();
    const harmed = await Promise.all(
      Object.values(HARMS).flatMap((harm, kind) =>
        Array.from({ length: EACH }, async (_, index) => {
          const row = rows[(kind * EACH + index) * Math.floor(rows.length / (3 * EACH))] as BatchExportRow;
          const schedule = client.schedule.getHandle(row.id);
          await harm(schedule);
          return { schedule, since: performance.now() };
        }),
      ),
    );
    const restored: number[] = [];
    let open = harmed;
    while (open.length > 0 && performance.now() - began < PATIENCE) {
      const still: typeof open = [];
      for (const one of open) {
        if (await isWhole(one.schedule)) restored.push((performance.now() - one.since) / 1000);
        else still.push(one);
      }
      open = still;
      await pause(500);
    }
    if (open.length > 0) throw new Error(`${open.length} schedules were not restored in time.`);

    const before = { cpu: usage.workerCpu(), transactions: await usage.transactions() };
    const triggered = performance.now();
    const report: ReconcileReport = await client.workflow.execute(RECONCILE_EXPORTS, {
      workflowId: `reconcile-${triggered}`,
      taskQueue: loadConfig({}).SLUICE_TASK_QUEUE,
    });
    return {
      restoredSeconds: {
        schedules: restored.length,
        median: rounded(restored.sort((a, b) => a - b)[restored.length >> 1] as number),
        most: rounded(restored.at(-1) as number),
      },
      reconcile: {
        exports: report.exports,
        seconds: rounded((performance.now() - triggered) / 1000),
        workerCpuSeconds: rounded(usage.workerCpu() - before.cpu),
        transactions: (await usage.transactions()) - before.transactions,
      },
    };
  } finally {
    await connection.close();
  }
}
