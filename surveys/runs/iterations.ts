import type { Pool } from '../../db/pool.ts';
import { SYSTEM } from '../../tenancy/actor.ts';
import type { Work } from '../../tenancy/product.ts';
import { advanceSurvey, type SurveyFlags } from '../commands/surveys.ts';
import { repeatedSurveys } from '../rows/surveys.ts';
import { iterationAt } from '../rules/surveys.ts';

export interface SurveyRunDependencies {
  pool: Pool;
  flags: Pick<SurveyFlags, 'change'>;
}

const AT_ONCE = 1_000;
const FIRST = '00000000-0000-0000-0000-000000000000';

/** Lets iterations of surveys begin whose time has come, and ends surveys after their last one. */
export async function advanceSurveys(
  deps: SurveyRunDependencies,
  { signal, beat }: Work,
  now: () => number = Date.now,
): Promise<number> {
  let advanced = 0;
  for (let after = FIRST; ; ) {
    const some = await repeatedSurveys(deps.pool, after, AT_ONCE);
    for (const survey of some) {
      signal.throwIfAborted();
      if (iterationAt(survey, now()) === survey.current_iteration) continue;
      beat();
      const key = { projectId: survey.project_id, surveyId: survey.id };
      if (await advanceSurvey(deps, SYSTEM, key, now())) advanced += 1;
    }
    const last = some.at(-1);
    if (!last || some.length < AT_ONCE) return advanced;
    after = last.id;
  }
}
