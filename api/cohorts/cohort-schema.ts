// What requests for cohorts say, and what the answers show.
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { CohortRow } from '../../cohorts/rows/cohorts.ts';
import { filtersOfGroups } from '../../cohorts/rules/groups.ts';
import { COHORT_LIMITS } from '../../cohorts/rules/limits.ts';
import { readUpload, type Upload } from '../../cohorts/rules/upload.ts';
import { pacing } from '../../db/loop-turns.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { isUuid } from '../../values/uuid.ts';
import { booleanIn } from '../bodies.ts';
import { errors } from '../errors.ts';
import { freeForm, optionalText, text, timestamp } from '../fields.ts';
import type { FormFields } from '../multipart.ts';
import { basicUser } from '../tenancy/user-schema.ts';

export const cohort = z
  .object({
    id: z.int(),
    name: z.string(),
    description: z.string(),
    groups: z.array(freeForm).meta({ description: 'An older form of `filters`. Answers have it empty.' }),
    deleted: z.boolean(),
    filters: freeForm,
    query: z.null(),
    version: z.int(),
    is_calculating: z
      .boolean()
      .meta({ description: 'The cohort was changed, and its members are not counted again yet.' }),
    created_by: basicUser.nullable(),
    created_at: timestamp,
    last_calculation: timestamp.nullable(),
    errors_calculating: z.int(),
    count: z.int().nullable().meta({
      description:
        'How many persons are in it; if it is not static, at the time of `last_calculation`. Null: not counted yet, or too many to count while you wait.',
    }),
    is_static: z.boolean(),
    cohort_type: z.enum(['static', 'person_property']),
    experiment_set: z.array(z.int()),
    upload: z
      .object({ named: z.int(), unknown: z.int(), examples: z.array(z.string()) })
      .optional()
      .meta({
        description:
          'Only when the request named persons: how many, how many of them are unknown, and the first of those.',
      }),
  })
  .meta({ id: 'Cohort' });

export const cohortView = (
  { project_id: _, updated_at: _changed, filters, counted_at, count_error, is_outdated, ...row }: CohortRow,
  count: number | null,
): z.output<typeof cohort> => ({
  ...row,
  filters: parseExactJson(filters) as Record<string, unknown>,
  groups: [],
  query: null,
  is_calculating: is_outdated,
  last_calculation: counted_at,
  errors_calculating: count_error === null ? 0 : 1,
  count,
  cohort_type: row.is_static ? 'static' : 'person_property',
  experiment_set: [],
});

const isEmptyList = (value: unknown): boolean =>
  value === '' || value === '[]' || (Array.isArray(value) && value.length === 0);

/** The body of a change. All fields may be left out. */
export const cohortInput = z
  .object({
    name: text(COHORT_LIMITS.nameCharacters),
    description: optionalText(COHORT_LIMITS.descriptionCharacters),
    is_static: z.boolean(),
    filters: freeForm.meta({
      description:
        '`{"properties": {"type": "OR", "values": […]}}`: a tree of `AND` and `OR` over properties of persons and other cohorts.',
    }),
    deleted: z.boolean().meta({ description: 'True deletes the cohort, and false brings it back.' }),
    csv: z.string().min(1).max(COHORT_LIMITS.uploadBytes).meta({
      description:
        'A file of persons for a static cohort, as a part of a form: a column `person_id`, `distinct_id` or `email`, or a single column of distinct ids. They are added.',
      writeOnly: true,
    }),
    _create_static_person_ids: z.array(z.string().max(400)).max(COHORT_LIMITS.added).meta({
      description: 'Ids or distinct ids of persons for a static cohort. They are added.',
      writeOnly: true,
    }),
    groups: z.unknown().optional().meta({
      description:
        'An older form of `filters`: a list of `{"properties": […]}`. Whoever fulfils all conditions of one of them is in the cohort. It counts if there are no `filters`.',
      writeOnly: true,
    }),
    _create_in_folder: z.unknown().meta({ description: 'Is ignored.', writeOnly: true }),
  })
  .partial();

/** The body of a new cohort. */
export const newCohort = cohortInput.required({ name: true });

type Input = z.output<typeof cohortInput>;

/** Says what a body sets. */
export const inputOf = ({ groups, _create_in_folder: _folder, csv: _csv, ...rest }: Input) => {
  const { _create_static_person_ids: _ids, ...fields } = rest;
  if (fields.filters !== undefined || groups === undefined || groups === null || isEmptyList(groups)) {
    return fields;
  }
  return {
    ...fields,
    filters: filtersOfGroups(typeof groups === 'string' ? jsonIn(groups, 'groups') : groups),
  };
};

/** The persons that a body names. Undefined: none. */
export async function namedIn({ csv, _create_static_person_ids: ids }: Input): Promise<Upload[]> {
  const uploads = csv === undefined ? [] : [await readUpload(csv, COHORT_LIMITS.uploaded, pacing())];
  const given = new Set(ids ?? []);
  const [persons, others] = [[...given].filter(isUuid), [...given].filter((id) => !isUuid(id))];
  if (persons.length > 0) uploads.push({ by: 'person_id', names: new Set(persons) });
  if (others.length > 0) uploads.push({ by: 'distinct_id', names: new Set(others) });
  return uploads;
}

/** Refuses persons for a cohort whose filters decide who is in it. */
export function requireStaticFor(uploads: readonly Upload[], isStatic: boolean): void {
  if (uploads.length === 0 || isStatic) return;
  throw errors.validation(
    'invalid_input',
    'Persons can be listed for a static cohort only. Set is_static.',
    'is_static',
  );
}

/** Reads the fields of a form, which are texts, as the schema expects them. */
export async function readsForm(request: FastifyRequest): Promise<void> {
  if (!request.headers['content-type']?.startsWith('multipart/')) return;
  const { is_static, filters, ...fields } = request.body as FormFields;
  request.body = {
    ...fields,
    ...(is_static === undefined ? {} : { is_static: booleanIn(is_static) ?? is_static }),
    ...(filters === undefined ? {} : { filters: jsonIn(filters) }),
  };
}

function jsonIn(text: string, field = 'filters'): unknown {
  try {
    return parseExactJson(text);
  } catch {
    throw errors.validation('invalid_input', 'This must be JSON.', field);
  }
}
