import { z } from 'zod';
import type { PersonRow } from '../../db/persons.ts';
import { personName } from '../../properties/person-name.ts';
import { freeForm, timestamp } from '../fields.ts';
import { page } from '../pagination.ts';

/** How many distinct ids of a person a list shows, and how many the person alone shows. */
export const SHOWN_IN_LIST = 10;
export const SHOWN_ALONE = 1000;
const MAX_BULK = 1000;

export const person = z
  .object({
    type: z.literal('person'),
    id: z.guid(),
    uuid: z.guid().meta({ description: 'The same as `id`.' }),
    name: z
      .string()
      .meta({ description: 'The email, name or username of the person, or else a distinct id.' }),
    distinct_ids: z.array(z.string()).meta({
      description: `The first ${SHOWN_ALONE} distinct ids in byte order; in lists, the first ${SHOWN_IN_LIST}.`,
    }),
    properties: freeForm,
    created_at: timestamp,
    is_identified: z.boolean(),
    copied_through: timestamp.nullable().meta({
      description:
        'Properties that are copied from events (`$current_url`, `$browser` …) are those of the events that were stored before this time. First values and what events set by name are never behind. Null: no events were stored yet.',
    }),
  })
  .meta({ id: 'Person' });

export const personPage = page(person).extend({
  count: z
    .int()
    .nullable()
    .meta({ description: 'How many persons there are. Null: nobody has counted them.' }),
});

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
    copied_through: row.copied_through,
  };
}

const idsOf = (item: z.ZodType<string>, name: string) =>
  z
    .array(item)
    .refine((list) => list.length <= MAX_BULK, `You can only pass ${MAX_BULK} ${name} in one call`)
    .nullish()
    .meta({ maxItems: MAX_BULK });

export const bulkDeletion = z
  .object({
    ids: idsOf(z.guid(), 'ids').meta({ description: 'Uuids of the persons to delete.' }),
    distinct_ids: idsOf(z.string(), 'distinct_ids').meta({
      description: 'Distinct ids of the persons to delete.',
    }),
    delete_events: z
      .boolean()
      .optional()
      .refine((value) => value !== true, 'Events cannot be deleted together with their persons.'),
    delete_recordings: z.boolean().optional().meta({ description: 'There are no recordings to delete.' }),
    keep_person: z
      .boolean()
      .optional()
      .refine(
        (value) => value !== true,
        'Events cannot be deleted without their persons, so nothing is left to do for a person that is kept.',
      ),
  })
  .superRefine(({ ids, distinct_ids: distinctIds }, context) => {
    const given = [ids, distinctIds].filter((list) => list?.length).length;
    if (given === 1) return;
    const message =
      given === 2
        ? 'You must provide either distinct_ids or ids, not both'
        : 'You need to specify either distinct_ids or ids';
    context.addIssue({ code: 'custom', message, input: ids });
  })
  .meta({ anyOf: [{ required: ['ids'] }, { required: ['distinct_ids'] }] });

export const bulkDeleted = z.object({
  persons_found: z.int().meta({ description: 'How many of the persons there are.' }),
  persons_deleted: z.int().meta({ description: 'How many persons were deleted. Unknown ids do not count.' }),
  events_queued_for_deletion: z.literal(false),
  recordings_queued_for_deletion: z.literal(false),
  deletion_errors: z
    .array(z.object({ person_uuid: z.guid() }))
    .meta({ description: 'Always empty: all of them are deleted, or none.' }),
});

/** How many persons are looked up at once. */
export const MAX_BATCH = 200;
const batch = (of: string) =>
  z
    .unknown()
    .optional()
    .meta({
      type: 'array',
      items: { type: 'string' },
      description: `${of} The first ${MAX_BATCH} are looked up. Anything but a list finds nobody.`,
    });
export const distinctIdsBatch = z.object({ distinct_ids: batch('Distinct ids.') });
export const uuidsBatch = z.object({ uuids: batch('Uuids of persons.') });
export const personsFound = z.object({
  results: z
    .record(z.string(), person)
    .meta({ description: 'The persons that there are, by what was asked for.' }),
});

const propertyKey = z.string().min(1).max(400);
export const propertyValue = z.object({
  key: propertyKey,
  value: z.unknown().refine((value) => value !== undefined, {
    params: { code: 'required' },
    error: 'This field is required.',
  }),
});
export const propertyDeletion = z.object({
  $unset: propertyKey.meta({ description: 'The name of the property.' }),
});
export const propertiesPatch = z.object({
  properties: freeForm.meta({ description: 'Properties to set. Others stay.' }),
});

export const personValues = z.object({
  results: z.array(z.object({ name: z.string(), count: z.int() })),
  refreshing: z.literal(false),
});
