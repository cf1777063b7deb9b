import { runtimeFailure } from './errors.ts';
import { isHogCallable, isHogClosure, unifyComparisonTypes } from './hogvm.ts';
import type { Meter } from './meter.ts';
import { regexMatch } from './regex.ts';
import { checkWhole, costOf, describe, type HogValue, toHog } from './values.ts';

export type Ordering = '==' | '!=' | '<' | '<=' | '>' | '>=';

const isNumbers = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((one) => Number.isFinite(one));

export function toNumber(value: HogValue): number {
  if (typeof value === 'object' && value !== null) checkWhole(value);
  return Number(value);
}

export function toText(value: HogValue): string {
  if (typeof value === 'object' && value !== null) checkWhole(value);
  return String(value);
}

export function compare(op: Ordering, a: HogValue, b: HogValue): boolean {
  let [left, right]: [unknown, unknown] = [a, b];
  if (typeof left !== typeof right || typeof left === 'object') {
    [left, right] = unifyComparisonTypes(left, right);
    if (isNumbers(left) && isNumbers(right)) return ordered(op, orderOf(left, right), 0);
    // Which is more or less JavaScript finds out by writing lists out; equal they are if they are the same.
    if (op !== '==' && op !== '!=') {
      if (Array.isArray(left)) checkWhole(left);
      if (Array.isArray(right)) checkWhole(right);
    }
  }
  return ordered(op, left, right);
}

/** Lists of numbers are compared like versions: element by element, then by length. */
function orderOf(left: number[], right: number[]): number {
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [a, b] = [left[i] as number, right[i] as number];
    if (a !== b) return a < b ? -1 : 1;
  }
  return Math.sign(left.length - right.length);
}

function ordered(op: Ordering, left: unknown, right: unknown): boolean {
  switch (op) {
    case '==':
      return left === right;
    case '!=':
      return left !== right;
    case '<':
      return (left as number) < (right as number);
    case '<=':
      return (left as number) <= (right as number);
    case '>':
      return (left as number) > (right as number);
    case '>=':
      return (left as number) >= (right as number);
  }
}

type Matcher = (text: string) => boolean;

const matchers = [new Map<string, Matcher>(), new Map<string, Matcher>()] as const;
const MAX_MATCHERS = 1_000;

/**
 * `%` any run of characters, `_` one character, and the pattern may be found anywhere in the text: the
 * reference does not anchor it. Neither wildcard matches a line break.
 */
export function like(text: HogValue, pattern: HogValue, insensitive: boolean): boolean {
  return likeMatcher(toText(pattern), insensitive)(toText(text));
}

export function likeMatcher(pattern: string, insensitive: boolean): Matcher {
  const known = matchers[insensitive ? 1 : 0];
  let matcher = known.get(pattern);
  if (!matcher) {
    matcher = makeMatcher(pattern, insensitive);
    if (known.size >= MAX_MATCHERS) known.clear();
    if (pattern.length < 1_000) known.set(pattern, matcher);
  }
  return matcher;
}

