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

/** Values of a running program: scalars, lists, tuples (marked lists), Maps, dates, errors, functions. */
export type HogValue = unknown;

interface MarkedList extends Array<HogValue> {
  __isHogTuple?: true;
}

/** Levels of lists and dictionaries: what walks a value must not run off JavaScript's stack. */
export const MAX_VALUE_DEPTH = 500;

const COST = 8;

export function markTuple(list: HogValue[]): HogValue[] {
  (list as MarkedList).__isHogTuple = true;
  return list;
}

export const isTuple = (value: HogValue): boolean =>
  Array.isArray(value) && (value as MarkedList).__isHogTuple === true;

/** Bytes a value holds, a shared part counted wherever it stands; stops at the meter's limit. */
export function costOf(value: HogValue, meter: Meter): number {
  if (typeof value === 'string') return COST + value.length;
  if (typeof value !== 'object' || value === null) return COST;
  const walk: Walk = { total: 0, path: [], limit: meter.limits.maxMemory };
  addCost(value, walk);
  if (walk.total > walk.limit) meter.outOfMemory(walk.total);
  meter.step(walk.total >> 7);
  return walk.total;
}

/** What an operator may turn into a number or a text. */
const WHOLE_LIMIT = 8 * 1024 * 1024;

/**
 * Refuses a value that is small in memory and huge when written out (lists that hold the same list twice,
 * many levels deep): JavaScript would write it out.
 */
export function checkWhole(value: object): void {
  const walk: Walk = { total: 0, path: [], limit: WHOLE_LIMIT };
  addCost(value, walk);
  if (walk.total > walk.limit) {
    throw new HogFailure('memory', `A value is larger than ${WHOLE_LIMIT} bytes when written out`);
  }
}

interface Walk {
  total: number;
  /** The containers around the value: one that is among them is in itself. */
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

function tooDeep(): never {
  throw new HogFailure('depth', `A value is nested more than ${MAX_VALUE_DEPTH} levels deep`);
}

/** A value of the host as a value of the program. Only dates are recognised: data cannot bring functions. */
export function toHog(value: unknown, depth = 0): HogValue {
  if (typeof value !== 'object' || value === null) {
    if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return null;
    return typeof value === 'bigint' ? Number(value) : value;
  }
  if (depth > MAX_VALUE_DEPTH) tooDeep();
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

/** A value of the program as plain data for the host. A cycle ends in null. */
export function toHost(value: HogValue, marked: Set<object> = new Set()): unknown {
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
      // Not by assignment: `__proto__` is a key like any other.
      Object.defineProperty(object, typeof key === 'string' ? key : printHogValue(key), {
        value: toHost(item, marked),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    plain = object;
  }
  marked.delete(value);
  return plain;
}

/** What a failure of the program looks like to the program. */
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

/** Any value as text. The library cannot print an error whose message is no string. */
function printed(value: HogValue): string {
  if (typeof value === 'string') return value;
  try {
    return printHogValue(value);
  } catch {
    return describe(value);
  }
}

/** What kind of value it is, in words for a message. */
export function describe(value: HogValue): string {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Map) return 'a dictionary';
  return typeof value === 'object' && value !== null ? 'an object' : printHogValue(value);
}

/** What calling something says that is no function. */
export function closureMessage(value: HogValue): string {
  return `Only functions can be called, not ${describe(value)}`;
}
