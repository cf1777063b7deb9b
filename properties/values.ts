import { parseDate, parseRelativeDate } from '../values/dates.ts';
import { ExactNumber } from '../values/exact-json.ts';

// Converts JSON values to texts and numbers. All operators use these conversions.

/** The usual notation of numbers: no spaces, no hexadecimal digits, no words. */
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

/** Returns the number of a number or a numeric string. Returns null for everything else. */
export function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isNaN(value) ? null : value;
  if (value instanceof ExactNumber) return value.valueOf();
  if (typeof value !== 'string' || !NUMBER.test(value)) return null;
  return Number(value);
}

/** Returns whether a text is the standard notation of a number: `5` or `1.5`, but not `05` or `5.0`. */
export function isCanonicalNumber(text: string): boolean {
  return NUMBER.test(text) && String(Number(text)) === text;
}

/** Returns strings unchanged and everything else as compact JSON. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
}

const HAS_UPPER = /[A-Z]/;
const UPPER = /[A-Z]+/g;

/** Lower-cases A–Z only, for comparisons that must not depend on a language. */
export function asciiLower(text: string): string {
  return HAS_UPPER.test(text) ? text.replace(UPPER, (letters) => letters.toLowerCase()) : text;
}

/** Whether a text is a date, or a relative date such as `-7d`. */
export function isReadableDate(text: string): boolean {
  return (
    parseDate(text, 'UTC') !== null ||
    parseRelativeDate(text, { now: Date.UTC(2026, 0, 1), timezone: 'UTC' }) !== null
  );
}
