import { z } from 'zod';
import { KINDS } from '../../integrations/kinds/registry.ts';
import { shownIntegration } from '../../integrations/reads/shown.ts';
import type { IntegrationRow } from '../../integrations/rows/integrations.ts';
import { freeForm, timestamp } from '../fields.ts';
import { basicUser } from '../tenancy/user-schema.ts';

export const integration = z
  .object({
    id: z.int(),
    kind: z.string(),
    config: freeForm.meta({ description: 'The configuration without its secrets.' }),
    created_at: timestamp,
    created_by: basicUser.nullable(),
    errors: z.literal(''),
    display_name: z.string(),
  })
  .meta({ id: 'Integration' });

export function integrationView(row: IntegrationRow): z.output<typeof integration> {
  const { id, created_at, created_by } = row;
  return { id, created_at, created_by, errors: '', ...shownIntegration(row) };
}

/** Describes the configuration of each kind for the OpenAPI document. The kind itself checks configurations. */
const variants = () =>
  KINDS.map(({ kind, title, fields }) => {
    const { $schema: _, ...described } = z.toJSONSchema(fields, {
      io: 'input',
      override: ({ jsonSchema }) => {
        // Clients send secrets, but no answer contains them.
        if (jsonSchema.secret === true) jsonSchema.writeOnly = true;
        delete jsonSchema.secret;
      },
    });
    const config = { ...described, additionalProperties: false };
    return { title, properties: { kind: { enum: [kind] }, config }, required: ['kind', 'config'] };
  });

// The commands check the kind, with a message that does not repeat what was sent: it may be a secret.
const kind = z.string().meta({ enum: KINDS.map((one) => one.kind) });

export const newIntegration = z
  .object({ kind, config: freeForm.meta({ description: 'The keys depend on the kind.' }) })
  .meta({ oneOf: variants() });
export const integrationPatch = z
  .object({
    kind: kind.meta({ description: 'It cannot be changed.' }),
    config: freeForm.meta({
      description:
        'Keys that you leave out keep their values, including secrets. Whoever changes the hosts to which secrets go sends the secrets along.',
    }),
  })
  .partial();