function makeMatcher(pattern: string, insensitive: boolean): Matcher {
  const regex =
    (insensitive ? '(?i)' : '') +
    pattern
      .replaceAll(/[-/\\^$*+?.()|[\]{}]/g, '\\$&')
      .replaceAll('%', '.*')
      .replaceAll('_', '.');
  const slow: Matcher = (text) => regexMatch(regex, text);
  // Most patterns are one literal between wildcards.
  const literal = pattern.replace(/^%+|%+$/g, '');
  if (/[%_]/.test(literal)) return slow;
  if (!insensitive) {
    return (text) => {
      checkSearch(text, literal);
      return text.includes(literal);
    };
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
  if (!/^[\u0000-\u007f]*$/.test(literal)) return slow;
  // One look for the literal and for those letters whose case only Unicode knows: mostly there is neither.
  const either = new RegExp(`${literal.replace(/[^a-z0-9]/gi, escapedUnit)}|${UNICODE_TWINS.source}`, 'i');
  return (text) => {
    checkSearch(text, literal);
    if (!either.test(text)) return false;
    return UNICODE_TWINS.test(text) ? slow(text) : true;
  };
}

/** Letters that are, whatever their case, an i, a k or an s; JavaScript's own comparison does not see that. */
const UNICODE_TWINS = /[\u0130\u017f\u212a]/;

const escapedUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

export function matches(text: HogValue, pattern: HogValue, insensitive: boolean): boolean {
  const source = insensitive ? `(?i)${toText(pattern)}` : pattern;
  return source && text ? regexMatch(toText(source), toText(text)) : false;
}

const MAX_SEARCH = 4_000_000_000;

/** JavaScript's search is quadratic at its worst. */
export function checkSearch(text: string, wanted: string): void {
  if (wanted.length > 1_000 && text.length * wanted.length > MAX_SEARCH) {
    throw runtimeFailure('The texts are too long to search one in the other');
  }
}

export function contains(container: HogValue, item: HogValue): boolean {
  if (Array.isArray(container)) return container.includes(item);
  if (typeof container === 'string') {
    const wanted = toText(item);
    checkSearch(container, wanted);
    return container.includes(wanted);
  }
  throw runtimeFailure(`\`in\` needs a list, a tuple or a string, not ${describe(container)}`);
}

export function getProperty(object: HogValue, key: HogValue): HogValue {
  if (typeof object !== 'object' || object === null) return null;
  if (object instanceof Map) return object.get(key) ?? null;
  if (typeof key === 'number') {
    if (key === 0) throw runtimeFailure('Hog arrays start from index 1');
    if (!Array.isArray(object)) return null;
    return object[key > 0 ? key - 1 : object.length + key] ?? null;
  }
  if (isHogClosure(object) || isHogCallable(object)) return null;
  return ownProperty(object, key);
}

/** Own properties only: nothing inherited can be read, so nothing of JavaScript can be reached. */
function ownProperty(object: unknown, key: HogValue): HogValue {
  const name = typeof key === 'string' ? key : toText(key);
  return Object.hasOwn(Object(object), name) ? ((object as Record<string, unknown>)[name] ?? null) : null;
}

/** A path into the globals, which are the host's plain objects; null anywhere gives null. */
export function getGlobal(globals: object, path: readonly HogValue[]): HogValue {
  let value: unknown = globals;
  for (const key of path) {
    if (value === null) return null;
    value = value instanceof Map ? (value.get(key) ?? null) : ownProperty(value, key);
  }
  return toHog(value);
}

/** How far past its end a list may be written; the gap is filled with nulls. */
const MAX_GAP = 1_000_000;

/** The bytes the object grew by. */
export function setProperty(object: HogValue, key: HogValue, value: HogValue, meter: Meter): number {
  if (object instanceof Map) {
    const known = object.has(key);
    const before = known ? costOf(object.get(key), meter) : -costOf(key, meter);
    object.set(key, value);
    return costOf(value, meter) - before;
  }
  if (Array.isArray(object) && typeof key === 'number') {
    if (!(key >= 1) || !Number.isInteger(key)) throw runtimeFailure('Hog arrays start from index 1');
    const gap = key - object.length;
    if (gap > MAX_GAP) throw runtimeFailure(`Can not set element ${key} of a list of ${object.length}`);
    for (let i = 1; i < gap; i++) object.push(null);
    if (gap > 1) meter.allocate(gap * 8);
    const before = gap > 0 ? 0 : costOf(object[key - 1], meter);
    object[key - 1] = value;
    return costOf(value, meter) - before + Math.max(0, gap - 1) * 8;
  }
  throw runtimeFailure(
    typeof object === 'object' && object !== null
      ? `Can not set ${toText(key)} on element of type object`
      : `Can not set ${toText(key)} on non-object: ${typeof object}`,
  );
}
