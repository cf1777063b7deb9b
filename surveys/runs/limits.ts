import { type Pool, transaction } from '../../db/pool.ts';
import { SYSTEM } from '../../tenancy/actor.ts';
import { audit } from '../../tenancy/audit.ts';
import type { Work } from '../../tenancy/product.ts';
import { endSurvey, hasResponses, limitedSurveys } from '../rows/surveys.ts';

const AT_ONCE = 1_000;
/** How long counting the answers of a survey may take, in milliseconds. */
const COUNTING = 20_000;

/** Ends surveys that have as many answers as they want. */
export async function endFullSurveys({ pool }: { pool: Pool }, { signal, beat }: Work): Promise<number> {
  let ended = 0;
  for (const survey of await limitedSurveys(pool, AT_ONCE)) {
    signal.throwIfAborted();
    beat();
    ended += await transaction(pool, async (client) => {
      await client.query(`set local statement_timeout = ${COUNTING}`);
      if (!(await hasResponses(client, survey))) return 0;
      const { project_id: projectId, id: surveyId } = survey;
      if (!(await endSurvey(client, { projectId, surveyId }))) return 0;
      await audit(client, SYSTEM, {
        ...{ scope: 'Survey', itemId: surveyId, projectId, activity: 'updated' },
        detail: { reason: `It has ${survey.responses_limit} answers.` },
      });
      return 1;
    });
  }
  return ended;
}
