import type { ApiDependencies, App } from '../dependencies.ts';
import { backfillRoutes } from './batch-exports/backfills.ts';
import { intervalRoutes } from './batch-exports/intervals.ts';
import { logRoutes } from './batch-exports/logs.ts';
import { metricRoutes } from './batch-exports/metrics.ts';
import { pausingRoutes } from './batch-exports/pausing.ts';
import { previewRoutes } from './batch-exports/preview.ts';
import { resourceRoutes } from './batch-exports/resource.ts';
import { runNowRoutes } from './batch-exports/run-now.ts';
import { runRoutes } from './batch-exports/runs.ts';
import { testRoutes } from './batch-exports/tests.ts';
import { verifyRoutes } from './batch-exports/verify.ts';

/** Batch exports and everything that stands below one of them. */
export function batchExportRoutes(app: App, deps: ApiDependencies): void {
  resourceRoutes(app, deps);
  pausingRoutes(app, deps);
  runRoutes(app, deps);
  backfillRoutes(app, deps);
  runNowRoutes(app, deps);
  intervalRoutes(app, deps);
  previewRoutes(app, deps);
  logRoutes(app, deps);
  metricRoutes(app, deps);
  testRoutes(app, deps);
  verifyRoutes(app, deps);
}
