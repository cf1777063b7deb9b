/** The properties that can name a person, best first. */
export const NAMING_PROPERTIES = ['email', 'name', 'username'] as const;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

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
  return distinctIds.find((id) => !UUID.test(id)) ?? distinctIds[0] ?? '';
}
