import type { Pool } from '../../db/pool.ts';
import { SYSTEM } from '../../tenancy/actor.ts';
import type { Work } from '../../tenancy/product.ts';
import { advanceSurvey, type SurveyFlags } from '../commands/surveys.ts';
import { repeatedSurveys } from '../rows/surveys.ts';
import { iterationAt } from '../rules/surveys.ts';
import { eachAlone } from './each-alone.ts';

export interface SurveyRunDependencies {
  pool: Pool;
  flags: Pick<SurveyFlags, 'change'>;
}

const AT_ONCE = 1_000;
const FIRST = '00000000-0000-0000-0000-000000000000';

/** Finds the repeated surveys whose iteration is not the one that should run. */
async function* due(pool: Pool, now: () => number) {
  for (let after = FIRST; ; ) {
    const some = await repeatedSurveys(pool, after, AT_ONCE);
    yield* some.filter((survey) => iterationAt(survey, now()) !== survey.current_iteration);
    const last = some.at(-1);
    if (!last || some.length < AT_ONCE) return;
    after = last.id;
  }
}

/**
 * Lets iterations of surveys begin whose time has come, and ends surveys after their last one. A survey that cannot go on,
 * because somebody has taken its flag away, fails alone.
 */
export const advanceSurveys = (
  deps: SurveyRunDependencies,
  work: Work,
  now: () => number = Date.now,
): Promise<number> =>
  eachAlone(due(deps.pool, now), work, async (survey) => {
    const key = { projectId: survey.project_id, surveyId: survey.id };
    return (await advanceSurvey(deps, SYSTEM, key, now())) ? 1 : 0;
  });
