import { asFailure, HogFailure, runtimeFailure } from '../runtime/errors.ts';
import { isHogClosure } from '../runtime/hogvm.ts';
import { changeList, lend, own, SORTING } from '../runtime/lists.ts';
import type { Meter } from '../runtime/meter.ts';
import {
  compare,
  contains,
  getGlobal,
  getProperty,
  like,
  likeMatcher,
  matches,
  setProperty,
  toNumber,
  toText,
} from '../runtime/operators.ts';
import { checkNew, sizeOf } from '../runtime/sizes.ts';
import { checkArgumentCount, checkArity, library, type Surroundings } from '../runtime/stl.ts';
import {
  COST,
  closureMessage,
  costOf,
  errorValue,
  Held,
  type HogClosure,
  type HogError,
  type HogValue,
  isHogError,
  MAX_VALUE_DEPTH,
  markTuple,
  newHogCallable,
  newHogClosure,
  toHog,
  toHost,
  uncaught,
} from '../runtime/values.ts';
import { namedFunction } from '../vm/calls.ts';
import { charge, chargeWhole } from './charge.ts';
import { writtenFunctions } from './written.ts';

/** The state of one run: everything that compiled code can access besides its globals. */
export interface Run {
  readonly meter: Meter;
  readonly around: Surroundings;
  readonly functions: ReadonlyMap<string, (...args: unknown[]) => unknown>;
  readonly catchRuntimeErrors: boolean;
  depth: number;
  /** How often the program has set a part of a value. */
  writes: number;
  /** The number of the place where the code is, if it keeps that. */
  at: number;
}

/** Carries a Hog error through JavaScript's `throw`. */
class Thrown {
  readonly error: HogError;
  constructor(error: HogError) {
    this.error = error;
  }
}

type Body = (...args: HogValue[]) => HogValue;

/** The JavaScript function of a closure. Code that holds the closure cannot reach it: programs know no symbols. */
const BODY = Symbol('body');

interface WithBody extends HogClosure {
  [BODY]?: Body;
}

const NO_ASYNC: ReadonlySet<string> = new Set();

function closure(name: string, argCount: number, body: Body): HogClosure {
  const value: WithBody = newHogClosure(
    newHogCallable('local', { name, argCount, upvalueCount: 0, ip: 0, chunk: 'root' }),
  );
  value[BODY] = body;
  return value;
}

function enter<T>(run: Run, body: () => T): T {
  const { maxCallDepth } = run.meter.limits;
  // The program itself also takes a stack frame.
  if (run.depth + 1 >= maxCallDepth) {
    throw new HogFailure('depth', `Call stack exceeded maximum length of ${maxCallDepth}`);
  }
  run.depth++;
  run.meter.step();
  try {
    return body();
  } finally {
    run.depth--;
  }
}

export function callValue(run: Run, args: HogValue[], callee: HogValue): HogValue {
  if (!isHogClosure(callee)) throw runtimeFailure(closureMessage(callee));
  const { callable } = callee;
  if (callable.__hogCallable__ === 'stl') return callLibrary(run, callable.name ?? '', args);
  checkArgumentCount(args.length, run.meter);
  if (args.length > callable.argCount) {
    throw runtimeFailure(`Too many arguments. Passed ${args.length}, expected ${callable.argCount}`);
  }
  const body = (callee as WithBody)[BODY];
  if (!body) throw runtimeFailure(closureMessage(callee));
  while (args.length < callable.argCount) args.push(null);
  return enter(run, () => body(...args));
}

/** Returns whether this is `arraySort(key, list)`, which calls a function. */
const sortsByKey = (name: string, args: HogValue[]): boolean =>
  args.length === 2 && SORTING.has(name) && isHogClosure(args[0]);

/** The longest arguments whose result cannot be nested too deep: each level takes two brackets. */
const SHORT = 2 * MAX_VALUE_DEPTH;

/** Returns whether arguments are scalars, and texts that are short together. */
function isShort(args: readonly HogValue[]): boolean {
  let length = 0;
  for (const one of args) {
    if (typeof one === 'string') length += one.length;
    else if (typeof one === 'object' && one !== null) return false;
  }
  return length <= SHORT;
}

/**
 * Refuses the result of a library function that is nested too deep. The machine measures every value that it puts on its
 * stack. Compiled code measures where a value can get deeper.
 */
