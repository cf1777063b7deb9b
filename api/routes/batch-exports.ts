import type { ApiDependencies, App } from '../dependencies.ts';
import { pausingRoutes } from './batch-exports/pausing.ts';
import { resourceRoutes } from './batch-exports/resource.ts';

/** Batch exports and everything that stands below one of them. */
export function batchExportRoutes(app: App, deps: ApiDependencies): void {
  resourceRoutes(app, deps);
  pausingRoutes(app, deps);
}
