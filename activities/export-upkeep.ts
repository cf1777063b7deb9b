import type { ActivityDependencies } from './dependencies.ts';
import { createBackfillActivities } from './exports/backfill.ts';
import { createCheckSources } from './exports/check-sources.ts';
import { createReconcileExports } from './exports/reconcile.ts';

/** What keeps batch exports complete: backfills and reconciliation. */
export function createExportUpkeepActivities(deps: ActivityDependencies) {
  return {
    ...createBackfillActivities(deps),
    reconcilePage: createReconcileExports(deps),
    checkSources: createCheckSources(deps),
  };
}
