import type { ActivityDependencies } from './dependencies.ts';
import { createBackfillActivities } from './exports/backfill.ts';
import { createCheckSources } from './exports/check-sources.ts';
import { createExportDriftActivities } from './exports/drift.ts';
import { createExportHistoryActivities } from './exports/history.ts';
import { createReconcileExports } from './exports/reconcile.ts';

/** What keeps batch exports complete: backfills, repair, reconciliation, and deleting what is old. */
export function createExportUpkeepActivities(deps: ActivityDependencies) {
  return {
    ...createBackfillActivities(deps),
    ...createExportDriftActivities(deps),
    reconcilePage: createReconcileExports(deps),
    checkSources: createCheckSources(deps),
    ...createExportHistoryActivities(deps),
  };
}
