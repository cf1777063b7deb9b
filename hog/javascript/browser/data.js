/** @import { BrowserFunction, Run, Value } from './types.ts' */
import { rounded, sortedBy } from './arguments.js';
import { secondsOf } from './dates.js';

import { callValue, compare } from './operators.js';
import {
  fail,
  isCallable,
  isClosure,
  isDate,
  isDateTime,
  isError,
  markTuple,
  newError,
  printOut,
  wellFormed,
} from './values.js';

/** @type {(value: Value) => number} */
export function daysOf(value) {
  return Math.floor(/** @type {number} */ (secondsOf(value)) / 86_400);
}

/** @type {(text: string, four: boolean) => number[] | null} */
export function addressOf(text, four) {
  if (four) {
    const bytes = text.split('.').map((part) => (String(Number(part)) === part ? Number(part) : -1));
    return bytes.length === 4 && bytes.every((one) => one >= 0 && one <= 255) ? bytes : null;
  }
  let parts = text.split(':');
  if (text.includes('::')) {
    const [before = [], after = [], ...more] = text.split('::').map((half) => (half ? half.split(':') : []));
    if (more.length > 0) return null;
    if (before.length + after.length > 7) return null;
    parts = [...before, ...Array(8 - before.length - after.length).fill('0'), ...after];
  }
  if (parts.length !== 8) return null;
  const words = parts.map((part) => Number.parseInt(part, 16));
  return words.every((one) => one >= 0 && one <= 0xffff)
    ? words.flatMap((one) => [one >> 8, one & 255])
    : null;
}

/** @type {(address: Value, prefix: Value) => boolean} */
export function inRange(address, prefix) {
  try {
    const [net, mask] = prefix.split('/');
    if (!address || !net || !mask || !(Number(mask) >= 0)) return false;
    const four = address.includes('.') && net.includes('.');
    if (!four && !(address.includes(':') && net.includes(':'))) return false;
    const bits = Number(mask);
    const [a, b] = [addressOf(address, four), addressOf(net, four)];
    if (!a || !b || bits > a.length * 8) return false;
    return a.every((byte, at) => {
      const left = Math.min(8, Math.max(0, bits - at * 8));
      return byte >> (8 - left) === /** @type {number} */ (b[at]) >> (8 - left);
    });
  } catch {
    return false;
  }
}

/** @type {(value: Value) => Value[]} */
export function valuesOf(value) {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return [...value];
  return value instanceof Map ? [...value.values()] : Object.values(value);
}

/** @type {(name: string, id: Value, ids: Value) => boolean} */
export function isMember(name, id, ids) {
  if (ids === null || ids === undefined)
    fail(`${name}() requires cohort membership to be loaded for this evaluation`);
  return valuesOf(ids).some((one) => compare('==', one, id));
}

/** @type {(value: Value) => Value[]} */
export function listOf(value) {
  return Array.isArray(value) ? [...value] : [];
}

/**
 * Sorts a list, by the keys that a function returns if there is one.
 * @type {(args: Value[], run: Run, isReverse: boolean) => Value[]}
 */
export function sorted(args, run, isReverse) {
  const [first, second] = args;
  if (isClosure(first) && args.length === 2) {
    const list = valuesOf(second);
    return sortedBy(
      list,
      list.map((one) => callValue(run, [one], first)),
      isReverse,
    );
  }
  if (Array.isArray(first) && Array.isArray(second)) return sortedBy(first, second, isReverse);
  const list = listOf(first).sort();
  return isReverse ? list.reverse() : list;
}

/** @type {(args: Value[], run: Run, name: string) => Value} */
export function failure([message, payload], _run, name) {
  return newError(name, message, payload);
}

/**
 * Hog functions for numbers, conditions, lists, networks and errors.
 * @type {Record<string, BrowserFunction>}
 */
