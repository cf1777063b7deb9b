import { HogFailure } from './errors.ts';
import {
  type HogError,
  isHogCallable,
  isHogClosure,
  isHogDate,
  isHogDateTime,
  isHogError,
  newHogCallable,
  newHogClosure,
  newHogError,
  printHogValue,
} from './hogvm.ts';
import type { Meter } from './meter.ts';

export type { HogClosure, HogError } from './hogvm.ts';
export { isHogCallable, isHogClosure, isHogDate, isHogDateTime, isHogError, newHogCallable, newHogClosure };

/** A value of a running program: a scalar, a list, a tuple (a marked list), a Map, a date, an error or a function. */
export type HogValue = unknown;

interface MarkedList extends Array<HogValue> {
  __isHogTuple?: true;
}

/**
 * The deepest nesting of lists and dictionaries. Deeper values would overflow JavaScript's stack in recursive
 * functions.
 */
export const MAX_VALUE_DEPTH = 500;

export const COST = 8;

export function markTuple(list: HogValue[]): HogValue[] {
  (list as MarkedList).__isHogTuple = true;
  return list;
}

export const isTuple = (value: HogValue): boolean =>
  Array.isArray(value) && (value as MarkedList).__isHogTuple === true;

/**
 * Returns the size of a value in bytes. A value that is referenced several times counts each time. Fails if the size
 * exceeds the memory limit.
 */
export function costOf(value: HogValue, meter: Meter): number {
  if (typeof value === 'string') return COST + value.length;
  if (typeof value !== 'object' || value === null) return COST;
  return measureWhole(value, meter).total;
}

/** Returns the size of a value, and how deep it is nested. Fails if either exceeds its limit. */
export function measureWhole(value: object, meter: Meter): { total: number; deepest: number } {
  const walk: Walk = { total: 0, deepest: 0, path: [], limit: meter.limits.maxMemory };
  addCost(value, walk);
  if (walk.total > walk.limit) meter.outOfMemory(walk.total);
  meter.step(walk.total >> 7);
  return walk;
}

/** The largest value, in bytes, that an operator converts to a number or a text. */
const WHOLE_LIMIT = 8 * 1024 * 1024;

/**
 * Refuses a value whose text would be huge although it takes little memory, such as nested lists that contain the same
 * list twice on every level. JavaScript would create the whole text.
 */
export function checkWhole(value: object): void {
  const walk: Walk = { total: 0, deepest: 0, path: [], limit: WHOLE_LIMIT };
  addCost(value, walk);
  if (walk.total > walk.limit) {
    throw new HogFailure('memory', `A value is larger than ${WHOLE_LIMIT} bytes as text`);
  }
}

interface Walk {
  total: number;
  deepest: number;
  /** The containers around the current value, to detect cycles. */
  path: object[];
  limit: number;
}

function addCost(value: HogValue, walk: Walk): void {
  walk.total += COST;
  if (typeof value === 'string') walk.total += value.length;
  else if (typeof value === 'object' && value !== null && walk.total <= walk.limit) addContents(value, walk);
}

function addContents(value: object, walk: Walk): void {
  const { path } = walk;
  if (path.includes(value)) return;
  if (path.length > MAX_VALUE_DEPTH) tooDeep();
  path.push(value);
  walk.deepest = Math.max(walk.deepest, path.length);
  if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item === 'number') walk.total += COST;
      else addCost(item, walk);
    }
  } else if (value instanceof Map) {
    for (const [key, item] of value) {
      addCost(key, walk);
      addCost(item, walk);
    }
  } else {
    for (const key of Object.keys(value)) {
      walk.total += COST + key.length;
      addCost((value as Record<string, unknown>)[key], walk);
    }
  }
  path.pop();
}

export function tooDeep(): never {
  throw new HogFailure('depth', `A value is nested more than ${MAX_VALUE_DEPTH} levels deep`);
}

/**
 * A value of the host that was converted for another program before. The first reader gets that value, to save another
 * conversion, and may change it. Later readers get the value of the host anew, like every reader of a global.
 */
