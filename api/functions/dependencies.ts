import { stepsOf, versionsOf } from '../../actions/reads/steps-of.ts';
import { cohortsToInline } from '../../cohorts/reads/reached-cohorts.ts';
import type { Pool } from '../../db/pool.ts';
import { AccessTokenError } from '../../egress/google-tokens.ts';
import type { FunctionCommandDependencies } from '../../functions/commands/dependencies.ts';
import type { ReplayDependencies } from '../../functions/commands/replay.ts';
import type { TryDependencies } from '../../functions/commands/try-function.ts';
import { IntegrationError, type Integrations } from '../../functions/effects.ts';
import { findTemplate } from '../../functions/templates/index.ts';
import { createCredentials } from '../../integrations/credentials.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** What the routes of functions need: what their commands need, and the address of the API for links. */
export interface FunctionRouteDependencies
  extends FunctionCommandDependencies,
    Omit<TryDependencies, 'read'>,
    ReplayDependencies {
  publicUrl: string;
  readingPool: Pool;
}

export const functionRouteDependencies = (deps: ApiDependencies): FunctionRouteDependencies => ({
  pool: deps.pool,
  readingPool: deps.readingPool,
  temporal: deps.schedules.functions,
  logger: deps.logger,
  compiler: deps.functionCompiler,
  compiling: deps.compiling,
  keyring: deps.keyring,
  runner: deps.functionRunner,
  egress: deps.egress,
  integrations: integrationsOf(deps),
  actions: { steps: stepsOf, versions: versionsOf },
  cohorts: cohortsToInline,
  template: findTemplate,
  mostFunctions: deps.config.SLUICE_FUNCTIONS_PER_PROJECT,
  publicUrl: deps.config.SLUICE_PUBLIC_URL,
});

export function integrationsOf(deps: Parameters<typeof createCredentials>[0]): Integrations {
  const credentials = createCredentials(deps);
  return {
    ...credentials,
    resolve: (...args) =>
      credentials.resolve(...args).catch((error: unknown) => {
        throw error instanceof AccessTokenError ? new IntegrationError(error.message) : error;
      }),
  };
}
