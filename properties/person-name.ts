import { isUuid } from '../values/uuid.ts';

/** The properties that can name a person, best first. */
export const NAMING_PROPERTIES = ['email', 'name', 'username'] as const;

/**
 * Returns the display name of a person: the first property that names it. Without one, returns a distinct_id,
 * preferably one that is not a generated UUID.
 */
export function personName(
  properties: Readonly<Record<string, unknown>>,
  distinctIds: readonly string[],
): string {
  for (const key of NAMING_PROPERTIES) {
    const value = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (typeof value === 'string' && value.trim() !== '') return value;
    if (typeof value === 'number') return String(value);
  }
  return distinctIds.find((id) => !isUuid(id)) ?? distinctIds[0] ?? '';
}
