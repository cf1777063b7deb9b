import { secondsBehind } from '../db/person-carrying.ts';
import type { Pool } from '../db/pool.ts';
import { Gauge, type Registry } from '../telemetry/metrics.ts';

/** Adds the metric that shows how old the copied properties of persons are. Every worker shows the same value. */
export function registerCarryingMetrics(registry: Registry, pool: Pool): void {
  new Gauge({
    name: 'sluice_persons_behind_seconds',
    help: 'How old the copied properties of persons are: the events that were stored since then are not carried into them yet.',
    registers: [registry],
    async collect() {
      // Before the first event, nothing is old.
      this.set((await secondsBehind(pool)) ?? 0);
    },
  });
}
