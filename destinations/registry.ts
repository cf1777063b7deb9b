import { describeField, type FieldDescription } from './config.ts';
import type { Destination, ModelName } from './destination.ts';
import { DestinationConfigError } from './errors.ts';
import { file } from './file/file.ts';
import { http } from './http/http.ts';
import { noOp } from './no-op/no-op.ts';
import { postgres } from './postgres/postgres.ts';
import { s3 } from './s3/s3.ts';

/** Whatever its configuration is: only this folder's `bind` puts the two together, after it has checked them. */
type AnyDestination = Destination<unknown>;

/** Every destination, and with its types every name that the API knows one by. */
const DESTINATIONS = [s3, postgres, http, file, noOp] as unknown as readonly AnyDestination[];

export const DESTINATION_TYPES: readonly string[] = DESTINATIONS.flatMap((destination) => destination.types);

export function findDestination(type: string): AnyDestination | undefined {
  return DESTINATIONS.find((destination) => destination.types.includes(type));
}

export function requireDestination(type: string): AnyDestination {
  const found = findDestination(type);
  if (!found) throw new DestinationConfigError(`"${type}" is not a valid choice.`, 'type');
  return found;
}

/** Refuses models that a destination does not take. */
export function requireModel(type: string, model: ModelName): void {
  const { models } = requireDestination(type);
  if (models && !models.includes(model)) {
    throw new DestinationConfigError(
      `${type} batch exports only support the ${models.join(' and ')} model`,
      'model',
    );
  }
}

interface DescribedKey extends FieldDescription {
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
