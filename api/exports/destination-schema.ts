import { z } from 'zod';
import { DESTINATION_TYPES, requireDestination } from '../../destinations/registry.ts';
import { freeForm } from '../fields.ts';

/** What the configuration of a type has, for the document: it is the destination that checks it. */
function configOf(type: string) {
  const { $schema: _, ...described } = z.toJSONSchema(requireDestination(type).fields, {
    io: 'input',
    override: ({ jsonSchema }) => {
      // Stored, and in no answer.
      if (jsonSchema.secret === true) jsonSchema.writeOnly = true;
      delete jsonSchema.secret;
    },
  });
  // Without a key that is needed, it may be left out or null.
  const type_ = described.required ? 'object' : ['object', 'null'];
  return { ...described, type: type_, additionalProperties: false };
}

/** Names of one type, each once, with what their configuration has. */
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
  description: 'Keys of the type. Of one that there is, those that are not named stay, secrets among them.',
});

/** Where an export goes: whatever is wrong with its configuration, or left out. */
export const destination = z.object({ type, config });
/** The same of an export that is made. */
export const newDestination = z.object({ type, config }).meta({ oneOf: variants() });
/** The same of one that there is. */
export const changedDestination = z.object({ type: type.optional(), config });
