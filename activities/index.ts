import type { ActivityDependencies } from './dependencies.ts';
import { createExportDriftActivities } from './export-drift.ts';
import { createExportRetentionActivities } from './export-retention.ts';
import { createMaintenanceActivities } from './maintenance.ts';

/** Every activity of Sluice. Each is one step of I/O that can be repeated. */
export function createActivities(deps: ActivityDependencies) {
  return {
    ...createMaintenanceActivities(deps),
    ...createExportDriftActivities(deps),
    ...createExportRetentionActivities(deps),
  };
}

export type Activities = ReturnType<typeof createActivities>;
