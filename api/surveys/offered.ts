import { type OfferedSurvey, offeredSurveys, SURVEYS_CHANNEL } from '../../surveys/rows/surveys.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { freeForm } from '../fields.ts';
import type { Lane, LaneMember } from '../public/lane.ts';
import { createOffers, type Offers, offersAnswer, projectInQuery } from '../public/offers.ts';

const MEMBER: LaneMember = {
  name: 'surveys',
  tag: 'surveys',
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
}: Pick<ApiDependencies, 'lanePool' | 'listener'>): OfferedSurveys =>
  createOffers(listener, SURVEYS_CHANNEL, (projectId) => offeredSurveys(lanePool, projectId, MOST));

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
