import { offeredSurveys, SURVEYS_CHANNEL } from '../../surveys/rows/surveys.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { freeForm } from '../fields.ts';
import { createCopied } from '../public/copied.ts';
import { type Handle, whenPrepared } from '../public/exchange.ts';
import type { Lane, LaneMember } from '../public/lane.ts';
import { createOffers, OFFERS_CACHE, type Offers, projectInQuery } from '../public/offers.ts';
import { type Packed, packed, packedAnswer } from '../public/packed.ts';
import { LATE, Patience } from '../public/patience.ts';
import { withActions } from './survey-actions.ts';

const MEMBER: LaneMember = {
  name: 'surveys',
  tag: 'surveys',
  share: { held: 64 * 1024, atWork: 64 * 1024, unpacking: 0 },
  largestBody: { bytes: 16 * 1024, refusal: 'The request is larger than 16384 bytes.' },
  startsAlone: true,
};
/** A list has as many surveys as fit. */
const MOST_BYTES = 2 * 1024 * 1024;
/** The actions for which surveys wait take so much at most. */
const MOST_ACTION_BYTES = 1024 * 1024;

/** The surveys of a project that run. */
interface RunningSurveys {
  count: number;
  answer: Packed;
}

/** The surveys of all projects that run. */
export interface OfferedSurveys extends Offers<RunningSurveys> {
  /** Whether a project has surveys that run. No, while the database is away and nothing is known. */
  areRunning(projectId: number): Promise<boolean>;
}

export function createOfferedSurveys({
  lanePool,
  listener,
  copies,
  isPrepared,
}: Pick<ApiDependencies, 'lanePool' | 'listener' | 'copies' | 'isPrepared'>): OfferedSurveys {
  const database = whenPrepared(lanePool, isPrepared);
  const list = async (projectId: number) =>
    withActions(
      database,
      projectId,
      await offeredSurveys(database, projectId, MOST_BYTES),
      MOST_ACTION_BYTES,
    );
  const read = createCopied((projectId) => list(Number(projectId)), { copies, kind: 'surveys' });
  const waiting = new Patience();
  const offers = createOffers(listener, SURVEYS_CHANNEL, async (projectId) => {
    const surveys = await read(String(projectId));
    const answer = await packed(JSON.stringify({ surveys, survey_config: null }));
    const bytes = answer.plain.length + answer.gzip.length;
    return { value: { count: surveys.length, answer }, bytes };
  });
  return {
    ...offers,
    async areRunning(projectId) {
      const running = offers.of(projectId);
      const known = running instanceof Promise ? await waiting.wait(running) : running;
      if (known === LATE) return false;
      waiting.answered();
      return known.count > 0;
    },
  };
}

/** Adds the list of surveys that browsers show. */
export function offeredSurveyRoutes(lane: Lane, { surveys }: { surveys: OfferedSurveys }): void {
  const { add } = lane.join(MEMBER);
  const list: Handle = async (incoming) => {
    const { answer } = await surveys.of(await projectInQuery(lane.keys, incoming));
    return packedAnswer(incoming.request, answer, 'application/json', OFFERS_CACHE);
  };
  add('GET', '/api/surveys', list, { summary: 'The surveys that run', answer: freeForm });
}
