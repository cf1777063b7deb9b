export const SURVEY_TYPES = ['popover', 'api', 'widget', 'external_survey'] as const;
export type SurveyType = (typeof SURVEY_TYPES)[number];
export const SCHEDULES = ['once', 'always'] as const;
export type Schedule = (typeof SCHEDULES)[number];

export const SURVEY_LIMITS = {
  surveys: 1_000,
  nameCharacters: 400,
  questions: 100,
  choices: 200,
  textCharacters: 10_000,
  /** Bytes of the questions, the conditions and the appearance together, as JSON. */
  bytes: 200_000,
} as const;

/** What decides whether a survey runs. */
export interface Course {
  start_date: string | null;
  end_date: string | null;
  archived: boolean;
}

/** Whether clients may show a survey. */
export const isRunning = ({ start_date, end_date, archived }: Course): boolean =>
  start_date !== null && end_date === null && !archived;

/** The flags of surveys begin so. Server SDKs do not load them. */
const PREFIX = 'survey-targeting-';

/** The keys of the flags that belong to a survey. */
export const targetingKey = (id: string): string => `${PREFIX}${id}-custom`;
export const internalKey = (id: string): string => `${PREFIX}${id}`;

/** Whom the flag of a survey leaves out: who has answered it or sent it away, unless it is always shown. */
export function internalFilters(id: string, schedule: Schedule) {
  const notSet = (what: string) => ({
    ...{ key: `$survey_${what}/${id}`, type: 'person', operator: 'is_not_set', value: 'is_not_set' },
  });
  const properties = schedule === 'always' ? [] : [notSet('dismissed'), notSet('responded')];
  return { groups: [{ properties, rollout_percentage: 100 }] };
}