export const data = {
  toInt: ([value]) => {
    if (isDateTime(value)) return Math.floor(value.dt);
    const number = isDate(value)
      ? daysOf(value)
      : Number.parseInt(value, /^\s*[+-]?0x/i.test(value) ? 16 : 10);
    return Number.isNaN(number) ? null : number;
  },
  toFloat: ([value]) => {
    if (isDateTime(value)) return value.dt;
    const number = isDate(value) ? daysOf(value) : Number.parseFloat(value);
    return Number.isNaN(number) ? null : number;
  },
  round: ([value, digits]) => rounded(value, digits),
  floor: ([value]) => Math.floor(value),
  min2: ([a, b]) => [b, a][Number(a < b)],
  plus: ([a, b]) => a + b,
  minus: ([a, b]) => a - b,
  equals: ([a, b]) => a === b,
  notEquals: ([a, b]) => a !== b,
  greater: ([a, b]) => a > b,
  greaterOrEquals: ([a, b]) => a >= b,
  less: ([a, b]) => a < b,
  lessOrEquals: ([a, b]) => a <= b,
  not: ([value]) => !value,
  and: (args) => args.every(Boolean),
  or: (args) => args.some(Boolean),
  if: ([condition, a, b]) => (condition ? a : b),
  multiIf: (args) => {
    for (let i = 0; i < args.length - 1; i += 2) if (args[i]) return args[i + 1];
    return args.at(-1);
  },
  in: ([value, list]) => (Array.isArray(list) ? list.includes(value) : false),
  isNull: ([value]) => value === null || value === undefined,
  isNotNull: ([value]) => value !== null && value !== undefined,
  ifNull: ([a, b]) => (a !== null ? a : b),
  coalesce: (args) => args.find((one) => one !== null && one !== undefined) ?? null,
  assumeNotNull: ([value]) => value ?? fail('Value is null in assumeNotNull'),
  typeof: ([value]) => {
    if (value === null || value === undefined) return 'null';
    if (isDateTime(value)) return 'datetime';
    if (isDate(value)) return 'date';
    if (isError(value)) return 'error';
    if (isCallable(value) || isClosure(value)) return 'function';
    if (Array.isArray(value)) return Object(value).__isHogTuple ? 'tuple' : 'array';
    return typeof value === 'number' ? (Number.isInteger(value) ? 'integer' : 'float') : typeof value;
  },
  range: ([from, to]) =>
    to === undefined
      ? Array.from({ length: from }, (_one, i) => i)
      : Array.from({ length: to - from }, (_one, i) => from + i),
  tuple: (args) => markTuple([...args]),
  keys: ([value]) => {
    if (typeof value !== 'object' || value === null) return [];
    return Array.isArray(value) || value instanceof Map ? [...value.keys()] : Object.keys(value);
  },
  values: ([value]) => valuesOf(value),
  indexOf: ([list, value]) => (Array.isArray(list) ? list.indexOf(value) + 1 : 0),
  has: ([list, value]) => Array.isArray(list) && list.includes(value),
  arrayPushBack: ([list, value]) => [...listOf(list), value],
  arrayPushFront: ([list, value]) => [value, ...listOf(list)],
  arrayPopBack: ([list]) => listOf(list).slice(0, -1),
  arrayPopFront: ([list]) => listOf(list).slice(1),
  arraySort: (args, run) => sorted(args, run, false),
  arrayReverse: ([list]) => listOf(list).reverse(),
  arrayReverseSort: (args, run) => sorted(args, run, true),
  arrayStringConcat: ([list, separator = '']) => (Array.isArray(list) ? list.join(separator) : ''),
  arrayMap: ([fn, list], run) => valuesOf(list).map((one) => callValue(run, [one], fn)),
  arrayFilter: ([fn, list], run) => valuesOf(list).filter((one) => callValue(run, [one], fn)),
  arrayExists: ([fn, list], run) => valuesOf(list).some((one) => callValue(run, [one], fn)),
  arrayCount: ([fn, list], run) => valuesOf(list).filter((one) => callValue(run, [one], fn)).length,
  arrayReduce: ([fn, list, first], run) =>
    valuesOf(list).reduce((sum, one) => callValue(run, [sum, one], fn), first),
  inCohort: ([id, ids]) => isMember('inCohort', id, ids),
  notInCohort: ([id, ids]) => !isMember('notInCohort', id, ids),
  sortableSemver: ([version]) => {
    const found = version === null ? null : /(\d+(\.\d+)+)/.exec(String(version));
    return found?.[1]?.split('.').map(Number) ?? [];
  },
  isIPAddressInRange: ([address, prefix]) => inRange(address, prefix),
  Error: failure,
  RetryError: failure,
  NotImplementedError: failure,
  HogError: ([type, message, payload]) => newError(type, message, payload),
  print: (args, run) => {
    const line = wellFormed(args.map((one) => printOut(one)).join(' '));
    if (run.options.onPrint) run.options.onPrint(line);
    // biome-ignore lint/suspicious/noConsole: browsers print to the console
    else console.log(line);
    return null;
  },
};
