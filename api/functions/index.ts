import type { ApiDependencies, App } from '../dependencies.ts';
import { functionRouteDependencies } from './dependencies.ts';
import { invocationRoutes } from './invocations.ts';
import { observationRoutes } from './observations.ts';
import { previewRoutes } from './preview.ts';
import { resourceRoutes } from './resource.ts';
import { templateRoutes } from './templates.ts';

/** Adds all routes of functions. */
export function functionRoutes(app: App, api: ApiDependencies): void {
  const deps = functionRouteDependencies(api);
  resourceRoutes(app, deps);
  invocationRoutes(app, deps);
  previewRoutes(app, deps);
  observationRoutes(app, deps);
  templateRoutes(app, deps);
}
