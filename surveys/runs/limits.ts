import { type Pool, transaction } from '../../db/pool.ts';
import { SYSTEM } from '../../tenancy/actor.ts';
import { audit } from '../../tenancy/audit.ts';
import type { Work } from '../../tenancy/product.ts';
import { endSurvey, fullSurveys, projectsWithLimits } from '../rows/surveys.ts';
import { eachAlone } from './each-alone.ts';

/** How long counting the answers of a project's surveys may take, in milliseconds. */
const COUNTING = 20_000;

/** Ends surveys that have as many answers as they want. A project whose answers take too long to count fails alone. */
export async function endFullSurveys(
  { pool }: { pool: Pool },
  work: Work,
  { counting = COUNTING } = {},
): Promise<number> {
  return eachAlone(await projectsWithLimits(pool), work, (projectId) =>
    transaction(pool, async (client) => {
      await client.query(`set local statement_timeout = ${counting}`);
      let ended = 0;
      for (const { id: surveyId, responses_limit: limit } of await fullSurveys(client, projectId)) {
        if (!(await endSurvey(client, { projectId, surveyId }))) continue;
        await audit(client, SYSTEM, {
          ...{ scope: 'Survey', itemId: surveyId, projectId, activity: 'updated' },
          detail: { reason: `It has ${limit} answers.` },
        });
        ended += 1;
      }
      return ended;
    }),
  );
}
