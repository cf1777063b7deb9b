import crypto from 'node:crypto';
import {
  complaint,
  explained,
  rounded,
  sortedBy,
  wantedBy,
  wellFormedJson,
  withoutHalves,
} from '../javascript/browser/arguments.js';
import { hasPath } from '../javascript/browser/json.js';
import { asFailure, HogFailure, runtimeFailure } from './errors.ts';
import { guards } from './guards.ts';
import { type ExecOptions, printHogStringOutput, STL } from './hogvm.ts';
import { changeList, listChanges } from './lists.ts';
import type { Meter } from './meter.ts';
import { like, matches } from './operators.ts';
import { regexExtract, regexMatch } from './regex.ts';
import { COST, costOf, type HogValue } from './values.ts';
import { checkZones, secondsIn } from './zones.ts';

/** What library functions can use besides their arguments. The caller of the run provides all of it. */
export interface Surroundings {
  meter: Meter;
  /** Returns milliseconds since 1970. Without a clock, `now()` and `today()` fail. */
  clock: (() => number) | null;
  /** Returns a number from 0 (included) to 1 (excluded). Without it, random functions fail. */
  random: (() => number) | null;
  print: (line: string) => void;
}

/** A library function that is implemented in JavaScript. */
export interface LibraryFunction {
  name: string;
  minArgs: number;
  maxArgs: number | null;
  call(args: HogValue[], around: Surroundings): HogValue;
}

const options: ExecOptions = {
  external: { crypto, regex: { match: regexMatch, extract: regexExtract } },
};

function clockOf({ clock }: Surroundings, name: string): number {
  if (!clock) throw runtimeFailure(`${name}() is not available here: there is no clock`);
  return clock();
}

function randomOf({ random }: Surroundings, name: string): number {
  if (!random) throw runtimeFailure(`${name}() is not available here: there is no randomness`);
  return random();
}

/** The steps that formatting one part of a format costs. */
const PART_STEPS = 100;

