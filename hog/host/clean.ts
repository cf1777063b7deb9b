/** Deeper levels stay as they are. */
const LEVELS = 3;

/** Returns a value without the nulls in its dictionaries and lists, down to the third level. */
export function cleanNullValues(value: unknown, level = 1): unknown {
  if (typeof value !== 'object' || value === null || level > LEVELS) return value;
  if (Array.isArray(value)) {
    return value.filter((one) => one !== null).map((one) => cleanNullValues(one, level + 1));
  }
  if ('__hogDate__' in value || '__hogDateTime__' in value) return value;
  const kept: Record<string, unknown> = {};
  for (const [key, one] of Object.entries(value)) {
    if (one === null) continue;
    // Assignment would treat `__proto__` specially, but here it is an ordinary key.
    const property = { value: cleanNullValues(one, level + 1), enumerable: true, writable: true };
    Object.defineProperty(kept, key, { ...property, configurable: true });
  }
  return kept;
}
