// Texts that Postgres can store. They contain neither the character 0 nor half a surrogate pair.

const REPLACEMENT = 0xfffd;

export const isStorableText = (text: string): boolean => !text.includes('\u0000') && text.isWellFormed();

/** Replaces everything that Postgres cannot store by U+FFFD. */
export function cleanText(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.includes('\u0000') ? withoutZeros(wellFormed) : wellFormed;
}

/** Like `replaceAll`, which takes a second for a text of some million such characters. */
function withoutZeros(text: string): string {
  const units = new Uint16Array(text.length);
  const bytes = Buffer.from(units.buffer);
  bytes.write(text, 'utf16le');
  for (let index = 0; index < units.length; index += 1) if (units[index] === 0) units[index] = REPLACEMENT;
  return bytes.toString('utf16le');
}

/** Sets a property. An assignment to `__proto__` would change the prototype instead. */
function put(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * Cleans every text of a parsed value in place, including property names, and counts the changed texts. It is
 * recursive, so the caller must limit the depth of the value.
 */
export function cleanValue(value: unknown): { value: unknown; changed: number } {
  if (typeof value === 'string') {
    const text = cleanText(value);
    return { value: text, changed: text === value ? 0 : 1 };
  }
  if (typeof value !== 'object' || value === null) return { value, changed: 0 };
  let changed = 0;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const inner = cleanValue(value[index]);
      if (inner.changed > 0) value[index] = inner.value;
      changed += inner.changed;
    }
    return { value, changed };
  }
  for (const key of Object.keys(value)) {
    const inner = cleanValue((value as Record<string, unknown>)[key]);
    const name = cleanText(key);
    if (name !== key) {
      delete (value as Record<string, unknown>)[key];
      changed += 1;
    }
    if (name !== key || inner.changed > 0) put(value, name, inner.value);
    changed += inner.changed;
  }
  return { value, changed };
}

const LONGEST_NAME = 200;

/** Shortens a name or a distinct_id to 200 characters. A character that takes two units of UTF-16 is not split. */
export function cut(text: string): string {
  if (text.length <= LONGEST_NAME) return text;
  const characters = Array.from(text.slice(0, LONGEST_NAME * 2 + 2));
  return characters.length <= LONGEST_NAME ? text : characters.slice(0, LONGEST_NAME).join('');
}
