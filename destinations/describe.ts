import { describeField, type FieldDescription } from './config.ts';
import { DESTINATION_TYPES, requireDestination } from './registry.ts';

export interface DescribedKey extends FieldDescription {
  key: string;
  /** Of the destinations that have it. */
  types: string[];
}

/** Every key of every destination; those that several have in the same way are one. */
export function describeKeys(): DescribedKey[] {
  const found = new Map<string, DescribedKey>();
  for (const type of DESTINATION_TYPES) {
    const { types, fields } = requireDestination(type);
    if (types[0] !== type) continue;
    for (const [key, field] of Object.entries(fields.shape)) {
      const description = describeField(field);
      const id = JSON.stringify([key, description]);
      const known = found.get(id);
      if (known) known.types.push(type);
      else found.set(id, { key, types: [type], ...description });
    }
  }
  return [...found.values()];
}
