import type { ActivityDependencies } from '../activities/dependencies.ts';
import { createExportDriftActivities } from '../activities/exports/drift.ts';
import { registerHealthMetrics } from '../activities/exports/health-metrics.ts';
import { createExportHistoryActivities } from '../activities/exports/history.ts';
import type { Product } from '../tenancy/product.ts';
import { LOCK_KINDS } from './rows/locks.ts';

type ExportUpkeep = Pick<
  ActivityDependencies,
  'pool' | 'schedules' | 'logger' | 'exportLogDays' | 'exportRunDays'
>;

/** What batch exports tell the house. */
export const EXPORTS: Product<ExportUpkeep> = {
  name: 'exports',
  docs: 'docs/exports.md',
  tables: [
    { name: 'batch_exports', kind: 'configuration' },
    { name: 'batch_export_runs', kind: 'configuration' },
    { name: 'batch_export_backfills', kind: 'configuration' },
    { name: 'batch_export_logs', kind: 'configuration' },
    { name: 'batch_export_metrics', kind: 'configuration' },
    { name: 'batch_export_pauses', kind: 'configuration' },
    { name: 'batch_export_checks', kind: 'configuration' },
    { name: 'batch_export_health', kind: 'configuration' },
  ],
  sealed: [{ table: 'batch_exports', column: 'secrets' }],
  scopes: ['batch_export'],
  lockKinds: LOCK_KINDS,
  maintenance: [
    {
      name: 'repairExportSchedules',
      summary: 'schedules repaired',
      run: (deps) => createExportDriftActivities(deps).repairExportSchedules(),
    },
    {
      name: 'endOrphanedRuns',
      summary: 'runs ended whose workflow is gone',
      run: (deps) => createExportDriftActivities(deps).endOrphanedRuns(),
    },
    {
      name: 'mendBackfills',
      summary: 'backfills mended whose workflow is gone',
      run: (deps) => createExportDriftActivities(deps).mendBackfills(),
    },
    {
      name: 'expireExportHistory',
      summary: 'rows of export history expired',
      run: (deps) => createExportHistoryActivities(deps).expireExportHistory(),
    },
  ],
  registerMetrics: registerHealthMetrics,
};
