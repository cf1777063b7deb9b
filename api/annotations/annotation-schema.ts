import { z } from 'zod';
import type { AnnotationRow } from '../../annotations/rows/annotations.ts';
import { ANNOTATION_LIMITS, ANNOTATION_SCOPES, CREATION_TYPES } from '../../annotations/rules/annotations.ts';
import { instantOrDate, optionalText, timestamp } from '../fields.ts';
import { basicUser } from '../tenancy/user-schema.ts';

const number = z
  .int()
  .min(0)
  .max(2 ** 31 - 1)
  .nullable();
const scope = z.enum(ANNOTATION_SCOPES);
const creationType = z.enum(CREATION_TYPES);

export const annotation = z
  .object({
    id: z.int(),
    content: z.string().nullable(),
    date_marker: timestamp.nullable(),
    creation_type: creationType,
    dashboard_item: number,
    dashboard_id: number,
    dashboard_name: z.null(),
    insight_short_id: z.null(),
    insight_name: z.null(),
    insight_derived_name: z.null(),
    emoji: z.string().nullable(),
    hidden_in_user_interface: z.boolean().nullable(),
    created_by: basicUser.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
    deleted: z.boolean(),
    scope,
  })
  .meta({ id: 'Annotation' });

export function annotationView(row: AnnotationRow): z.output<typeof annotation> {
  return {
    id: row.id,
    content: row.content,
    date_marker: row.date_marker,
    creation_type: row.creation_type,
    dashboard_item: row.dashboard_item,
    dashboard_id: row.dashboard_id,
    // Sluice has no charts to name.
    ...{ dashboard_name: null, insight_short_id: null, insight_name: null, insight_derived_name: null },
    emoji: row.emoji,
    hidden_in_user_interface: row.hidden_in_user_interface,
    created_by: row.created_by,
    created_at: row.created_at,
    updated_at: row.updated_at,
    deleted: row.deleted,
    scope: row.scope,
  };
}

export const annotationInput = z
  .object({
    content: optionalText(ANNOTATION_LIMITS.content).nullable(),
    date_marker: instantOrDate.nullable().meta({ description: 'The time that the annotation is about.' }),
    scope: scope
      .refine((one) => one !== 'recording', 'Recording scope is deprecated')
      .meta({
        description:
          'What the annotation is about. Default: `dashboard_item`. All projects of the organization show those about the `organization`.',
      }),
    creation_type: creationType,
    dashboard_item: number.meta({ description: 'A chart of a tool. It is kept, and changes nothing.' }),
    dashboard_id: number,
    emoji: optionalText(ANNOTATION_LIMITS.emoji)
      .nullable()
      .overwrite((text) => text || null)
      .meta({ description: 'A sign that a tool shows with it. A blank one is null.' }),
    hidden_in_user_interface: z
      .boolean()
      .nullable()
      .meta({ description: 'A wish that tools do not show it. Lists have it all the same.' }),
    deleted: z.boolean().meta({ description: 'Whether lists leave it out. False brings it back.' }),
  })
  .partial();
