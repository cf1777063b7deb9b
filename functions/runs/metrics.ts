import type { Pool } from '../../db/pool.ts';
import { Gauge, type Registry } from '../../telemetry/metrics.ts';
import { backlogSizes, dispatchBacklog } from '../rows/backlog.ts';
import { type Measured, oldestWaiting, worstSuccess } from '../rows/health.ts';
import { lossesSince } from '../rows/losses.ts';

/** How many functions a metric lists, so that there are never more series. */
const LISTED = 20;

/**
 * Adds metrics that show how far functions are behind. They are read from the database when the metrics are scraped, so
 * every worker shows the same values.
 */
export function registerBacklogMetrics(registry: Registry, pool: Pool): void {
  const registers = [registry];
  const gauge = (name: string, help: string, value: () => Promise<number>) =>
    new Gauge({
      name: `sluice_function_${name}`,
      help,
      registers,
      async collect() {
        this.set(await value());
      },
    });
  const worst = (name: string, help: string, values: () => Promise<Measured[]>) =>
    new Gauge({
      name: `sluice_function_${name}`,
      help,
      registers,
      labelNames: ['project', 'function'],
      async collect() {
        this.reset();
        for (const { project_id: project, function_id, value } of await values()) {
          this.set({ project, function: function_id }, value);
        }
      },
    });
  worst(
    'oldest_waiting_seconds',
    `For how long the oldest waiting invocation of a function has waited: of the ${LISTED} functions with the oldest.`,
    () => oldestWaiting(pool, LISTED),
  );
  worst(
    'success_ratio',
    `Which part of the invocations of a function succeeded in this hour and the one before: of the ${LISTED} functions of which most failed.`,
    () => worstSuccess(pool, LISTED),
  );
  gauge(
    'events_lost',
    'Events that retention deleted in the last 7 days before functions had seen them.',
    () => lossesSince(pool, new Date(Date.now() - 7 * 86_400_000)),
  );
  const sizes = () => backlogSizes(pool);
  gauge(
    'waiting',
    'Invocations of functions that wait, counted up to 100,000.',
    async () => (await sizes()).waiting,
  );
  gauge(
    'overdue_seconds',
    'For how long the invocation is due that has been due for longest.',
    async () => (await sizes()).overdue,
  );
  gauge(
    'failed_open',
    'Failed invocations that were neither dismissed nor run again, counted up to 100,000.',
    async () => (await sizes()).failed,
  );
  gauge(
    'batches_waiting',
    'Transactions with events that functions have not seen yet.',
    async () => (await dispatchBacklog(pool)).batches,
  );
  gauge(
    'behind_seconds',
    'Since when the oldest of these transactions waits.',
    async () => (await dispatchBacklog(pool)).oldest ?? 0,
  );
}
