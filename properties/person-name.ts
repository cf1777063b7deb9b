import { isUuid } from '../values/uuid.ts';

/** The properties that can name a person, best first. */
export const NAMING_PROPERTIES = ['email', 'name', 'username'] as const;

/** How old browsers' libraries made ids: of the time, chance, the browser and its screen, in hexadecimal. */
const OF_OLD_BROWSERS = /^[0-9a-f]{10,16}-[0-9a-f]{9,16}-[0-9a-f]{1,8}-[0-9a-f]{1,8}-[0-9a-f]{10,16}$/;

/** Answers whether a library has made this id, and nobody has chosen it. */
const isGenerated = (distinctId: string) => isUuid(distinctId) || OF_OLD_BROWSERS.test(distinctId);

/**
 * Returns the display name of a person: the first property that names it. Without one, returns a distinct_id,
 * preferably one that somebody has chosen.
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
  return distinctIds.find((id) => !isGenerated(id)) ?? distinctIds[0] ?? '';
}
