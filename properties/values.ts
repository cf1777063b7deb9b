// What a JSON value is as text, number and truth, in one place: all operators agree on it.

/** A whole number or a decimal fraction, as people and JSON write them; no blanks, no hex, no words. */
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

/** A number, or a string that is one; null for everything else. */
export function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isNaN(value) ? null : value;
  if (typeof value !== 'string' || !NUMBER.test(value)) return null;
  return Number(value);
}

/** True for text that is exactly how a number prints: `5`, `1.5`, not `05` or `5.0`. */
export function isCanonicalNumber(text: string): boolean {
  return NUMBER.test(text) && String(Number(text)) === text;
}

/** Strings as they are, everything else as compact JSON. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
}

/** Only A–Z: what case-insensitive means where it must not depend on a language. */
export function asciiLower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
