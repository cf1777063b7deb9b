/** @import { BrowserFunction, Value } from './types.ts' */

import { wellFormedJson } from './arguments.js';
import {
  fail,
  isCallable,
  isClosure,
  isDate,
  isDateTime,
  isError,
  newDate,
  newDateTime,
  newError,
} from './values.js';

/**
 * Returns the value at a path inside a value, or null if there is none.
 * @type {(value: Value, path: Value[]) => Value}
 */
export function nested(value, path) {
  if (typeof value !== 'object' || value === null) return null;
  let current = value;
  for (const key of path) {
    if (current === null) return null;
    if (current instanceof Map) current = current.get(key) ?? null;
    else if (typeof key === 'number') {
      if (key === 0) fail('Hog arrays start from index 1');
      current = current[key > 0 ? key - 1 : current.length + key] ?? null;
    } else current = Object.hasOwn(Object(current), key) ? (current[key] ?? null) : null;
  }
  return current;
}

/**
 * Returns the value at a path of a JSON text or a value, or undefined if the text is not valid JSON.
 * @type {(value: Value, path: Value[]) => Value}
 */
export function extracted(value, path) {
  let parsed = value;
  if (typeof value === 'string') {
    try {
      parsed = JSON.parse(value);
    } catch {
      return undefined;
    }
  }
  return nested(parsed, path);
}

/** @type {(value: Value) => Value} */
export function fromJson(value) {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(fromJson);
  if (value.__hogDateTime__) return newDateTime(value.dt, value.zone);
  if (value.__hogDate__) return newDate(value.year, value.month, value.day);
  if (value.__hogError__) return newError(value.type, value.message, value.payload);
  return new Map(Object.keys(value).map((key) => [key, fromJson(value[key])]));
}

/** @type {(value: Value, around?: Value[]) => Value} */
export function toJson(value, around = []) {
  if (typeof value !== 'object' || value === null) return value;
  if (around.includes(value)) return null;
  const inner = [...around, value];
  if (Array.isArray(value)) return value.map((item) => toJson(item, inner));
  if (isDateTime(value) || isDate(value) || isError(value)) return value;
  if (isClosure(value) || isCallable(value)) {
    const callable = value.callable ?? value;
    return `fn<${callable.name || 'lambda'}(${callable.argCount})>`;
  }
  /** @type {Record<string, Value>} */
  const plain = {};
  for (const [key, item] of value) plain[String(toJson(key, inner))] = toJson(item, inner);
  return plain;
}

/**
 * Says whether there is something at a path inside a value. Nothing is inside of null.
 * @type {(args: Value[]) => boolean}
 */
export function hasPath([value, ...path]) {
  let current = value;
  for (const key of path) {
    let parsed = current;
    if (typeof current === 'string') {
      try {
        parsed = JSON.parse(current);
      } catch {
        return false;
      }
    }
    if (typeof parsed !== 'object' || parsed === null) return false;
    if (parsed instanceof Map) {
      if (!parsed.has(key)) return false;
      current = parsed.get(key);
    } else if (Array.isArray(parsed) && typeof key === 'number') {
      if (key === 0 || key > parsed.length || key < -parsed.length) return false;
      current = parsed[key > 0 ? key - 1 : parsed.length + key];
    } else if (typeof key !== 'number') {
      if (!Object.hasOwn(parsed, key)) return false;
      current = parsed[key];
    }
  }
  return true;
}

/**
 * Hog functions for JSON.
 * @type {Record<string, BrowserFunction>}
 */
export const json = {
  jsonParse: ([text]) => fromJson(JSON.parse(text)),
  jsonStringify: ([value, indent]) => {
    const json = JSON.stringify(
      toJson(value),
      null,
      typeof indent === 'number' && indent > 0 ? indent : undefined,
    );
    return json === undefined ? null : wellFormedJson(json);
  },
  isValidJSON: ([text]) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  },
  JSONHas: (args) => hasPath(args),
  JSONLength: ([value, ...path]) => {
    const found = extracted(value, path);
    if (found === undefined || (typeof value !== 'object' && typeof value !== 'string')) return 0;
    if (found === null) return 0;
    if (Array.isArray(found)) return found.length;
    if (found instanceof Map) return found.size;
    return typeof found !== 'object' || !/^\s*[[{n]/.test(typeof value === 'string' ? value : '{')
      ? 0
      : Object.keys(found).length;
  },
  JSONExtract: (args) => extracted(args[0], args.slice(1, -1)) ?? null,
  JSONExtractBool: ([value, ...path]) => {
    const found = path.length === 0 && typeof value === 'boolean' ? value : extracted(value, path);
    if (typeof found === 'boolean') return found;
    return path.length === 0 && typeof value === 'string' && value.trim() === 'true';
  },
  JSONExtractInt: ([value, ...path]) => {
    const found = Number.parseInt(extracted(value, path), 10);
    return Number.isNaN(found) ? null : found;
  },
  JSONExtractFloat: ([value, ...path]) => {
    const found = Number.parseFloat(extracted(value, path));
    return Number.isNaN(found) ? null : found;
  },
  JSONExtractString: ([value, ...path]) => {
    const found = extracted(value, path) ?? null;
    return found === null ? null : String(found);
  },
  JSONExtractArrayRaw: ([value, ...path]) => {
    const found = extracted(value, path);
    return Array.isArray(found) ? found : null;
  },
};
