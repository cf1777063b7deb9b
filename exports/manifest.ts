import type { Product } from '../tenancy/product.ts';
import { LOCK_KINDS } from './rows/locks.ts';
import type { RunDependencies } from './runs/dependencies.ts';
import { registerHealthMetrics } from './runs/metrics.ts';
import { removeLeftovers } from './runs/traces.ts';
import { endOrphanedRuns, expireExportHistory, mendBackfills, repairExportSchedules } from './runs/upkeep.ts';
import { keepPlaces } from './runs/worker-place.ts';

/** Describes batch exports to the rest of Sluice. */
export const EXPORTS: Product<{ exports: RunDependencies }> = {
  name: 'exports',
  docs: 'docs/exports.md',
  tables: [
    { name: 'batch_exports', kind: 'configuration' },
    { name: 'batch_export_places', kind: 'configuration' },
    { name: 'batch_export_turns', kind: 'configuration' },
    { name: 'batch_export_runs', kind: 'configuration' },
    { name: 'batch_export_backfills', kind: 'configuration' },
    { name: 'batch_export_logs', kind: 'configuration' },
    { name: 'batch_export_metrics', kind: 'configuration' },
    { name: 'batch_export_pauses', kind: 'configuration' },
    { name: 'batch_export_checks', kind: 'configuration' },
    { name: 'batch_export_health', kind: 'configuration' },
    // Kept for an hour at most, so that what a deleted export left is removed.
    { name: 'batch_export_traces', kind: 'history' },
  ],
  sealed: [
    { table: 'batch_exports', column: 'secrets' },
    { table: 'batch_export_traces', column: 'secrets' },
  ],
  scopes: ['batch_export'],
  lockKinds: LOCK_KINDS,
  maintenance: [
    {
      name: 'repairExportSchedules',
      summary: 'schedules repaired',
      run: ({ exports }, work) => repairExportSchedules(exports, work),
    },
    {
      name: 'endOrphanedRuns',
      summary: 'runs without a workflow ended',
      run: ({ exports }, work) => endOrphanedRuns(exports, work),
    },
    {
      name: 'keepPlaces',
      summary: 'places of workers repaired',
      run: ({ exports }, work) => keepPlaces(exports, work),
    },
    {
      name: 'removeExportLeftovers',
      summary: 'files of ended attempts removed',
      run: ({ exports }, work) => removeLeftovers(exports, work),
    },
    {
      name: 'mendBackfills',
      summary: 'backfills without a workflow started or ended',
      run: ({ exports }, work) => mendBackfills(exports, work),
    },
    {
      name: 'expireExportHistory',
      summary: 'rows of export history expired',
      run: ({ exports }, work) => expireExportHistory(exports, work),
    },
  ],
  registerMetrics: registerHealthMetrics,
};
