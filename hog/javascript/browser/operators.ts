import { parseDate } from './calendar.ts';
import { secondsOf } from './dates.ts';
import {
  type BrowserOptions,
  fail,
  isCallable,
  isClosure,
  isError,
  markTuple,
  newClosure,
  print,
  type Run,
  toHog,
  toHost,
  type Value,
} from './values.ts';

/** Both sides as the machine compares them. */
export function unify(left: Value, right: Value): [Value, Value] {
  const [a, b] = [secondsOf(left), secondsOf(right)];
  if (a !== null && b !== null) return [a, b];
  const parsed = (text: Value) =>
    typeof text === 'string' ? (parseDate(text, 'UTC')?.seconds ?? null) : null;
  if (a !== null && parsed(right) !== null) return [a, parsed(right)];
  if (b !== null && parsed(left) !== null) return [parsed(left), b];
  const kinds = `${typeof left} ${typeof right}`;
  if (kinds === 'number string' || kinds === 'string number') return [Number(left), Number(right)];
  if (kinds === 'boolean string') return [left, right === 'true'];
  if (kinds === 'string boolean') return [left === 'true', right];
  if (kinds === 'boolean number' || kinds === 'number boolean') return [Number(left), Number(right)];
  return [left, right];
}

export function isNumbers(value: Value): boolean {
  return Array.isArray(value) && value.every((one) => Number.isFinite(one));
}

