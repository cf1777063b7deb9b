import type { ApiDependencies, App } from '../dependencies.ts';
import { checkRoutes } from './check.ts';
import { functionRouteDependencies } from './dependencies.ts';
import { draftRoutes } from './drafts.ts';
import { historyRoutes } from './history.ts';
import { iconRoutes } from './icons.ts';
import { invocationRoutes } from './invocations.ts';
import { maskedSecretRoutes } from './masked-secrets.ts';
import { observationRoutes } from './observations.ts';
import { previewRoutes } from './preview.ts';
import { replayRoutes } from './replays.ts';
import { resourceRoutes } from './resource.ts';
import { revisionRoutes } from './revisions.ts';
import { templateRoutes } from './templates.ts';

/** Adds all routes of functions. */
export function functionRoutes(app: App, api: ApiDependencies): void {
  const deps = functionRouteDependencies(api);
  resourceRoutes(app, deps);
  draftRoutes(app, deps);
  revisionRoutes(app, deps);
  maskedSecretRoutes(app, deps);
  checkRoutes(app, deps);
  invocationRoutes(app, deps);
  previewRoutes(app, deps);
  historyRoutes(app, deps);
  replayRoutes(app, deps);
  observationRoutes(app, deps);
  templateRoutes(app, deps);
  iconRoutes(app);
}
