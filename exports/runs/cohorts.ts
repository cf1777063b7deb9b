import type { ModelQuery } from '../../models/index.ts';
import type { RunDependencies } from './dependencies.ts';
import { CohortGoneError } from './source.ts';

/**
 * Makes sure that the members of the cohorts of a query are known before a run reads its rows. A cohort that was never counted
 * looks as if it had no members, so the attempt fails and is repeated until Sluice has counted it.
 */
export async function requireCohorts(
  { pool, cohortStates }: Pick<RunDependencies, 'pool' | 'cohortStates'>,
  projectId: number,
  { cohorts = [] }: Pick<ModelQuery, 'cohorts'>,
): Promise<void> {
  const ids = cohorts.map((one) => one.id);
  if (ids.length === 0) return;
  const states = await cohortStates(pool, projectId, ids);
  const missing = ids.find((id) => !states.some((one) => one.id === id));
  if (missing !== undefined) {
    throw new CohortGoneError(
      `There is no cohort ${missing} in this project, or it was deleted. Change the filters or the columns of this export.`,
    );
  }
  const unknown = states.find((one) => !one.is_known);
  if (!unknown) return;
  const why = unknown.count_error === null ? '' : `. The last count failed: ${unknown.count_error}`;
  throw new Error(`The members of the cohort ${unknown.id} are not counted yet${why}`);
}
