// Texts that Postgres can hold: without the character 0 and without half a surrogate pair.

const REPLACEMENT = '\ufffd';

export const isStorableText = (text: string): boolean => !text.includes('\u0000') && text.isWellFormed();

/** The text as Postgres can hold it: U+FFFD stands for what it cannot hold. */
export function cleanText(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.includes('\u0000') ? wellFormed.replaceAll('\u0000', REPLACEMENT) : wellFormed;
}

/** Defines a property, since an assignment to `__proto__` would change the prototype instead. */
function put(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * Cleans every text of a parsed value in place, names of properties too, and counts the texts that change. It calls
 * itself for each level of the value, whose depth the caller limits.
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
