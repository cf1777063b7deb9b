import { z } from 'zod';
import type { FunctionQuery } from '../../functions/rows/functions.ts';
import { TYPE_NAMES } from '../../functions/rules/types.ts';
import { isObject } from '../../values/json-object.ts';
import { errors } from '../errors.ts';
import { exactInstant } from '../fields.ts';
import { pageQuery } from '../pagination.ts';

const LONGEST_SEARCH = 200;
const MOST_GROUPS = 50;

/** Values with commas between them. */
const listed = z.string().transform((text) =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== ''),
);

export const functionQuery = pageQuery.extend({
  type: listed.optional().meta({
    type: 'string',
    description: `Only functions of these types, with commas between them: ${TYPE_NAMES.join(', ')}.`,
  }),
  enabled: listed.optional().meta({ type: 'string', description: '`true`, `false`, or both with a comma.' }),
  id: z.guid().optional(),
  created_by: z
    .string()
    .regex(/^\d{1,15}$/, 'A valid integer is required.')
    .transform(Number)
    .optional()
    .meta({ type: 'integer', description: 'The id of the user who made it.' }),
  created_at: exactInstant.optional(),
  updated_at: exactInstant.optional(),
  search: z
    .string()
    .optional()
    .meta({
      description:
        'A part of the name or of the description. Functions whose name has it come first. If there are none, functions with a ' +
        'similar name.',
      maxLength: LONGEST_SEARCH,
    }),
  filters: z.string().optional().meta({
    description: 'A JSON object. Only functions whose filters contain it: `{"actions": [{"id": "5"}]}`.',
  }),
  filter_groups: z.string().optional().meta({
    description: 'A JSON list of such objects. Only functions whose filters contain one of them.',
  }),
  full: z.string().optional().meta({ description: '`true`: shows whole functions.' }),
});
type Query = z.output<typeof functionQuery>;

export const isFull = ({ full }: Query): boolean => full === 'true' || full === '1';

function json(text: string, field: string, isRight: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (isRight(value)) return value;
  } catch {
    // The answer is the same as for a value of another kind.
  }
  throw errors.validation('invalid_input', `Invalid ${field}`, field);
}

/** Reads which functions a request wants. */
export function listQueryOf(query: Query): Omit<FunctionQuery, 'projectId' | 'limit' | 'offset'> {
  const search = query.search?.replaceAll('\u0000', '').trim();
  if (search && search.length > LONGEST_SEARCH) {
    throw errors.validation(
      'invalid_input',
      `Search query must be ${LONGEST_SEARCH} characters or fewer.`,
      'search',
    );
  }
  return {
    types: query.type && query.type.length > 0 ? query.type : undefined,
    enabled: query.enabled?.map((one) => one === 'true'),
    id: query.id,
    createdBy: query.created_by,
    createdAt: query.created_at,
    updatedAt: query.updated_at,
    search: search || undefined,
    filters: documentsOf(query),
  };
}

function documentsOf({ filters, filter_groups: groups }: Query): readonly unknown[] | undefined {
  if (groups !== undefined) {
    const isRight = (value: unknown) =>
      Array.isArray(value) && value.length <= MOST_GROUPS && value.every(isObject);
    return json(groups, 'filter_groups', isRight) as unknown[];
  }
  return filters === undefined ? undefined : [json(filters, 'filters', isObject)];
}
