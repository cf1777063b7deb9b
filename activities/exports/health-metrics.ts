import type { Pool } from '../../db/pool.ts';
import { listUnhealthy, secondsSinceChecked, sumHealth } from '../../exports/rows/health.ts';
import { Gauge, type Registry } from '../../telemetry/metrics.ts';

/** Exports that are named one by one; the sums have all of them. */
const MOST_NAMED = 200;

/**
 * How complete batch exports are, as the last reconciliation found it. Read from the database when somebody asks, so
 * that every worker says the same, whichever of them reconciled.
 */
export function registerHealthMetrics(registry: Registry, pool: Pool): void {
  const registers = [registry];
  new Gauge({
    name: 'sluice_export_intervals',
    help: 'Intervals of batch exports of the last days that are missing, late, or differ from the database.',
    labelNames: ['state'],
    registers,
    async collect() {
      const { missing, late, differs } = await sumHealth(pool);
      this.set({ state: 'missing' }, missing);
      this.set({ state: 'late' }, late);
      this.set({ state: 'differs' }, differs);
    },
  });
  new Gauge({
    name: 'sluice_export_behind_seconds',
    help: 'How far a batch export is behind that is late: from the first interval that is not done. None: nothing is.',
    labelNames: ['project', 'export', 'destination'],
    registers,
    async collect() {
      this.reset();
      for (const one of await listUnhealthy(pool, MOST_NAMED)) {
        const labels = {
          project: String(one.project_id),
          export: one.batch_export_id,
          destination: one.destination_type,
        };
        this.set(labels, one.lag_seconds);
      }
    },
  });
  new Gauge({
    name: 'sluice_export_unchecked_seconds',
    help: 'How long ago the batch export was looked at that was not for longest; every five minutes all should be.',
    registers,
    async collect() {
      this.reset();
      const seconds = await secondsSinceChecked(pool);
      if (seconds !== null) this.set(seconds);
    },
  });
}
