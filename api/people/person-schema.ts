import { z } from 'zod';
import type { PersonRow } from '../../db/persons.ts';
import { personName } from '../../properties/person-name.ts';
import { freeForm, timestamp } from '../fields.ts';

/** How many distinct ids of a person a list shows, and how many the person alone shows. */
export const SHOWN_IN_LIST = 10;
export const SHOWN_ALONE = 1000;
const MAX_BULK = 1000;

export const person = z
  .object({
    type: z.literal('person'),
    id: z.uuid(),
    uuid: z.uuid().meta({ description: 'The same as `id`.' }),
    name: z
      .string()
      .meta({ description: 'The email, name or username of the person, or else a distinct id.' }),
    distinct_ids: z.array(z.string()).meta({
      description: `The first ${SHOWN_ALONE} distinct ids in byte order; in lists, the first ${SHOWN_IN_LIST}.`,
    }),
    properties: freeForm,
    created_at: timestamp,
    is_identified: z.boolean(),
  })
  .meta({ id: 'Person' });

export function personView(row: PersonRow): z.output<typeof person> {
  return {
    type: 'person',
    id: row.id,
    uuid: row.id,
    name: personName(row.properties, row.distinct_ids),
    distinct_ids: row.distinct_ids,
    properties: row.properties,
    created_at: row.created_at,
    is_identified: row.is_identified,
  };
}

const EITHER = 'Give either `ids` or `distinct_ids`.';

export const bulkDeletion = z
  .object({
    ids: z.array(z.guid()).max(MAX_BULK).optional().meta({ description: 'Uuids of the persons to delete.' }),
    distinct_ids: z
      .array(z.string())
      .max(MAX_BULK)
      .optional()
      .meta({ description: 'Distinct ids of the persons to delete.' }),
    delete_events: z
      .boolean()
      .optional()
      .refine((value) => value !== true, 'Events cannot be deleted together with their persons.'),
  })
  .refine(({ ids, distinct_ids }) => (ids === undefined) !== (distinct_ids === undefined), EITHER)
  .meta({ anyOf: [{ required: ['ids'] }, { required: ['distinct_ids'] }] });

export const bulkDeleted = z.object({
  persons_deleted: z.int().meta({ description: 'How many persons were deleted. Unknown ids do not count.' }),
});
