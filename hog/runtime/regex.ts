import { RE2JS } from 're2js';
import { runtimeFailure } from './errors.ts';

/** Limits of the cost. Matching is linear in the text, but slow for each character and state. */
const MAX_PATTERN = 10_000;
const MAX_STATES = 20_000;
const MAX_WORK = 200_000_000;

/**
 * Limits of the cache. A compiled expression can grow by some kilobytes per state as it matches texts. So the cache is
 * limited by states, and does not keep large expressions.
 */
const KEPT_STATES = 8_000;
const MAX_KEPT_STATES = 500;
const MAX_KEPT = 1_000;

interface Compiled {
  regex: RE2JS;
  states: number;
}

const kept = new Map<string, Compiled>();
let keptStates = 0;

function compile(pattern: string): Compiled {
  const known = kept.get(pattern);
  if (known) return known;
  if (pattern.length > MAX_PATTERN) {
    throw runtimeFailure(`The regular expression is longer than ${MAX_PATTERN} characters`);
  }
  let made: Compiled;
  try {
    const regex = RE2JS.compile(pattern);
    made = { regex, states: Math.max(regex.programSize(), pattern.length) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw runtimeFailure(`Invalid regular expression: ${reason}`);
  }
  if (made.states > MAX_STATES) throw runtimeFailure('The regular expression is too complex');
  if (made.states <= MAX_KEPT_STATES) keep(pattern, made);
  return made;
}

function keep(pattern: string, made: Compiled): void {
  kept.set(pattern, made);
  keptStates += made.states;
  for (const [oldest, { states }] of kept) {
    if (keptStates <= KEPT_STATES && kept.size <= MAX_KEPT) break;
    kept.delete(oldest);
    keptStates -= states;
  }
}

function ready(pattern: string, text: string): RE2JS {
  const { regex, states } = compile(pattern);
  if (states * text.length > MAX_WORK)
    throw runtimeFailure('The text is too long for this regular expression');
  return regex;
}

/** Returns whether the pattern (RE2 syntax) matches anywhere in the text. */
export function regexMatch(pattern: string, text: unknown): boolean {
  const subject = String(text);
  return ready(String(pattern), subject).test(subject);
}

/**
 * Returns the first group of the first match. Without groups, returns the whole match; without a match, the empty
 * string.
 */
export function regexExtract(pattern: string, text: string): string {
  const matcher = ready(pattern, text).matcher(text);
  if (!matcher.find()) return '';
  return (matcher.groupCount() > 0 ? matcher.group(1) : matcher.group()) ?? '';
}
