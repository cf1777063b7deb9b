import type { Pool } from '../../db/pool.ts';
import { Gauge, type Registry } from '../../telemetry/metrics.ts';
import { backlogSizes, dispatchBacklog } from '../rows/backlog.ts';

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
