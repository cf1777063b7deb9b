/** @import { BrowserFunction, Value } from './types.ts' */
import { withoutHalves } from './arguments.js';
import { isoText, pad } from './dates.js';

import { likeOf, matchesOf, regexOf } from './operators.js';
import { fail, isDate, isDateTime, printOut } from './values.js';

/** @type {(value: Value) => Value} */
export function asText(value) {
  if (isDate(value)) return `${value.year}-${pad(value.month)}-${pad(value.day)}`;
  return isDateTime(value) ? isoText(value) : printOut(value);
}

/** @type {(text: string, sign: Value, left: boolean, right: boolean) => string} */
export function trimmed(text, sign, left, right) {
  const one = sign ?? ' ';
  if (one.length !== 1) return '';
  let [start, end] = [0, text.length];
  while (left && text[start] === one) start++;
  while (right && end > start && text[end - 1] === one) end--;
  return text.slice(start, end);
}

/** @type {(base64: string) => string} */
export function bytesOf(base64) {
  const clean = base64
    .replaceAll('-', '+')
    .replaceAll('_', '/')
    .replace(/[^A-Za-z0-9+/]/g, '');
  const bytes = atob(clean.slice(0, clean.length % 4 === 1 ? -1 : undefined));
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(
    Uint8Array.from(bytes, (one) => one.charCodeAt(0)),
  );
}

/** @type {(value: Value) => boolean} */
export function isEmpty(value) {
  if (typeof value === 'number' || typeof value === 'boolean') return false;
  if (typeof value !== 'object' || value === null) return !value;
  if (Array.isArray(value)) return value.length === 0;
  return value instanceof Map ? value.size === 0 : Object.keys(value).length === 0;
}

/**
 * Hog functions for texts.
 * @type {Record<string, BrowserFunction>}
 */
export const texts = {
  concat: (args) => args.map((one) => (one === null ? '' : asText(one))).join(''),
  toString: (/** @type {Value[]} */ [value]) => asText(value),
  toUUID: ([value]) => asText(value),
  lower: ([text]) => text?.toLowerCase() ?? null,
  upper: ([text]) => text?.toUpperCase() ?? null,
  reverse: ([text]) => (text === null ? null : Array.from(String(text)).reverse().join('')),
  length: ([value]) => value?.length ?? null,
  empty: ([value]) => isEmpty(value),
  notEmpty: ([value]) => !isEmpty(value),
  trim: ([text, sign]) => (text === null ? null : trimmed(text, sign, true, true)),
  trimLeft: ([text, sign]) => (text === null ? null : trimmed(text, sign, true, false)),
  trimRight: ([text, sign]) => (text === null ? null : trimmed(text, sign, false, true)),
  replaceOne: ([text, part, by]) => text?.replace(part, by) ?? null,
  replaceAll: ([text, part, by]) => text?.replaceAll(part, by) ?? null,
  splitByString: ([separator, text, most]) => text?.split(separator, most ?? undefined) ?? null,
  position: ([text, part]) => (typeof text === 'string' ? text.indexOf(String(part)) + 1 : 0),
  positionCaseInsensitive: ([text, part]) =>
    typeof text === 'string' ? text.toLowerCase().indexOf(String(part).toLowerCase()) + 1 : 0,
  startsWith: ([text, part]) => typeof text === 'string' && typeof part === 'string' && text.startsWith(part),
  substring: ([text, from, length]) => {
    if (typeof text !== 'string') return '';
    const start = from - 1;
    const count = typeof length === 'number' ? length : text.length - start;
    return start < 0 || count < 0 || !(start < text.length)
      ? ''
      : withoutHalves(text.slice(start, start + count));
  },
  like: ([text, pattern]) => likeOf(String(pattern), false)(String(text)),
  ilike: ([text, pattern]) => likeOf(String(pattern), true)(String(text)),
  notLike: ([text, pattern]) => !likeOf(String(pattern), false)(String(text)),
  notILike: ([text, pattern]) => !likeOf(String(pattern), true)(String(text)),
  match: ([text, pattern]) => matchesOf(text, pattern, false),
  extractRegex: ([text, pattern]) => {
    if (text === null || pattern === null) return '';
    const found = regexOf(pattern).exec(String(text));
    return found ? ((found.length > 1 ? found[1] : found[0]) ?? '') : '';
  },
  multiSearchAnyCaseInsensitive: ([text, parts]) => {
    if (text === null || !Array.isArray(parts)) return 0;
    const lower = String(text).toLowerCase();
    return parts.some((part) => lower.includes(String(part).toLowerCase())) ? 1 : 0;
  },
  encodeURLComponent: ([text]) => encodeURIComponent(text),
  decodeURLComponent: ([text]) => decodeURIComponent(text),
  tryDecodeURLComponent: ([text]) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return null;
    }
  },
  base64Encode: ([text]) => {
    if (typeof text !== 'string') fail(`Only a text can be encoded, not ${printOut(text)}`);
    return btoa(Array.from(new TextEncoder().encode(text), (one) => String.fromCharCode(one)).join(''));
  },
  base64Decode: ([text]) => bytesOf(text),
  tryBase64Decode: ([text]) => (typeof text === 'string' ? bytesOf(text) : ''),
  generateUUIDv4: () => crypto.randomUUID(),
  randomFloat: () => Math.random(),
};
