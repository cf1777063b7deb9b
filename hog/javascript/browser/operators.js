/** @import { BrowserOptions, Run, Value } from './types.ts' */
import { parseDate } from './calendar.js';
import { secondsOf } from './dates.js';
import {
  describe,
  fail,
  isCallable,
  isClosure,
  isError,
  markTuple,
  newClosure,
  print,
  toHog,
  toHost,
} from './values.js';

/**
 * Converts two operands to the types in which the VM compares them.
 * @type {(left: Value, right: Value) => [Value, Value]}
 */
export function unify(left, right) {
  const [a, b] = [secondsOf(left), secondsOf(right)];
  if (a !== null && b !== null) return [a, b];
  /** @type {(text: Value) => number | null} */
  const parsed = (text) => (typeof text === 'string' ? (parseDate(text, 'UTC')?.seconds ?? null) : null);
  if (a !== null && parsed(right) !== null) return [a, parsed(right)];
  if (b !== null && parsed(left) !== null) return [parsed(left), b];
  const kinds = `${typeof left} ${typeof right}`;
  if (kinds === 'number string' || kinds === 'string number') return [Number(left), Number(right)];
  if (kinds === 'boolean string') return [left, right === 'true'];
  if (kinds === 'string boolean') return [left === 'true', right];
  if (kinds === 'boolean number' || kinds === 'number boolean') return [Number(left), Number(right)];
  return [left, right];
}

/** @type {(value: Value) => boolean} */
export function isNumbers(value) {
  return Array.isArray(value) && value.every((one) => Number.isFinite(one));
}

/** @type {(op: string, a: Value, b: Value) => boolean} */
export function compare(op, a, b) {
  let [left, right] = [a, b];
  if (typeof left !== typeof right || typeof left === 'object') {
    [left, right] = unify(left, right);
    if (isNumbers(left) && isNumbers(right)) {
      const at = left.findIndex(
        (/** @type {number} */ one, /** @type {number} */ i) => i >= right.length || one !== right[i],
      );
      const differs = at !== -1 && at < right.length;
      [left, right] = differs ? [left[at], right[at]] : [left.length, right.length];
    }
  }
  if (op === '==') return left === right;
  if (op === '!=') return left !== right;
  if (op === '<') return left < right;
  if (op === '<=') return left <= right;
  return op === '>' ? left > right : left >= right;
}

/**
 * Compiles a regular expression. Replaces RE2 syntax that JavaScript does not have.
 * @type {(pattern: Value, flags?: string) => RegExp}
 */
export function regexOf(pattern, flags = '') {
  const text = String(pattern);
  const given = /^\(\?([imsU]+)\)/.exec(text);
  const source = text
    .slice(given?.[0].length ?? 0)
    .replaceAll('(?P<', '(?<')
    .replace(/\\[Az]/g, (one) => (one === '\\A' ? '^(?<![\\s\\S])' : '$(?![\\s\\S])'));
  try {
    return new RegExp(source, [...new Set(`${flags}${given?.[1]?.replace('U', '') ?? ''}`)].join(''));
  } catch {
    return fail(`Invalid regular expression: \`${text}\``);
  }
}

/** @type {(pattern: string, insensitive: boolean) => (text: string) => boolean} */
export function likeOf(pattern, insensitive) {
  const escaped = pattern.replaceAll(/[-/\\^$*+?.()|[\]{}]/g, '\\$&');
  const regex = new RegExp(
    escaped.replaceAll('%', '[^\\n]*').replaceAll('_', '[^\\n]'),
    insensitive ? 'i' : '',
  );
  return (text) => regex.test(text);
}

/** @type {(text: Value, pattern: Value, insensitive: boolean) => boolean} */
export function matchesOf(text, pattern, insensitive) {
  return insensitive || pattern
    ? Boolean(text) && regexOf(pattern, insensitive ? 'i' : '').test(String(text))
    : false;
}

/** @type {(container: Value, item: Value) => boolean} */
export function contains(container, item) {
  if (Array.isArray(container)) return container.includes(item);
  if (typeof container === 'string') return container.includes(String(item));
  return fail(`\`in\` needs a list, a tuple or a string, not ${describe(container)}`);
}

/** @type {(object: Value, key: Value) => Value} */
export function getProperty(object, key) {
  if (typeof object !== 'object' || object === null) return null;
  if (object instanceof Map) return object.get(key) ?? null;
  if (typeof key === 'number') {
    if (key === 0) fail('Hog arrays start from index 1');
    return Array.isArray(object) ? (object[key > 0 ? key - 1 : object.length + key] ?? null) : null;
  }
  if (isClosure(object) || isCallable(object)) return null;
  return Object.hasOwn(object, String(key)) ? (object[String(key)] ?? null) : null;
}

