import type { Destination, ModelName } from './destination.ts';
import { DestinationConfigError } from './errors.ts';
import { file } from './file.ts';
import { http } from './http.ts';
import { noOp } from './no-op.ts';
import { postgres } from './postgres.ts';
import { s3 } from './s3.ts';

/** Whatever its configuration is: only this folder's `bind` puts the two together, after it has checked them. */
export type AnyDestination = Destination<unknown>;

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
