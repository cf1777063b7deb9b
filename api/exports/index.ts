import { knownCohorts } from '../../cohorts/rows/definitions.ts';
import { withWholeQueries } from '../../exports/whole-queries.ts';
import { compilesWhole } from '../../queries/whole.ts';
import { type ApiDependencies, type App, exportRouteDependencies } from '../dependencies.ts';
import { backfillRoutes } from './backfills.ts';
import { intervalRoutes } from './intervals.ts';
import { logRoutes } from './logs.ts';
import { metricRoutes } from './metrics.ts';
import { pausingRoutes } from './pausing.ts';
import { previewRoutes } from './preview.ts';
import { resourceRoutes } from './resource.ts';
import { runNowRoutes } from './run-now.ts';
import { runRoutes } from './runs.ts';
import { testRoutes } from './tests.ts';
import { verifyRoutes } from './verify.ts';

/** Adds all routes of batch exports. */
export function batchExportRoutes(app: App, api: ApiDependencies): void {
  const shared = exportRouteDependencies(api);
  const compiler = withWholeQueries(shared.compiler, {
    compile: compilesWhole(api),
    seconds: api.config.SLUICE_EXPORT_QUERY_SECONDS,
  });
  const deps = { ...shared, compiler, knownCohorts };
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
