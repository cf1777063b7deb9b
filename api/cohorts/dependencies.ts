import type { CohortCommandDependencies } from '../../cohorts/commands/save.ts';
import { exportsAsking } from '../../exports/rows/batch-exports.ts';
import { flagsAsking } from '../../flags/rows/definitions.ts';
import { functionsAsking } from '../../functions/rows/functions.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** What the commands of cohorts work with. */
export const cohortCommands = ({
  pool,
  config,
}: Pick<ApiDependencies, 'pool' | 'config'>): CohortCommandDependencies => ({
  ...{ pool, flagsAsking, exportsAsking, functionsAsking },
  limits: { bytes: config.SLUICE_COHORT_BYTES_PER_PROJECT },
});
