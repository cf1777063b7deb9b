import { z } from 'zod';
import { DESTINATION_TYPES, requireDestination } from '../../destinations/registry.ts';
import { freeForm } from '../fields.ts';

/** Describes the configuration of a type for the OpenAPI document. The destination itself checks configurations. */
function configOf(type: string) {
  const { $schema: _, ...described } = z.toJSONSchema(requireDestination(type).fields, {
    io: 'input',
    override: ({ jsonSchema }) => {
      // Clients send secrets, but no answer contains them.
      if (jsonSchema.secret === true) jsonSchema.writeOnly = true;
      delete jsonSchema.secret;
      delete jsonSchema.mayBeBlank;
    },
  });
  // A configuration without required keys may be left out or null.
  const type_ = described.required ? 'object' : ['object', 'null'];
  return { ...described, type: type_, additionalProperties: false };
}

/** Describes each type of destination once: its names and its configuration. */
function variants() {
  const seen = new Set<string>();
  return DESTINATION_TYPES.flatMap((type) => {
    if (seen.has(type)) return [];
    const { types } = requireDestination(type);
    for (const one of types) seen.add(one);
    const config = configOf(type);
    return [
      {
        title: type,
        properties: { type: { enum: types }, config },
        required: 'required' in config && config.required ? ['type', 'config'] : ['type'],
      },
    ];
  });
}

const type = z.enum(DESTINATION_TYPES as [string, ...string[]]);
const config = freeForm.nullish().meta({
  description:
    'The keys depend on the type. When you update a destination, keys that you leave out keep their values, ' +
    'including secrets.',
});

/** Tools of others send one of these with every destination. Elsewhere it names stored credentials. */
const stored = (name: string) =>
  z
    .unknown()
    .refine((value) => value === null || value === undefined, {
      error: `Destinations have no integrations: the credentials of a batch export are in its \`config\`. Leave \`${name}\` out, or send null.`,
    })
    .optional()
    .meta({ type: 'null', description: 'Always null: credentials are in `config`.' });
const credentials = { integration_id: stored('integration_id'), integration: stored('integration') };

/** The destination in a PUT or in a test of a destination. Its configuration may be incomplete. */
export const destination = z.object({ type, config, ...credentials });
/** The destination of a new export. */
export const newDestination = z.object({ type, config, ...credentials }).meta({ oneOf: variants() });
/** The destination in a PATCH, which may leave out the type too. */
export const changedDestination = z.object({ type: type.optional(), config, ...credentials });
