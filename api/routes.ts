import type { Warnings } from '../capture/warnings.ts';
import type { ApiDependencies, App } from './dependencies.ts';
import { eventRoutes } from './events/events.ts';
import { ingestionWarningRoutes } from './events/ingestion-warnings.ts';
import { batchExportRoutes } from './exports/index.ts';
import { groupRoutes } from './people/groups.ts';
import { personRoutes } from './people/persons.ts';
import { activityLogRoutes } from './tenancy/activity-log.ts';
import { memberRoutes } from './tenancy/members.ts';
import { organizationRoutes } from './tenancy/organizations.ts';
import { personalApiKeyRoutes } from './tenancy/personal-api-keys.ts';
import { projectRoutes } from './tenancy/projects.ts';
import { userRoutes } from './tenancy/users.ts';
import { wizardRoutes } from './tenancy/wizard.ts';

/** What the routes of the management API work with. */
export interface ManagementDependencies extends ApiDependencies {
  /** Warnings of this process that are not stored yet. */
  warnings: Warnings;
}

/** Adds routes to the server. */
export type Routes = (app: App, deps: ManagementDependencies) => void;

/** All routes of the management API, in the order of the OpenAPI document. */
export const MANAGEMENT_ROUTES: readonly Routes[] = [
  organizationRoutes,
  memberRoutes,
  projectRoutes,
  userRoutes,
  personalApiKeyRoutes,
  activityLogRoutes,
  eventRoutes,
  personRoutes,
  groupRoutes,
  batchExportRoutes,
  wizardRoutes,
  ingestionWarningRoutes,
];