function checked(run: Run, args: readonly HogValue[], value: HogValue): HogValue {
  if (typeof value !== 'object' || value === null || isShort(args)) return value;
  if (Array.isArray(value)) checkNew(value, value, 0, run.meter);
  else sizeOf(value, run.meter);
  return value;
}

function callLibrary(run: Run, name: string, args: HogValue[]): HogValue {
  const native = sortsByKey(name, args) ? undefined : library.get(name);
  if (native) {
    checkArgumentCount(args.length, run.meter);
    checkArity(native, args.length);
    run.meter.step();
    return checked(run, args, native.call(args, run.around));
  }
  const written = writtenFunctions.get(name);
  if (!written) throw runtimeFailure(`Unsupported function call: ${name}`);
  if (args.length !== written.arity) {
    throw runtimeFailure(`Function ${name} requires exactly ${written.arity} arguments`);
  }
  return checked(
    run,
    args,
    enter(run, () => written.call(run, args)),
  );
}

function callName(run: Run, name: string, args: HogValue[]): HogValue {
  const host = run.functions.get(name);
  if (!host) return callLibrary(run, name, args);
  checkArgumentCount(args.length, run.meter);
  try {
    return toHog(host(...args.map((one) => whole(run, one))));
  } catch (error) {
    throw asFailure(error);
  }
}

/** Converts a value for the host. Refuses values that are too large to convert. */
export function whole(run: Run, value: HogValue): unknown {
  if (typeof value === 'object' && value !== null) costOf(value, run.meter);
  return toHost(value);
}

/**
 * Returns a caller for a library function. The lookup happens once. A host function of the same name takes precedence.
 */
function named(name: string): (run: Run, args: HogValue[]) => HogValue {
  const native = SORTING.has(name) ? undefined : library.get(name);
  if (!native) return (run, args) => callName(run, name, args);
  return (run, args) => {
    if (run.functions.has(name)) return callName(run, name, args);
    checkArgumentCount(args.length, run.meter);
    checkArity(native, args.length);
    run.meter.step();
    return checked(run, args, native.call(args, run.around));
  };
}

/** Calls `toString`. A text is returned unchanged, unless the host may override the function. */
const text = named('toString');
const written = (run: Run, value: HogValue): HogValue =>
  typeof value === 'string' && !run.functions.has('toString') ? value : text(run, [value]);

/** Handles a missing global. A function with that name is used as the value; otherwise the read fails. */
function missing(path: string[]): HogValue {
  const value = path.length === 1 ? namedFunction(path[0] as string, NO_ASYNC) : null;
  if (!value) throw runtimeFailure(`Global variable not found: ${path.join('.')}`);
  return value;
}

/** Reads a key of a global that is not a plain property. */
function step(value: unknown, key: string): unknown {
  if (value instanceof Map) return value.get(key) ?? null;
  if (!(value instanceof Held)) return null;
  return Object.hasOwn(value.plain, key) ? (value.plain as Record<string, unknown>)[key] : null;
}

// Code passes the run if values of variables and calls are among the items. See `checkNew` for `literals`.

function list(items: HogValue[], literals = 0, run?: Run): HogValue[] {
  if (run) checkNew(items, items, literals, run.meter);
  return items;
}

function tuple(items: HogValue[], literals = 0, run?: Run): HogValue[] {
  return list(markTuple(items), literals, run);
}

function dict(items: HogValue[], literals = 0, run?: Run): Map<HogValue, HogValue> {
  const map = new Map<HogValue, HogValue>();
  for (let i = 0; i < items.length; i += 2) map.set(items[i], items[i + 1]);
  if (run) checkNew(map, items, literals, run.meter);
  return map;
}

function raise(error: HogValue): never {
  if (!isHogError(error)) throw runtimeFailure('Can not throw: value is not of type Error');
  throw new Thrown(error);
}

/** Returns the error that a `catch` clause receives. Rethrows failures that programs cannot catch. */
function caught(run: Run, thrown: unknown): HogValue {
  if (thrown instanceof Thrown) return thrown.error;
  const failure = asFailure(thrown);
  if (run.catchRuntimeErrors && failure.code === 'runtime')
    return errorValue('RuntimeError', failure.message);
  throw failure;
}