export function compare(op: string, a: Value, b: Value): boolean {
  let [left, right] = [a, b];
  if (typeof left !== typeof right || typeof left === 'object') {
    [left, right] = unify(left, right);
    if (isNumbers(left) && isNumbers(right)) {
      const at = left.findIndex((one: number, i: number) => i >= right.length || one !== right[i]);
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

/** RE2's own spellings as the browser's. */
export function regexOf(pattern: Value, flags = ''): RegExp {
  const text = String(pattern);
  const given = /^\(\?([imsU]+)\)/.exec(text);
  const source = text
    .slice(given?.[0].length ?? 0)
    .replaceAll('(?P<', '(?<')
    .replace(/\\[Az]/g, (one) => (one === '\\A' ? '^(?<![\\s\\S])' : '$(?![\\s\\S])'));
  try {
    return new RegExp(source, [...new Set(`${flags}${given?.[1]?.replace('U', '') ?? ''}`)].join(''));
  } catch (error) {
    return fail(`Invalid regular expression: ${(error as Error).message}`);
  }
}

export function likeOf(pattern: string, insensitive: boolean): (text: string) => boolean {
  const escaped = pattern.replaceAll(/[-/\\^$*+?.()|[\]{}]/g, '\\$&');
  const regex = new RegExp(
    escaped.replaceAll('%', '[^\\n]*').replaceAll('_', '[^\\n]'),
    insensitive ? 'i' : '',
  );
  return (text) => regex.test(text);
}

export function matchesOf(text: Value, pattern: Value, insensitive: boolean): boolean {
  return insensitive || pattern
    ? Boolean(text) && regexOf(pattern, insensitive ? 'i' : '').test(String(text))
    : false;
}

export function contains(container: Value, item: Value): boolean {
  if (Array.isArray(container)) return container.includes(item);
  if (typeof container === 'string') return container.includes(String(item));
  const kind = container instanceof Map ? 'a dictionary' : print(container);
  return fail(`\`in\` needs a list, a tuple or a string, not ${kind}`);
}

export function getProperty(object: Value, key: Value): Value {
  if (typeof object !== 'object' || object === null) return null;
  if (object instanceof Map) return object.get(key) ?? null;
  if (typeof key === 'number') {
    if (key === 0) fail('Hog arrays start from index 1');
    return Array.isArray(object) ? (object[key > 0 ? key - 1 : object.length + key] ?? null) : null;
  }
  if (isClosure(object) || isCallable(object)) return null;
  return Object.hasOwn(object, String(key)) ? (object[String(key)] ?? null) : null;
}

export function setProperty(object: Value, key: Value, value: Value): void {
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

export function takeStep(run: Run): void {
  const most = run.options.maxSteps ?? 10_000_000;
  if (++run.steps > most) fail(`Exceeded the maximum of ${most} steps.`);
}

export function callValue(run: Run, args: Value[], callee: Value): Value {
  if (!isClosure(callee)) fail(`Only functions can be called, not ${print(callee)}`);
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

/** An error of the program on its way through JavaScript. */
export function raise(error: Value): never {
  if (!isError(error)) fail('Can not throw: value is not of type Error');
  const { type, message, payload } = error;
  const thrown = new Error(typeof message === 'string' ? message : print(message));
  throw Object.assign(thrown, { name: String(type), payload: toHost(payload), hogError: error });
}

/** Compiled code as a function of the globals. */
export function runner(entry: Value): Value {
  return (globals: object, options: BrowserOptions = {}) => {
    const run = { steps: 0, depth: 0, options, meter: { step: () => takeStep(run) } } as Run & Value;
    return toHost(entry(globals, run));
  };
}

/** What compiled code calls: the same names as those of the runtime table of the server. */
export const operators: Record<string, Value> = {
  own: (value: Value, key: string) => Object.hasOwn(value, key),
  step: (value: Value, key: string) => (value instanceof Map ? (value.get(key) ?? null) : null),
  host: toHog,
  get: getProperty,
  set: (run: Run, object: Value, key: Value, value: Value) => {
    takeStep(run);
    setProperty(object, key, value);
  },
  dict: (items: Value[]) => {
    const map = new Map();
    for (let i = 0; i < items.length; i += 2) map.set(items[i], items[i + 1]);
    return map;
  },
  tuple: markTuple,
  closure: (name: string, argCount: number, body: Value) => newClosure('local', name, argCount, body),
  call: callValue,
  matcher: likeOf,
  raise,
  caught: (_run: Run, thrown: Value) => {
    if (thrown?.hogError) return thrown.hogError;
    throw thrown;
  },
  between: (value: Value, low: Value, high: Value, negated: boolean) => {
    if (![low, high, value].every((part) => compare('!=', null, part))) return null;
    const first = compare(negated ? '<' : '>=', value, low);
    const second = compare(negated ? '>' : '<=', value, high);
    return negated ? first || second : first && second;
  },
  string: (value: Value) => String(value),
  not: (value: Value) => !value,
  add: (right: Value, left: Value) => Number(left) + Number(right),
  sub: (right: Value, left: Value) => Number(left) - Number(right),
  mul: (right: Value, left: Value) => Number(left) * Number(right),
  div: (right: Value, left: Value) => Number(left) / Number(right),
  mod: (right: Value, left: Value) => Number(left) % Number(right),
  eq: (right: Value, left: Value) => compare('==', left, right),
  ne: (right: Value, left: Value) => compare('!=', left, right),
  lt: (right: Value, left: Value) => compare('<', left, right),
  le: (right: Value, left: Value) => compare('<=', left, right),
  gt: (right: Value, left: Value) => compare('>', left, right),
  ge: (right: Value, left: Value) => compare('>=', left, right),
  like: (right: Value, left: Value) => likeOf(String(right), false)(String(left)),
  ilike: (right: Value, left: Value) => likeOf(String(right), true)(String(left)),
  nlike: (right: Value, left: Value) => !likeOf(String(right), false)(String(left)),
  nilike: (right: Value, left: Value) => !likeOf(String(right), true)(String(left)),
  in: (right: Value, left: Value) => contains(right, left),
  nin: (right: Value, left: Value) => !contains(right, left),
  re: (right: Value, left: Value) => matchesOf(left, right, false),
  nre: (right: Value, left: Value) => !matchesOf(left, right, false),
  ire: (right: Value, left: Value) => matchesOf(left, right, true),
  nire: (right: Value, left: Value) => !matchesOf(left, right, true),
};