/** Formats a date. Apostrophes are handled separately, because the date package gives them a meaning of its own. */
function formatted([value, format, zone]: HogValue[], meter: Meter): HogValue {
  const { fn } = STL.formatDateTime as (typeof STL)[string];
  const one = (part: HogValue) => {
    meter.step(PART_STEPS);
    return fn([value, part, zone], 'formatDateTime', options) as HogValue;
  };
  if (typeof format !== 'string' || !format.includes("'")) return one(format);
  const parts = format.match(/(?:%[\s\S]?|[^%'])+|'/g) ?? [];
  return parts.map((part) => (part === "'" ? part : one(part))).join('');
}

const HEX = '0123456789abcdef';

const reference = (name: string, args: HogValue[]): HogValue =>
  (STL[name] as (typeof STL)[string]).fn(args, name, options);

/** Sorts a list. With keys, which `arraySort(key, list)` has computed, it sorts by them. */
const sorted = (name: string, list: HogValue, keys: HogValue): HogValue =>
  Array.isArray(list) && Array.isArray(keys)
    ? sortedBy(list, keys, name === 'arrayReverseSort')
    : reference(name, [list]);

/** The functions that need the clock, randomness or printing, and those that share their code with operators. */
const own = new Map<string, LibraryFunction['call']>(
  Object.entries<LibraryFunction['call']>({
    print: (args, around) => {
      for (const one of args) around.meter.allocate(costOf(one, around.meter));
      around.print(
        args
          .map((one) => printHogStringOutput(one))
          .join(' ')
          .toWellFormed(),
      );
      return null;
    },
    now: (_args, around) => ({ __hogDateTime__: true, dt: clockOf(around, 'now') / 1000, zone: 'UTC' }),
    today: (_args, around) => {
      const date = new Date(clockOf(around, 'today'));
      return {
        __hogDate__: true,
        year: date.getUTCFullYear(),
        month: date.getUTCMonth() + 1,
        day: date.getUTCDate(),
      };
    },
    randomFloat: (_args, around) => randomOf(around, 'randomFloat'),
    generateUUIDv4: (_args, around) => {
      const digit = () => Math.floor(randomOf(around, 'generateUUIDv4') * 16) & 15;
      return 'xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx'.replace(
        /[xy]/g,
        (place) => HEX[place === 'x' ? digit() : (digit() & 3) | 8] as string,
      );
    },
    formatDateTime: (args, around) => formatted(args, around.meter),
    like: ([subject, pattern]) => like(subject, pattern, false),
    ilike: ([subject, pattern]) => like(subject, pattern, true),
    notLike: ([subject, pattern]) => !like(subject, pattern, false),
    notILike: ([subject, pattern]) => !like(subject, pattern, true),
    match: ([subject, pattern]) => matches(subject, pattern, false),
    round: ([value, digits]) => rounded(value, digits),
    reverse: ([text]) => [...(text as string)].reverse().join(''),
    substring: (args) => withoutHalves(reference('substring', args) as string),
    jsonStringify: (args) => {
      const json = reference('jsonStringify', args);
      return typeof json === 'string' ? wellFormedJson(json) : json;
    },
    JSONLength: (args) => {
      try {
        return reference('JSONLength', args);
      } catch (error) {
        // The reference fails if something on the way is null. Where nothing is found, there is nothing to count.
        if (error instanceof TypeError) return 0;
        throw error;
      }
    },
    // The reference takes null for an object, in which any number is there.
    JSONHas: (args) => hasPath(args),
    tryBase64Decode: (args) => (typeof args[0] === 'string' ? reference('tryBase64Decode', args) : ''),
    fromUnixTimestamp: ([value]) =>
      reference('fromUnixTimestamp', [typeof value === 'string' ? Number(value) : value]),
    fromUnixTimestampMilli: ([value]) =>
      reference('fromUnixTimestampMilli', [typeof value === 'string' ? Number(value) : value]),
    arraySort: ([list, keys]) => sorted('arraySort', list, keys),
    arrayReverseSort: ([list, keys]) => sorted('arrayReverseSort', list, keys),
    ...Object.fromEntries(
      [...listChanges.keys()].map((name) => [
        name,
        (args: HogValue[], { meter }: Surroundings) => changeList(name, args, false, meter),
      ]),
    ),
  }),
);

/** Functions that return null for a null argument in newer versions of the reference: the index of that argument. */
const NULL_FOR_NULL = new Map<string, number>([
  ['length', 0],
  ['upper', 0],
  ['reverse', 0],
  ['replaceOne', 0],
  ['replaceAll', 0],
  ['trim', 0],
  ['trimLeft', 0],
  ['trimRight', 0],
  ['splitByString', 1],
]);

/** Returns whether a function returns null if its first argument is null. */
export const isNullable = (name: string): boolean => NULL_FOR_NULL.get(name) === 0;

const EMPTY_FOR_NULL = new Set(['keys', 'values']);

/** Functions that look at a list or a dictionary without looking at each element. */
const SHALLOW = new Set([
  ...['length', 'empty', 'notEmpty', 'typeof', 'isNull', 'isNotNull', 'ifNull', 'coalesce', 'assumeNotNull'],
  ...['tuple', 'if', 'multiIf', 'not', 'and', 'or', 'equals', 'notEquals', ...listChanges.keys()],
]);

/** Functions that look at the elements of a list or a dictionary, but not inside of them. */
const LEVEL = new Set(['keys', 'values', 'has', 'indexOf', 'in', 'arrayReverse']);

/** Functions whose arguments are checked before the call, because the reference makes broken values of wrong ones. */
export const strictFunctions: ReadonlySet<string> = new Set(
  `trim trimLeft trimRight reverse base64Encode base64Decode addDays dateAdd toStartOfDay toStartOfHour toStartOfWeek toStartOfMonth fromUnixTimestamp fromUnixTimestampMilli
  toDateTime toUnixTimestamp toUnixTimestampMilli toTimeZone formatDateTime`.split(/\s+/),
);

/** Functions that read a text in a time zone: how each builds its result from the seconds since 1970. */
const OF_LOCAL_TIME = new Map<string, (seconds: number, zone: HogValue) => HogValue>([
  ['toDateTime', (seconds, zone) => ({ __hogDateTime__: true, dt: seconds, zone })],
  ['toUnixTimestamp', (seconds) => seconds],
  ['toUnixTimestampMilli', (seconds) => seconds * 1000],
]);

/**
 * Wraps a function of the reference library with its checks and its cost. The cost grows with the sizes of arguments
 * and result.
 */
function wrap(name: string): LibraryFunction {
  const original = STL[name] as (typeof STL)[string];
  const call = own.get(name) ?? ((args: HogValue[]) => original.fn(args, name, options));
  const ofLocalTime = OF_LOCAL_TIME.get(name);
  const guard = guards.get(name);
  const nullable = NULL_FOR_NULL.get(name);
  const emptyForNull = EMPTY_FOR_NULL.has(name);
  const shallow = SHALLOW.has(name);
  const level = LEVEL.has(name);
  const wanted = wantedBy(name);
  const isStrict = strictFunctions.has(name);
  /** Puts an error into words of the language. Exceeded limits stay as they are. */
  const failureOf = (error: unknown, args: HogValue[]): HogFailure => {
    const failure = asFailure(error);
    if (failure.code !== 'runtime') return failure;
    return runtimeFailure(explained(name, args, wanted, error));
  };
  return Object.freeze({
    name,
    minArgs: original.minArgs ?? 0,
    maxArgs: original.maxArgs ?? null,
    call(args: HogValue[], around: Surroundings): HogValue {
      if (nullable !== undefined && args[nullable] === null) return null;
      if (emptyForNull && args[0] === null) return [];
      for (const one of args) {
        if (typeof one === 'string') around.meter.work(one.length);
        // The cost is computed on each call, because values inside of it may have grown.
        else if (typeof one !== 'object' || one === null || shallow) continue;
        else if (level)
          around.meter.work(COST * (Array.isArray(one) ? one.length : one instanceof Map ? one.size : 1));
        else costOf(one, around.meter);
      }
      const wrong = isStrict ? complaint(name, args, wanted) : null;
      if (wrong !== null) throw runtimeFailure(wrong);
      checkZones(name, args);
      guard?.(args, around.meter);
      const seconds = ofLocalTime && secondsIn(args[0], args[1]);
      let result: HogValue;
      try {
        result = ofLocalTime && seconds != null ? ofLocalTime(seconds, args[1]) : call(args, around);
      } catch (error) {
        throw failureOf(error, args);
      }
      if (typeof result === 'string') around.meter.allocate(result.length);
      else if (Array.isArray(result) && !shallow) around.meter.work(result.length * COST);
      return result === undefined ? null : result;
    },
  });
}

/** All library functions that are not written in Hog. */
export const library: ReadonlyMap<string, LibraryFunction> = new Map(
  Object.keys(STL).map((name) => [name, wrap(name)]),
);

export function checkArity(fn: LibraryFunction, count: number): void {
  if (count < fn.minArgs) {
    throw runtimeFailure(`Function ${fn.name} requires at least ${fn.minArgs} arguments`);
  }
  if (fn.maxArgs !== null && count > fn.maxArgs) {
    throw runtimeFailure(`Function ${fn.name} requires at most ${fn.maxArgs} arguments`);
  }
}

export function checkArgumentCount(count: number, meter: Meter): void {
  if (count > meter.limits.maxArguments) throw new HogFailure('runtime', 'Too many arguments');
}
