// Regular expressions in RE2's syntax: how large they may be, and their compilation. Nothing else compiles one.
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import { patternSize, type SizeOptions } from './size.ts';

export { patternSize } from './size.ts';

/** The limits of regular expressions. docs/hogql.md explains the size and lists the limits. */
export const PATTERN_LIMITS = {
  /** The most characters of a pattern. */
  characters: 10_000,
  /** The largest size of a pattern that this process runs itself. */
  size: 10_000,
  /** The most characters of a pattern that Postgres runs. */
  sqlCharacters: 2_000,
  /** The largest size of a pattern that Postgres runs. Its compiler takes much longer than RE2's. */
  sqlSize: 2_000,
  /** The largest size of all patterns of one query, or of one document of filters. */
  total: 20_000,
} as const;

/** A pattern is invalid or too large. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

const number = (value: number): string =>
  value < 1e15 ? value.toLocaleString('en-US') : 'more than 1,000,000,000,000,000';

export interface MostAllowed {
  characters?: number;
  size?: number;
}

/** Returns the size of a pattern. Refuses one that is too large to compile. */
export function allowedSize(
  pattern: string,
  {
    characters = PATTERN_LIMITS.characters,
    size: most = PATTERN_LIMITS.size,
    ...options
  }: MostAllowed & SizeOptions = {},
): number {
  if (pattern.length > characters) {
    throw new PatternError(`A regular expression may have at most ${number(characters)} characters`);
  }
  const size = patternSize(pattern, options);
  if (size > most) {
    throw new PatternError(
      `A regular expression may have a size of at most ${number(most)}, and this one has ${number(size)}: a repetition such as {9} counts as often as it repeats`,
    );
  }
  return size;
}

/** Adds up the sizes of the patterns of one request. */
export class PatternBudget {
  #spent = 0;

  /** Counts a pattern. Refuses the one with which all of them together are too large. */
  spend(size: number): void {
    this.#spent += size;
    if (this.#spent <= PATTERN_LIMITS.total) return;
    throw new PatternError(
      `All regular expressions together may have a size of at most ${number(PATTERN_LIMITS.total)}. Up to this one it is ${number(this.#spent)}`,
    );
  }
}

export interface Pattern {
  regex: RE2JS;
  /** The states of the compiled expression. Matching takes time in proportion to them and to the text. */
  states: number;
}

/**
 * Limits of the cache. A compiled expression can grow by some kilobytes per state as it matches texts. So the cache is
 * limited by states, and does not keep large expressions.
 */
const KEPT_STATES = 8_000;
const MAX_KEPT_STATES = 500;
const MAX_KEPT = 1_000;

const kept = new LRUCache<string, Pattern>({
  max: MAX_KEPT,
  maxSize: KEPT_STATES,
  maxEntrySize: MAX_KEPT_STATES,
  sizeCalculation: ({ states }) => states,
});

/** Compiles a pattern, or returns the compiled one. Refuses patterns that are invalid or too large. */
export function compilePattern(pattern: string): Pattern {
  const known = kept.get(pattern);
  if (known) return known;
  const size = allowedSize(pattern);
  let made: Pattern;
  try {
    const regex = RE2JS.compile(pattern);
    made = { regex, states: Math.max(regex.programSize(), size) };
  } catch (error) {
    throw new PatternError(`Invalid regular expression: ${(error as Error).message}`);
  }
  kept.set(pattern, made);
  return made;
}