export function failureOf(thrown: unknown): HogFailure {
  if (!(thrown instanceof Thrown)) return asFailure(thrown);
  try {
    return uncaught(thrown.error);
  } catch (error) {
    return asFailure(error);
  }
}

/** Evaluates `between`. It makes every comparison in the order of the VM, because any of them can fail. */
function between(value: HogValue, low: HogValue, high: HogValue, negated: boolean): HogValue {
  const known = [low, high, value].map((part) => compare('!=', null, part));
  if (!known.every(Boolean)) return null;
  const first = compare(negated ? '<' : '>=', value, low);
  const second = compare(negated ? '>' : '<=', value, high);
  return negated ? first || second : first && second;
}

/** Calls a list function whose result goes into the variable that its list comes from. */
function change(run: Run, name: string, args: HogValue[]): HogValue {
  if (run.functions.has(name)) return callName(run, name, args);
  run.meter.step();
  return own(changeList(name, args, true, run.meter));
}

function set(run: Run, object: HogValue, key: HogValue, value: HogValue): void {
  run.meter.step();
  run.writes += 1;
  const length = Array.isArray(object) ? object.length : 0;
  // Only what was measured knows that it gets deeper.
  if (typeof value === 'object' && value !== null) sizeOf(object, run.meter);
  setProperty(object, key, value, run.meter);
  const gap = Array.isArray(object) ? object.length - length : 1;
  run.meter.allocate(COST * gap + (typeof value === 'string' ? value.length : 0));
}

const same = (right: HogValue, left: HogValue): boolean =>
  typeof left === typeof right && typeof left !== 'object'
    ? left === right
    : compare('==', charge(left), charge(right));

const ordered =
  (op: '<' | '<=' | '>' | '>=') =>
  (right: HogValue, left: HogValue): boolean =>
    typeof left === 'object' || typeof right === 'object'
      ? compare(op, chargeWhole(left), chargeWhole(right))
      : compare(op, left, right);

const number = (value: HogValue): number =>
  typeof value === 'number' ? value : toNumber(chargeWhole(value));

const string = (value: HogValue): string => toText(chargeWhole(value));

/**
 * The runtime table: everything that compiled code can call. Operators take the right operand first, then the left,
 * because the VM evaluates them in that order. The names are short because compiled code repeats them.
 */
export const table = Object.freeze({
  own: (value: object, key: string) => Object.hasOwn(value, key),
  step,
  missing,
  host: toHog,
  global: getGlobal,
  get: getProperty,
  set,
  list,
  tuple,
  dict,
  closure,
  call: callValue,
  name: callName,
  named,
  text: written,
  change,
  lend,
  matcher: likeMatcher,
  raise,
  caught,
  between,
  string,
  not: (value: HogValue) => !value,
  add: (right: HogValue, left: HogValue) => number(left) + number(right),
  sub: (right: HogValue, left: HogValue) => number(left) - number(right),
  mul: (right: HogValue, left: HogValue) => number(left) * number(right),
  div: (right: HogValue, left: HogValue) => number(left) / number(right),
  mod: (right: HogValue, left: HogValue) => number(left) % number(right),
  eq: same,
  ne: (right: HogValue, left: HogValue) => !same(right, left),
  lt: ordered('<'),
  le: ordered('<='),
  gt: ordered('>'),
  ge: ordered('>='),
  like: (right: HogValue, left: HogValue) => like(chargeWhole(left), right, false),
  ilike: (right: HogValue, left: HogValue) => like(chargeWhole(left), right, true),
  nlike: (right: HogValue, left: HogValue) => !like(chargeWhole(left), right, false),
  nilike: (right: HogValue, left: HogValue) => !like(chargeWhole(left), right, true),
  in: (right: HogValue, left: HogValue) => contains(charge(right), left),
  nin: (right: HogValue, left: HogValue) => !contains(charge(right), left),
  re: (right: HogValue, left: HogValue) => matches(chargeWhole(left), right, false),
  nre: (right: HogValue, left: HogValue) => !matches(chargeWhole(left), right, false),
  ire: (right: HogValue, left: HogValue) => matches(chargeWhole(left), right, true),
  nire: (right: HogValue, left: HogValue) => !matches(chargeWhole(left), right, true),
});
for (const one of Object.values(table)) Object.freeze(one);
