export const SURVEY_TYPES = ['popover', 'api', 'widget', 'external_survey'] as const;
export type SurveyType = (typeof SURVEY_TYPES)[number];
export const SCHEDULES = ['once', 'recurring', 'always'] as const;
export type Schedule = (typeof SCHEDULES)[number];

export const SURVEY_LIMITS = {
  surveys: 1_000,
  nameCharacters: 400,
  questions: 100,
  choices: 200,
  textCharacters: 10_000,
  /** How often a survey is asked again, and after how many days each time. */
  iterations: 500,
  iterationDays: 3_650,
  /** Bytes of the questions, the conditions and the appearance together, as JSON. */
  bytes: 200_000,
  /** Bytes of the descriptions, questions, conditions and appearances of all surveys of a project. */
  bytesOfProject: 16 * 1024 * 1024,
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

/** The variant of a linked flag that stands for all of them. */
export const ANY_VARIANT = 'any';

/** The flags of surveys begin so. Server SDKs do not load them. */
const PREFIX = 'survey-targeting-';

/** The keys of the flags that belong to a survey. */
export const targetingKey = (id: string): string => `${PREFIX}${id}-custom`;
export const internalKey = (id: string): string => `${PREFIX}${id}`;

/** How often a survey is asked. */
export interface Repetition {
  start_date: string | null;
  iteration_count: number | null;
  iteration_frequency_days: number | null;
}

const DAY = 86_400_000;
const SECONDS = /\.000Z$/;

/** When each iteration of a survey begins. None: it is asked once. Null: it has not begun. */
export function iterationStarts({
  start_date: start,
  iteration_count: count,
  iteration_frequency_days: days,
}: Repetition): string[] | null {
  if (!count || !days) return [];
  if (start === null) return null;
  const first = Date.parse(start);
  return Array.from({ length: count }, (_, index) =>
    new Date(first + index * days * DAY).toISOString().replace(SECONDS, 'Z'),
  );
}

/** Which iteration runs at a time, counted from 1. Null: none does, or not yet. 'over': the last one has ended. */
export function iterationAt(survey: Repetition, now: number): number | null | 'over' {
  const starts = iterationStarts(survey);
  if (starts === null || starts.length === 0) return null;
  const days = (now - Date.parse(starts[0] as string)) / (DAY * (survey.iteration_frequency_days as number));
  // A survey that begins later shows its first iteration already.
  const number = Math.max(Math.floor(days), 0) + 1;
  return number > starts.length ? 'over' : number;
}

/**
 * Whom the flag of a survey leaves out: who has answered its current iteration or sent it away, unless it is always shown.
 */
export function internalFilters(id: string, schedule: Schedule, iteration: number | null) {
  const notSet = (what: string) => ({
    ...{
      key: `$survey_${what}/${id}${iteration === null ? '' : `/${iteration}`}`,
      type: 'person',
      operator: 'is_not_set',
      value: 'is_not_set',
    },
  });
  const properties = schedule === 'always' ? [] : [notSet('dismissed'), notSet('responded')];
  return { groups: [{ properties, rollout_percentage: 100 }] };
}