/** @type {(object: Value, key: Value, value: Value) => void} */
export function setProperty(object, key, value) {
  if (object instanceof Map) object.set(key, value);
  else if (Array.isArray(object) && typeof key === 'number') {
    if (!(key >= 1) || !Number.isInteger(key)) fail('Hog arrays start from index 1');
    if (key - object.length > 1_000_000) fail(`Can not set element ${key} of a list of ${object.length}`);
    while (object.length < key - 1) object.push(null);
    object[key - 1] = value;
  } else if (typeof object === 'object' && object !== null) {
    fail(`Can not set ${String(key)} on element of type object`);
  } else fail(`Can not set ${String(key)} on non-object: ${typeof object}`);
}

/** @type {(run: Run) => void} */
export function takeStep(run) {
  const most = run.options.maxSteps ?? 10_000_000;
  if (++run.steps > most) fail(`Exceeded the maximum of ${most} steps.`);
}

/** @type {(run: Run, args: Value[], callee: Value) => Value} */
export function callValue(run, args, callee) {
  if (!isClosure(callee)) fail(`Only functions can be called, not ${describe(callee)}`);
  const { argCount, __hogCallable__: kind } = callee.callable;
  if (kind === 'stl') return callee.body(run, args);
  if (args.length > argCount) fail(`Too many arguments. Passed ${args.length}, expected ${argCount}`);
  while (args.length < argCount) args.push(null);
  takeStep(run);
  if (run.depth >= 999) fail('Call stack exceeded maximum length of 1000');
  run.depth++;
  try {
    return callee.body(...args);
  } finally {
    run.depth--;
  }
}

/**
 * Throws an error of the program as a JavaScript error.
 * @type {(error: Value) => never}
 */
export function raise(error) {
  if (!isError(error)) fail('Can not throw: value is not of type Error');
  const { type, message, payload } = error;
  const thrown = new Error(typeof message === 'string' ? message : print(message));
  throw Object.assign(thrown, { name: String(type), payload: toHost(payload), hogError: error });
}

/**
 * Turns compiled code into a function of the globals.
 * @type {(entry: Value) => (globals: object, options?: BrowserOptions) => Value}
 */
export function runner(entry) {
  return (globals, options = {}) => {
    /** @type {Run & Value} */
    const run = { steps: 0, depth: 0, options, meter: { step: () => takeStep(run) } };
    return toHost(entry(globals, run));
  };
}

/**
 * The operators that compiled code calls. They have the same names as in the runtime table of the server.
 * @type {Record<string, (...args: Value[]) => Value>}
 */
export const operators = {
  own: (value, key) => Object.hasOwn(value, key),
  step: (value, key) => (value instanceof Map ? (value.get(key) ?? null) : null),
  host: toHog,
  get: getProperty,
  set: (run, object, key, value) => {
    takeStep(run);
    setProperty(object, key, value);
  },
  list: (items) => items,
  dict: (items) => {
    const map = new Map();
    for (let i = 0; i < items.length; i += 2) map.set(items[i], items[i + 1]);
    return map;
  },
  tuple: markTuple,
  closure: (name, argCount, body) => newClosure('local', name, argCount, body),
  call: callValue,
  matcher: likeOf,
  lend: (value) => {
    if (Array.isArray(value)) Object(value).__isHogOwned = false;
    return value;
  },
  raise,
  caught: (_run, thrown) => {
    if (thrown?.hogError) return thrown.hogError;
    throw thrown;
  },
  between: (value, low, high, negated) => {
    if (![low, high, value].every((part) => compare('!=', null, part))) return null;
    const first = compare(negated ? '<' : '>=', value, low);
    const second = compare(negated ? '>' : '<=', value, high);
    return negated ? first || second : first && second;
  },
  string: (value) => String(value),
  not: (value) => !value,
  add: (right, left) => Number(left) + Number(right),
  sub: (right, left) => Number(left) - Number(right),
  mul: (right, left) => Number(left) * Number(right),
  div: (right, left) => Number(left) / Number(right),
  mod: (right, left) => Number(left) % Number(right),
  eq: (right, left) => compare('==', left, right),
  ne: (right, left) => compare('!=', left, right),
  lt: (right, left) => compare('<', left, right),
  le: (right, left) => compare('<=', left, right),
  gt: (right, left) => compare('>', left, right),
  ge: (right, left) => compare('>=', left, right),
  like: (right, left) => likeOf(String(right), false)(String(left)),
  ilike: (right, left) => likeOf(String(right), true)(String(left)),
  nlike: (right, left) => !likeOf(String(right), false)(String(left)),
  nilike: (right, left) => !likeOf(String(right), true)(String(left)),
  in: (right, left) => contains(right, left),
  nin: (right, left) => !contains(right, left),
  re: (right, left) => matchesOf(left, right, false),
  nre: (right, left) => !matchesOf(left, right, false),
  ire: (right, left) => matchesOf(left, right, true),
  nire: (right, left) => !matchesOf(left, right, true),
};
