import { offeredSurveys, SURVEYS_CHANNEL } from '../../surveys/rows/surveys.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { freeForm } from '../fields.ts';
import type { Handle } from '../public/exchange.ts';
import type { Lane, LaneMember } from '../public/lane.ts';
import { createOffers, OFFERS_CACHE, type Offers, projectInQuery } from '../public/offers.ts';
import { type Packed, packed, packedAnswer } from '../public/packed.ts';

const MEMBER: LaneMember = {
  name: 'surveys',
  tag: 'surveys',
  share: { held: 64 * 1024, atWork: 64 * 1024, unpacking: 0 },
  largestBody: { bytes: 16 * 1024, refusal: 'The request is larger than 16384 bytes.' },
};
/** A list has as many surveys as fit. */
const MOST_BYTES = 2 * 1024 * 1024;

/** The surveys of a project that run. */
interface RunningSurveys {
  count: number;
  answer: Packed;
}

/** The surveys of all projects that run, for the settings of browsers too. */
export type OfferedSurveys = Offers<RunningSurveys>;

export const createOfferedSurveys = ({
  lanePool,
  listener,
}: Pick<ApiDependencies, 'lanePool' | 'listener'>): OfferedSurveys =>
  createOffers(listener, SURVEYS_CHANNEL, async (projectId) => {
    const surveys = await offeredSurveys(lanePool, projectId, MOST_BYTES);
    const answer = await packed(JSON.stringify({ surveys, survey_config: null }));
    const bytes = answer.plain.length + answer.gzip.length;
    return { value: { count: surveys.length, answer }, bytes };
  });

/** Adds the list of surveys that browsers show. */
export function offeredSurveyRoutes(lane: Lane, { surveys }: { surveys: OfferedSurveys }): void {
  const { add } = lane.join(MEMBER);
  const list: Handle = async (incoming) => {
    const { answer } = await surveys.of(await projectInQuery(lane.keys, incoming));
    return packedAnswer(incoming.request, answer, 'application/json', OFFERS_CACHE);
  };
  add('GET', '/api/surveys', list, { summary: 'The surveys that run', answer: freeForm });
}
