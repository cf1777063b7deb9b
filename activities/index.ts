import type { ActivityDependencies } from './dependencies.ts';
import { createExportActivities, type createHeavyActivities } from './exports.ts';
import { createFlagActivities } from './flags.ts';
import { createFunctionActivities } from './functions.ts';
import { createMaintenanceActivities } from './maintenance.ts';

export type { ActivityDependencies } from './dependencies.ts';
export { createHeavyActivities } from './exports.ts';

/** Makes all activities of Sluice except the heavy ones. Each is one step of I/O that can be repeated. */
export function createActivities(deps: ActivityDependencies) {
  const maintenance = createMaintenanceActivities(deps);
  const others = {
    ...createExportActivities(deps),
    ...createFunctionActivities(deps),
    ...createFlagActivities(deps),
  };
  const taken = Object.keys(maintenance).find((name) => name in others);
  if (taken !== undefined)
    throw new Error(`the step ${taken} of maintenance has the name of another activity`);
  return { ...maintenance, ...others };
}

export type Activities = ReturnType<typeof createActivities>;
export type HeavyActivities = ReturnType<typeof createHeavyActivities>;
