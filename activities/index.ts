import type { ActivityDependencies } from './dependencies.ts';
import { createExportActivities, type createHeavyActivities } from './exports.ts';
import { createMaintenanceActivities } from './maintenance.ts';

export type { ActivityDependencies } from './dependencies.ts';
export { createHeavyActivities } from './exports.ts';

/** Every activity of Sluice but the heavy ones. Each is one step of I/O that can be repeated. */
export function createActivities(deps: ActivityDependencies) {
  return {
    ...createMaintenanceActivities(deps),
    ...createExportActivities(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;
export type HeavyActivities = ReturnType<typeof createHeavyActivities>;
