import { type OfferedSurvey, offeredSurveys, SURVEYS_CHANNEL } from '../../surveys/rows/surveys.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { freeForm } from '../fields.ts';
import { copied } from '../public/copied.ts';
import { whenPrepared } from '../public/exchange.ts';
import type { Lane, LaneMember } from '../public/lane.ts';
import { createOffers, type Offers, offersAnswer, projectInQuery } from '../public/offers.ts';
import { isUnavailable } from '../public/patience.ts';

const MEMBER: LaneMember = {
  name: 'surveys',
  tag: 'surveys',
  startsAlone: true,
  share: { held: 64 * 1024, atWork: 64 * 1024, unpacking: 0 },
  largestBody: { bytes: 16 * 1024, refusal: 'The request is larger than 16384 bytes.' },
};
/** A list has so many surveys at most. */
const MOST = 500;

/** The surveys of all projects that run, for the settings of browsers too. */
export type OfferedSurveys = Offers<OfferedSurvey>;

export const createOfferedSurveys = ({
  lanePool,
  listener,
  copies,
  isPrepared,
}: Pick<ApiDependencies, 'lanePool' | 'listener' | 'copies' | 'isPrepared'>): OfferedSurveys => {
  const database = whenPrepared(lanePool, isPrepared);
  const read = copied(copies, 'surveys', (projectId) => offeredSurveys(database, Number(projectId), MOST));
  return createOffers(listener, SURVEYS_CHANNEL, async (projectId) => (await read(String(projectId))) ?? []);
};

/** Whether a project has surveys that run. While the database is away and nothing is known of them, it has none. */
export async function hasRunningSurveys(surveys: OfferedSurveys, projectId: number): Promise<boolean> {
  try {
    return (await surveys.of(projectId)).length > 0;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return false;
  }
}

/** Adds the list of surveys that browsers show. */
export function offeredSurveyRoutes(lane: Lane, { surveys }: { surveys: OfferedSurveys }): void {
  const { add } = lane.join(MEMBER);
  add(
    'GET',
    '/api/surveys',
    async (incoming) => {
      const projectId = await projectInQuery(lane.keys, incoming);
      return offersAnswer({ surveys: await surveys.of(projectId), survey_config: null });
    },
    { summary: 'The surveys that run', answer: freeForm },
  );
}
