import type { ApiDependencies, App } from '../dependencies.ts';
import { functionRouteDependencies } from './dependencies.ts';
import { resourceRoutes } from './resource.ts';

/** Adds all routes of functions. */
export function functionRoutes(app: App, api: ApiDependencies): void {
  resourceRoutes(app, functionRouteDependencies(api));
}
