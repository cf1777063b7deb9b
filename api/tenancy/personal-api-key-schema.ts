import { z } from 'zod';
import type { PersonalApiKeyRow } from '../../db/personal-api-keys.ts';
import { instant, text, timestamp } from '../fields.ts';

export const personalApiKey = z
  .object({
    id: z.string(),
    label: z.string(),
    value: z.string().nullable().meta({
      description: 'The key itself. Null except in the answers to creating a key and replacing its value.',
    }),
    mask_value: z.string(),
    created_at: timestamp,
    last_used_at: timestamp.nullable(),
    last_rolled_at: timestamp.nullable(),
    expires_at: timestamp.nullable(),
    user_id: z.int(),
    scopes: z.array(z.string()),
    scoped_teams: z
      .array(z.int())
      .meta({ description: 'The projects that the key is bound to. Empty: no bound.' }),
    scoped_organizations: z
      .array(z.guid())
      .meta({ description: 'The organizations that the key is bound to. Empty: no bound.' }),
  })
  .meta({ id: 'PersonalApiKey' });

export function personalApiKeyView(
  row: PersonalApiKeyRow,
  value: string | null = null,
): z.output<typeof personalApiKey> {
  return {
    id: row.id,
    label: row.label,
    value,
    mask_value: row.mask_value,
    created_at: row.created_at,
    last_used_at: row.last_used_at,
    last_rolled_at: row.last_rolled_at,
    expires_at: row.expires_at,
    user_id: row.user_id,
    scopes: row.scopes,
    scoped_teams: row.scoped_teams,
    scoped_organizations: row.scoped_organizations,
  };
}

const scopedTeams = z.array(
  z
    .int()
    .min(1)
    .max(2 ** 31 - 1),
);
const scopedOrganizations = z.array(z.guid());

/** The bodies that make and change a key. `known` lists everything that a key can be given. */
export function keyBodies(known: readonly string[]) {
  // One complaint for the field as a whole, as clients of the API know it.
  const scopes = z
    .array(z.string().meta({ enum: [...known] }))
    .min(1)
    .superRefine((list, context) => {
      const unknown = list.find((one) => !known.includes(one));
      if (unknown !== undefined) context.addIssue({ code: 'custom', message: `Invalid scope: ${unknown}` });
    });
  const newPersonalApiKey = z.object({
    label: text(40),
    scopes,
    scoped_teams: scopedTeams.default([]),
    scoped_organizations: scopedOrganizations.default([]),
    expires_at: instant.nullable().default(null),
  });
  const personalApiKeyPatch = z.object({
    label: text(40).optional(),
    scopes: scopes.optional(),
    scoped_teams: scopedTeams.optional(),
    scoped_organizations: scopedOrganizations.optional(),
    expires_at: instant.nullable().optional(),
  });
  return { newPersonalApiKey, personalApiKeyPatch };
}
