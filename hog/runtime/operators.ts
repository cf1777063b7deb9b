import { LRUCache } from 'lru-cache';
import { runtimeFailure } from './errors.ts';
import { isHogCallable, isHogClosure, unifyComparisonTypes } from './hogvm.ts';
import type { Meter } from './meter.ts';
import { regexMatch } from './regex.ts';
import { resize, sizeOf } from './sizes.ts';
import { checkWhole, describe, Held, type HogValue, toHog } from './values.ts';

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
    // For an order, JavaScript converts lists to text, which can be huge. Equality only compares identity.
    if (op !== '==' && op !== '!=') {
      if (Array.isArray(left)) checkWhole(left);
      if (Array.isArray(right)) checkWhole(right);
    }
  }
  return ordered(op, left, right);
}

/** Compares lists of numbers like versions: element by element, then by length. */
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

const MAX_MATCHERS = 1_000;
const matchers = new LRUCache<string, Matcher>({ max: MAX_MATCHERS });
const insensitiveMatchers = new LRUCache<string, Matcher>({ max: MAX_MATCHERS });

/**
 * Tests a text against a LIKE pattern: `%` matches any characters, `_` matches one. The pattern may match anywhere in
 * the text, because the reference VM does not anchor it. Neither wildcard matches a line break.
 */
export function like(text: HogValue, pattern: HogValue, insensitive: boolean): boolean {
  return likeMatcher(toText(pattern), insensitive)(toText(text));
}

/** Compiles a LIKE pattern. Compiled patterns are cached. */
export function likeMatcher(pattern: string, insensitive: boolean): Matcher {
  const known = insensitive ? insensitiveMatchers : matchers;
  let matcher = known.get(pattern);
  if (!matcher) {
    matcher = makeMatcher(pattern, insensitive);
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
  // Most patterns are a single literal between wildcards, which needs no regular expression.
  const literal = pattern.replace(/^%+|%+$/g, '');
  if (/[%_]/.test(literal)) return slow;
  if (!insensitive) {
    return (text) => {
      checkSearch(text, literal);
      return text.includes(literal);
    };
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range covers all of ASCII
  if (!/^[\u0000-\u007f]*$/.test(literal)) return slow;
  // One search finds the literal or any letter with a special case folding. Most texts contain neither.
  const either = new RegExp(`${literal.replace(/[^a-z0-9]/gi, escapedUnit)}|${UNICODE_TWINS.source}`, 'i');
  return (text) => {
    checkSearch(text, literal);
    if (!either.test(text)) return false;
    return UNICODE_TWINS.test(text) ? slow(text) : true;
  };
}

/** Letters that Unicode case folding turns into i, k or s. JavaScript's `i` flag does not. */
const UNICODE_TWINS = /[\u0130\u017f\u212a]/;

const escapedUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

export function matches(text: HogValue, pattern: HogValue, insensitive: boolean): boolean {
  const source = insensitive ? `(?i)${toText(pattern)}` : pattern;
  return source && text ? regexMatch(toText(source), toText(text)) : false;
}

const MAX_SEARCH = 4_000_000_000;

/** Refuses searches that take too long. JavaScript's string search is quadratic in the worst case. */
export function checkSearch(text: string, wanted: string): void {
  if (wanted.length > 1_000 && text.length * wanted.length > MAX_SEARCH) {
    throw runtimeFailure('The texts are too long for a search');
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

/** Reads an own property. Inherited properties are not readable, so a program cannot reach JavaScript's prototypes. */
function ownProperty(object: unknown, key: HogValue): HogValue {
  const name = typeof key === 'string' ? key : toText(key);
  return Object.hasOwn(Object(object), name) ? ((object as Record<string, unknown>)[name] ?? null) : null;
}

/** Reads a path of the globals, which are plain objects of the host. Returns null if any part of the path is null. */
export function getGlobal(globals: object, path: readonly HogValue[]): HogValue {
  let value: unknown = globals;
  for (const key of path) {
    if (value === null) return null;
    if (value instanceof Held) value = value.plain;
    value = value instanceof Map ? (value.get(key) ?? null) : ownProperty(value, key);
  }
  return toHog(value);
}

/** How far past its end a list can be written. The gap is filled with nulls. */
const MAX_GAP = 1_000_000;

/** Sets a property. Returns how many bytes the object grew. */
export function setProperty(object: HogValue, key: HogValue, value: HogValue, meter: Meter): number {
  if (object instanceof Map) {
    const known = object.has(key);
    const before = known ? sizeOf(object.get(key), meter) : -sizeOf(key, meter);
    const grown = sizeOf(value, meter) - before;
    object.set(key, value);
    resize(object, grown, value, meter);
    return grown;
  }
  if (Array.isArray(object) && typeof key === 'number') {
    if (!(key >= 1) || !Number.isInteger(key)) throw runtimeFailure('Hog arrays start from index 1');
    const gap = key - object.length;
    if (gap > MAX_GAP) throw runtimeFailure(`Can not set element ${key} of a list of ${object.length}`);
    for (let i = 1; i < gap; i++) object.push(null);
    if (gap > 1) meter.allocate(gap * 8);
    const before = gap > 0 ? 0 : sizeOf(object[key - 1], meter);
    const grown = sizeOf(value, meter) - before + Math.max(0, gap - 1) * 8;
    object[key - 1] = value;
    resize(object, grown, value, meter);
    return grown;
  }
  throw runtimeFailure(
    typeof object === 'object' && object !== null
      ? `Can not set ${toText(key)} on element of type object`
      : `Can not set ${toText(key)} on non-object: ${typeof object}`,
  );
}
