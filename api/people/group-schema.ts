import { z } from 'zod';
import type { GroupRow } from '../../db/groups.ts';
import { freeForm, optionalText, timestamp } from '../fields.ts';

const TYPES = 5;
const MAX_NAME = 400;

export const group = z
  .object({
    id: z.guid(),
    group_type_index: z.int(),
    group_type: z.string().nullable(),
    group_key: z.string(),
    group_properties: freeForm,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Group' });

export function groupView({ properties, ...row }: GroupRow): z.output<typeof group> {
  return { ...row, group_properties: properties };
}

const RANGE = `Must be a whole number from 0 to ${TYPES - 1}.`;
/** The index of a group type in a query. */
export const groupTypeIndex = z
  .string()
  .regex(/^[0-4]$/, RANGE)
  .transform(Number);

export const groupTypeNames = z
  .array(
    z.object({
      group_type_index: z
        .int()
        .min(0)
        .max(TYPES - 1),
      name_singular: optionalText(MAX_NAME).nullable().optional(),
      name_plural: optionalText(MAX_NAME).nullable().optional(),
    }),
  )
  .min(1)
  .max(TYPES);

const MAX_KEY = 400;

export const newGroup = z.object({
  group_type_index: z
    .int()
    .min(0)
    .max(TYPES - 1),
  group_key: z
    .string()
    .min(1)
    .refine((text) => [...text].length <= MAX_KEY, {
      params: { code: 'max_length' },
      error: `Ensure this field has no more than ${MAX_KEY} characters.`,
    })
    .meta({ maxLength: MAX_KEY }),
  group_properties: freeForm.nullish(),
});

export const groupProperty = z.object({
  key: z.string().min(1).max(400),
  value: z.unknown().refine((value) => value !== undefined && value !== null, {
    params: { code: 'required' },
    error: 'This field is required.',
  }),
});
