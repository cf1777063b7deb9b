import { CAPTURE_STEPS } from '../capture/maintenance.ts';
import { TENANCY_STEPS } from '../tenancy/maintenance.ts';
import type { MaintenanceStep } from '../tenancy/product.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { inActivity } from './work.ts';

/** What the workflow needs to know of a step; the activity of the same name does it. */
export type ListedStep = Pick<MaintenanceStep<never>, 'name' | 'summary' | 'after'>;

export interface MaintenanceActivities {
  /** Lists the steps of capture, tenancy and all products. */
  listMaintenanceSteps(): Promise<ListedStep[]>;
}

/** A step with a name that is taken would never run, and one that waits for a later one might wait for ever. */
function requireOrder(steps: readonly ListedStep[]): void {
  const names = new Set<string>();
  for (const { name, after } of steps) {
    if (names.has(name)) throw new Error(`two steps of maintenance are called ${name}`);
    if (after !== undefined && !names.has(after)) {
      throw new Error(`the step ${name} of maintenance comes after ${after}, which is not listed before it`);
    }
    names.add(name);
  }
}

/** Each step of maintenance as an activity of its own name, beside the one that lists them. */
export function createMaintenanceActivities(deps: ActivityDependencies): MaintenanceActivities {
  const steps: MaintenanceStep<ActivityDependencies>[] = [
    ...CAPTURE_STEPS,
    ...TENANCY_STEPS,
    ...deps.products.flatMap((one) => one.maintenance),
  ];
  requireOrder(steps);
  const activities = steps.map(({ name, run }) => [name, () => inActivity((work) => run(deps, work))]);
  return {
    ...Object.fromEntries(activities),
    async listMaintenanceSteps() {
      return steps.map(({ name, summary, after }) => ({ name, summary, ...(after ? { after } : {}) }));
    },
  };
}
