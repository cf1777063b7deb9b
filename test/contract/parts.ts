import { createActivities, createHeavyActivities } from '../../activities/index.ts';
import { registerCarryingMetrics } from '../../capture/carrying-metrics.ts';
import { LOCKS } from '../../db/locks.ts';
import type { Pool } from '../../db/pool.ts';
import { createExportMetrics } from '../../exports/runs/metrics.ts';
import { PRODUCTS } from '../../products.ts';
import { createRegistry, type Registry } from '../../telemetry/metrics.ts';
import * as workflows from '../../workflows/index.ts';

/** The metrics of a worker. */
export function workerRegistry(pool: Pool): Registry {
  const registry = createRegistry('worker');
  createExportMetrics(registry);
  registerCarryingMetrics(registry, pool);
  for (const product of PRODUCTS) product.registerMetrics?.(registry, pool);
  return registry;
}

export const workflowNames = (): string[] => Object.keys(workflows);

/** Names only: none of them is run. */
export function activityNames(): string[] {
  const deps = { exports: {}, schedules: {}, products: PRODUCTS } as unknown as Parameters<
    typeof createActivities
  >[0];
  return [...Object.keys(createActivities(deps)), ...Object.keys(createHeavyActivities(deps, 'exports'))];
}

/** Every advisory lock by name. */
export const lockNumbers = (): Record<string, number> =>
  Object.assign({}, LOCKS, ...PRODUCTS.map((one) => one.lockKinds));
