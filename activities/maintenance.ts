import { CAPTURE_STEPS } from '../capture/maintenance.ts';
import { TENANCY_STEPS } from '../tenancy/maintenance.ts';
import type { MaintenanceStep } from '../tenancy/product.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { inActivity } from './work.ts';

/** What the workflow needs to know about a step. The activity with the name of the step does its work. */
export type ListedStep = Pick<MaintenanceStep<never>, 'name' | 'summary' | 'after' | 'longestMilliseconds'>;

export interface MaintenanceActivities {
  /** Lists the steps of capture, tenancy and all products. */
  listMaintenanceSteps(): Promise<ListedStep[]>;
}

/** Refuses steps with equal names, one of which would never run, and a step that waits for a later one. */
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

/** Makes an activity of each step of maintenance, and the activity that lists the steps. */
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
      return steps.map(({ name, summary, after, longestMilliseconds }) => ({
        ...{ name, summary },
        ...(after ? { after } : {}),
        ...(longestMilliseconds ? { longestMilliseconds } : {}),
      }));
    },
  };
}
