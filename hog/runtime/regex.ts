import { compilePattern, type Pattern, PatternError } from '../patterns/index.ts';
import { runtimeFailure } from './errors.ts';

/** Limits the cost. Matching is linear in the text, but slow for each character and state. */
const MAX_WORK = 200_000_000;

function ready(source: string, text: string): Pattern['regex'] {
  let pattern: Pattern;
  try {
    pattern = compilePattern(source);
  } catch (error) {
    if (error instanceof PatternError) throw runtimeFailure(error.message);
    throw error;
  }
  if (pattern.states * text.length > MAX_WORK)
    throw runtimeFailure('The text is too long for this regular expression');
  return pattern.regex;
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