export class Held {
  readonly plain: object;
  #hog: HogValue;
  #isTaken = false;

  /** `hog` is what the value was converted to, if it was. Nobody else may use it. */
  constructor(plain: object, hog?: HogValue) {
    this.plain = plain;
    this.#hog = hog;
  }

  take(): HogValue {
    if (this.#isTaken) return toHog(this.plain);
    this.#isTaken = true;
    this.#hog ??= toHog(this.plain);
    return this.#hog;
  }

  /** Answers whether a value is what the first reader got. */
  isFirst(value: HogValue): boolean {
    return this.#isTaken && value === this.#hog;
  }
}

/**
 * Converts a value of the host to a Hog value. Dates are recognized; functions become null, so data cannot bring code.
 */
export function toHog(value: unknown, depth = 0): HogValue {
  if (typeof value !== 'object' || value === null) {
    if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return null;
    return typeof value === 'bigint' ? Number(value) : value;
  }
  if (depth > MAX_VALUE_DEPTH) tooDeep();
  if (value instanceof Held) return value.take();
  if (Array.isArray(value)) {
    const list = value.map((item) => toHog(item, depth + 1));
    return isTuple(value) ? markTuple(list) : list;
  }
  if (value instanceof Map) {
    return new Map([...value].map(([key, item]) => [toHog(key, depth + 1), toHog(item, depth + 1)]));
  }
  if (isHogDateTime(value) && typeof value.dt === 'number' && typeof value.zone === 'string') {
    return { __hogDateTime__: true, dt: value.dt, zone: value.zone };
  }
  if (isHogDate(value) && [value.year, value.month, value.day].every((part) => typeof part === 'number')) {
    return { __hogDate__: true, year: value.year, month: value.month, day: value.day };
  }
  if (value instanceof Date) return { __hogDateTime__: true, dt: value.getTime() / 1000, zone: 'UTC' };
  const map = new Map<string, HogValue>();
  for (const key of Object.keys(value))
    map.set(key, toHog((value as Record<string, unknown>)[key], depth + 1));
  return map;
}

/**
 * Converts a Hog value to plain data for the host. A cyclic reference becomes null, and half a surrogate pair becomes
 * U+FFFD, because neither JSON nor a database can carry it.
 */
export function toHost(value: HogValue, marked: Set<object> = new Set()): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value === undefined ? null : value;
  if (isHogDateTime(value) || isHogDate(value)) return value;
  if (isHogClosure(value) || isHogCallable(value)) return printHogValue(value);
  if (marked.has(value)) return null;
  if (marked.size > MAX_VALUE_DEPTH) tooDeep();
  marked.add(value);
  let plain: unknown;
  if (Array.isArray(value)) plain = value.map((item) => toHost(item, marked));
  else {
    const object = {};
    const entries = value instanceof Map ? value : Object.entries(value);
    for (const [key, item] of entries) {
      put(object, typeof key === 'string' ? key.toWellFormed() : printHogValue(key), toHost(item, marked));
    }
    plain = object;
  }
  marked.delete(value);
  return plain;
}

/** Sets a property. An assignment would treat `__proto__` specially, but here it is an ordinary key. */
function put(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Creates the error value that a program can catch. */
export function errorValue(type: string, message: string): HogError {
  return newHogError(type, message);
}

export function uncaught(error: HogError): HogFailure {
  checkWhole(error);
  return new HogFailure(
    'uncaught',
    printed(error.message),
    printed(error.type),
    toHost(error.payload ?? null),
  );
}

/** Returns any value as text. The reference library cannot print an error whose message is not a string. */
function printed(value: HogValue): string {
  if (typeof value === 'string') return value;
  try {
    return printHogValue(value);
  } catch {
    return describe(value);
  }
}

/** Describes the kind of a value, for a message. */
export function describe(value: HogValue): string {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Map) return 'a dictionary';
  return typeof value === 'object' && value !== null ? 'an object' : printHogValue(value);
}

/** Returns the message for a call of a value that is not a function. */
export function closureMessage(value: HogValue): string {
  return `Only functions can be called, not ${describe(value)}`;
}
