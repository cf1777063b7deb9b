import { z } from 'zod';
import type { SurveyInput } from '../../surveys/commands/surveys.ts';
import type { SurveyRow } from '../../surveys/rows/surveys.ts';
import { iterationStarts, SCHEDULES, SURVEY_LIMITS, SURVEY_TYPES } from '../../surveys/rules/surveys.ts';
import { freeForm, instant, optionalText, text, timestamp } from '../fields.ts';
import { basicUser } from '../tenancy/user-schema.ts';

const label = optionalText(SURVEY_LIMITS.textCharacters);
const branching = z
  .discriminatedUnion('type', [
    z.looseObject({ type: z.literal('next_question') }),
    z.looseObject({ type: z.literal('end') }),
    z.looseObject({ type: z.literal('specific_question'), index: z.int().min(0) }),
    z.looseObject({
      type: z.literal('response_based'),
      responseValues: z
        .record(z.string(), z.union([z.int().min(0), z.literal('end')]))
        .meta({ description: 'For each answer the index of a question, or `end`.' }),
    }),
  ])
  .meta({ id: 'SurveyBranching' });
const common = {
  id: z.string().max(100).optional().meta({ description: 'Is made if you leave it out.' }),
  question: text(SURVEY_LIMITS.textCharacters),
  description: label.nullable().optional(),
  descriptionContentType: z.enum(['text', 'html']).optional(),
  optional: z.boolean().optional(),
  buttonText: label.optional(),
  branching: branching.nullable().optional(),
};
const choices = z.array(text(SURVEY_LIMITS.textCharacters)).min(1).max(SURVEY_LIMITS.choices);
/** What clients know of a question. Fields that they will know later pass. */
const question = z
  .discriminatedUnion('type', [
    z.looseObject({ type: z.literal('open'), ...common }),
    z.looseObject({ type: z.literal('link'), ...common, link: label.nullable().optional() }),
    z.looseObject({
      ...{ type: z.literal('rating'), ...common },
      display: z.enum(['number', 'emoji']),
      scale: z.union([z.literal(2), z.literal(3), z.literal(5), z.literal(7), z.literal(10)]),
      lowerBoundLabel: label.optional(),
      upperBoundLabel: label.optional(),
    }),
    z.looseObject({ type: z.literal('single_choice'), ...common, choices }),
    z.looseObject({ type: z.literal('multiple_choice'), ...common, choices }),
  ])
  .meta({ id: 'SurveyQuestion' });

const flag = z
  .object({ id: z.int(), key: z.string(), name: z.string(), active: z.boolean(), filters: freeForm })
  .meta({ id: 'SurveyFlag' });

const fields = {
  name: text(SURVEY_LIMITS.nameCharacters),
  description: label,
  type: z.enum(SURVEY_TYPES),
  schedule: z.enum(SCHEDULES).meta({
    description:
      '`once`: not again to who has answered it or sent it away. `recurring`: the same, for each iteration. `always`: again and again.',
  }),
  questions: z.array(question).max(SURVEY_LIMITS.questions),
  conditions: freeForm.nullable().meta({
    description:
      'When clients show it: `url` and `urlMatchType`, `selector`, `events`, `deviceTypes`, `seenSurveyWaitPeriodInDays`, ' +
      '`linkedFlagVariant`.',
  }),
  appearance: freeForm
    .nullable()
    .meta({ description: 'How clients show it: colours, texts, position, delay.' }),
  archived: z.boolean(),
  responses_limit: z
    .int()
    .min(1)
    .max(2 ** 31 - 1)
    .nullable()
    .meta({ description: 'The survey ends within minutes after it has so many answers.' }),
  enable_partial_responses: z.boolean(),
  iteration_count: z.int().min(0).max(SURVEY_LIMITS.iterations).nullable().meta({
    description: 'How often the survey is asked, to everybody anew each time. Null and 0: once.',
  }),
  iteration_frequency_days: z.int().min(0).max(SURVEY_LIMITS.iterationDays).nullable().meta({
    description: 'After how many days the next iteration begins.',
  }),
};

export const survey = z
  .object({
    id: z.guid(),
    ...fields,
    questions: z.array(freeForm),
    linked_flag: flag.nullable(),
    linked_flag_id: z.int().nullable(),
    targeting_flag: flag.nullable(),
    internal_targeting_flag: flag.nullable().meta({
      description: 'Leaves out who has answered the survey or sent it away. It is on while the survey runs.',
    }),
    start_date: timestamp.nullable(),
    end_date: timestamp.nullable(),
    created_at: timestamp,
    created_by: basicUser.nullable(),
    updated_at: timestamp,
    iteration_start_dates: z
      .array(timestamp)
      .nullable()
      .meta({ description: 'When each iteration begins. Null: the survey has not begun.' }),
    current_iteration: z.int().nullable().meta({ description: 'Which iteration runs, counted from 1.' }),
    current_iteration_start_date: timestamp.nullable(),
  })
  .meta({ id: 'Survey' });

export function surveyView(row: SurveyRow): z.output<typeof survey> {
  const {
    project_id: _,
    targeting_flag_id: _targeting,
    internal_targeting_flag_id: _internal,
    ...rest
  } = row;
  return { ...rest, iteration_start_dates: iterationStarts(row) };
}

export const surveyInput = z
  .object({
    ...fields,
    linked_flag_id: z.int().nullable().meta({
      description:
        'Only who has this flag sees the survey. Whoever links another one needs the scope `feature_flag:read`.',
    }),
    targeting_flag_filters: freeForm.nullable().meta({
      description:
        'Only persons that these filters match see the survey. A flag of the survey has them. Null takes it away.',
      writeOnly: true,
    }),
    remove_targeting_flag: z.boolean().nullable().meta({ writeOnly: true }),
    start_date: instant.nullable().meta({ description: 'Null: it has not begun.' }),
    end_date: instant.nullable().meta({ description: 'Null: it goes on.' }),
    _create_in_folder: z.unknown().meta({ description: 'Is ignored.', writeOnly: true }),
  })
  .partial();
export const newSurvey = surveyInput.required({ name: true, type: true });

/** Says what a body sets. */
export function inputOf<T extends z.output<typeof surveyInput>>(body: T) {
  const { targeting_flag_filters: filters, remove_targeting_flag: removes, ...rest } = body;
  const { _create_in_folder: _folder, ...input } = rest;
  return { ...input, targeting: removes ? null : filters } satisfies SurveyInput;
}
