/** @import { Value } from './types.ts' */

// Hog values in browsers. The files in this folder run in browsers, so they use only each other and standard JavaScript
// objects.

/** @type {(message: string) => never} */
export function fail(message) {
  throw new Error(message);
}

/** @type {(value: Value, ...keys: string[]) => boolean} */
export function has(value, ...keys) {
  return typeof value === 'object' && value !== null && keys.every((key) => key in value);
}

/** @type {(value: Value) => boolean} */
export function isDate(value) {
  return has(value, '__hogDate__', 'year', 'month', 'day');
}

/** @type {(value: Value) => boolean} */
export function isDateTime(value) {
  return has(value, '__hogDateTime__', 'dt', 'zone');
}

/** @type {(value: Value) => boolean} */
export function isError(value) {
  return has(value, '__hogError__', 'type', 'message');
}

/** @type {(value: Value) => boolean} */
export function isCallable(value) {
  return has(value, '__hogCallable__', 'argCount');
}

/** @type {(value: Value) => boolean} */
export function isClosure(value) {
  return has(value, '__hogClosure__', 'callable');
}

/** @type {(type: Value, message: Value, payload?: Value) => Value} */
export function newError(type, message, payload) {
  return { __hogError__: true, type: type || 'Error', message: message || 'An error occurred', payload };
}

/** @type {(year: number, month: number, day: number) => Value} */
export function newDate(year, month, day) {
  return { __hogDate__: true, year, month, day };
}

/** @type {(dt: number, zone?: Value) => Value} */
export function newDateTime(dt, zone) {
  return { __hogDateTime__: true, dt, zone: zone || 'UTC' };
}

/** @type {(list: Value) => Value} */
export function markTuple(list) {
  list.__isHogTuple = true;
  return list;
}

/** @type {(kind: string, name: string, argCount: number, body: Value) => Value} */
export function newClosure(kind, name, argCount, body) {
  const callable = { __hogCallable__: kind, name, chunk: 'root', argCount, upvalueCount: 0, ip: 0 };
  const closure = { __hogClosure__: true, callable, upvalues: [] };
  Object.defineProperty(closure, 'body', { value: body });
  return closure;
}

/** @type {(text: string) => string} */
export function escapeText(text) {
  /** @type {Record<string, string>} */
  const escapes = {
    '\b': '\\b',
    '\f': '\\f',
    '\r': '\\r',
    '\n': '\\n',
    '\t': '\\t',
    '\0': '\\0',
    '\v': '\\v',
    '\\': '\\\\',
    "'": "\\'",
  };
  return `'${text
    .split('')
    .map((one) => escapes[one] ?? one)
    .join('')}'`;
}

/** @type {(name: string) => string} */
export function functionName(name) {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : `\`${name.replaceAll('`', '``')}\``;
}

/**
 * Prints a value as a Hog literal.
 * @type {(value: Value, around?: Value[]) => string}
 */
export function print(value, around = []) {
  if (typeof value === 'string') return escapeText(value);
  if (value === null || value === undefined) return 'null';
  if (typeof value !== 'object') return String(value);
  const known = isDateTime(value) || isDate(value) || isError(value) || isClosure(value) || isCallable(value);
  if (around.includes(value) && !known) return 'null';
  const inner = [...around, value];
  /** @type {(item: Value) => string} */
  const one = (item) => print(item, inner);
  if (Array.isArray(value)) {
    const items = value.map(one).join(', ');
    if (!Object(value).__isHogTuple) return `[${items}]`;
    return value.length < 2 ? `tuple(${items})` : `(${items})`;
  }
  if (isDateTime(value)) {
    const seconds = String(value.dt);
    return `DateTime(${seconds}${seconds.includes('.') ? '' : '.0'}, ${escapeText(value.zone)})`;
  }
  if (isDate(value)) return `Date(${value.year}, ${value.month}, ${value.day})`;
  if (isError(value)) {
    return `${value.type}(${escapeText(value.message)}${value.payload ? `, ${one(value.payload)}` : ''})`;
  }
  if (isClosure(value)) return print(value.callable, inner);
  if (isCallable(value)) return `fn<${functionName(value.name ?? 'lambda')}(${print(value.argCount)})>`;
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return `{${entries.map(([key, item]) => `${one(key)}: ${one(item)}`).join(', ')}}`;
}

/**
 * Describes a value for a message.
 * @type {(value: Value) => string}
 */
export function describe(value) {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Map) return 'a dictionary';
  return typeof value === 'object' && value !== null ? 'an object' : print(value);
}

/** @type {(value: Value) => string} */
export function printOut(value) {
  return typeof value === 'string' ? value : print(value);
}

/**
 * Converts a value of the page to a Hog value.
 * @type {(value: Value) => Value}
 */
export function toHog(value) {
  if (typeof value === 'bigint') return Number(value);
  if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return null;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const list = value.map((item) => toHog(item));
    return Object(value).__isHogTuple ? markTuple(list) : list;
  }
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [toHog(key), toHog(item)]));
  if (isDateTime(value)) return newDateTime(value.dt, value.zone);
  if (isDate(value)) return newDate(value.year, value.month, value.day);
  if (value instanceof Date) return newDateTime(value.getTime() / 1000, 'UTC');
  return new Map(Object.keys(value).map((key) => [key, toHog(value[key])]));
}

/**
 * Replaces halves of surrogate pairs, which JSON and databases cannot carry.
 * @type {(text: string) => string}
 */
export function wellFormed(text) {
  return text.replace(/[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]/g, (one) =>
    one.length === 2 ? one : '\ufffd',
  );
}

/**
 * Converts a Hog value to plain data. A cyclic reference becomes null.
 * @type {(value: Value, around?: Value[]) => Value}
 */
export function toHost(value, around = []) {
  if (value === undefined) return null;
  if (typeof value === 'string') return wellFormed(value);
  if (typeof value !== 'object' || value === null || isDateTime(value) || isDate(value)) return value;
  if (isClosure(value) || isCallable(value)) return print(value);
  if (around.includes(value)) return null;
  const inner = [...around, value];
  if (Array.isArray(value)) return value.map((item) => toHost(item, inner));
  const plain = {};
  for (const [key, item] of value instanceof Map ? value : Object.entries(value)) {
    const name = typeof key === 'string' ? wellFormed(key) : print(key);
    const property = { value: toHost(item, inner), enumerable: true, configurable: true, writable: true };
    Object.defineProperty(plain, name, property);
  }
  return plain;
}
