import type { Warnings } from '../capture/warnings.ts';
import { actionRoutes } from './actions/actions.ts';
import { annotationRoutes } from './annotations/annotations.ts';
import { browserScriptRoutes } from './browser-scripts.ts';
import { captureRoutes } from './capture/routes.ts';
import { cohortRoutes } from './cohorts/cohorts.ts';
import type { ApiDependencies, App } from './dependencies.ts';
import { definitionRoutes } from './events/definitions.ts';
import { eventRoutes } from './events/events.ts';
import { ingestionWarningRoutes } from './events/ingestion-warnings.ts';
import { liveEventRoutes } from './events/live/live.ts';
import type { LiveEvents } from './events/live/live-events.ts';
import { traceRoutes } from './events/trace.ts';
import { eventValueRoutes } from './events/values.ts';
import { batchExportRoutes } from './exports/index.ts';
import { flagCopyRoutes } from './flags/copies.ts';
import { flagDefinitionRoutes } from './flags/definitions.ts';
import type { Flags } from './flags/dependencies.ts';
import { earlyAccessRoutes, offeredFeatureRoutes } from './flags/early-access-features.ts';
import { flagRoutes } from './flags/evaluate.ts';
import { flagEvaluationRoutes } from './flags/evaluations.ts';
import { flagExplanationRoutes } from './flags/explanations.ts';
import { featureFlagRoutes } from './flags/feature-flags.ts';
import { flagListRoutes } from './flags/flag-lists.ts';
import { flagPayloadRoutes } from './flags/payload-routes.ts';
import { rolloutRoutes } from './flags/rollouts.ts';
import { scheduledChangeRoutes } from './flags/scheduled-changes.ts';
import { flagTrialRoutes } from './flags/trials.ts';
import { flagUsageRoutes } from './flags/usage.ts';
import { iconFiles } from './functions/icons.ts';
import { functionRoutes } from './functions/index.ts';
import { webhookRoutes } from './functions/webhooks.ts';
import { integrationRoutes } from './integrations/integrations.ts';
import { groupRoutes } from './people/groups.ts';
import { personRoutes } from './people/persons.ts';
import type { Lane } from './public/lane.ts';
import { queryRoutes } from './queries/query.ts';
import { remoteConfigRoutes } from './remote-config.ts';
import { type OfferedSurveys, offeredSurveyRoutes } from './surveys/offered.ts';
import { surveyRoutes } from './surveys/surveys.ts';
import { activityLogRoutes } from './tenancy/activity-log.ts';
import { memberRoutes } from './tenancy/members.ts';
import { organizationRoutes } from './tenancy/organizations.ts';
import { personalApiKeyRoutes } from './tenancy/personal-api-keys.ts';
import { projectRoutes } from './tenancy/projects.ts';
import { userRoutes } from './tenancy/users.ts';
import { wizardRoutes } from './tenancy/wizard.ts';

/** What routes work with. */
export interface RouteDependencies extends ApiDependencies {
  /** Warnings of this process that are not stored yet. */
  warnings: Warnings;
  flags: Flags;
  surveys: OfferedSurveys;
  live: LiveEvents;
}

export interface Routes {
  /** Those that join the public lane. */
  public: readonly ((lane: Lane, deps: RouteDependencies) => void)[];
  /** Those of the management API, behind its access control. */
  management: readonly ((app: App, deps: RouteDependencies) => void)[];
}

/** All routes of Sluice, in the order of the OpenAPI document. */
export const ROUTES: Routes = {
  public: [
    captureRoutes,
    flagRoutes,
    offeredFeatureRoutes,
    offeredSurveyRoutes,
    remoteConfigRoutes,
    browserScriptRoutes,
    iconFiles,
    webhookRoutes,
  ],
  management: [
    organizationRoutes,
    memberRoutes,
    projectRoutes,
    userRoutes,
    personalApiKeyRoutes,
    activityLogRoutes,
    eventRoutes,
    liveEventRoutes,
    eventValueRoutes,
    definitionRoutes,
    queryRoutes,
    traceRoutes,
    personRoutes,
    groupRoutes,
    batchExportRoutes,
    actionRoutes,
    functionRoutes,
    integrationRoutes,
    cohortRoutes,
    flagCopyRoutes,
    flagDefinitionRoutes,
    flagEvaluationRoutes,
    flagUsageRoutes,
    featureFlagRoutes,
    flagListRoutes,
    flagPayloadRoutes,
    flagExplanationRoutes,
    flagTrialRoutes,
    rolloutRoutes,
    scheduledChangeRoutes,
    earlyAccessRoutes,
    surveyRoutes,
    annotationRoutes,
    wizardRoutes,
    ingestionWarningRoutes,
  ],
};
