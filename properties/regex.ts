import { RE2JS } from 're2js';
import { FilterError } from './errors.ts';

const MAX_PATTERN_LENGTH = 10_000;

/** Compiles a pattern (RE2 syntax) to a test that finds it anywhere in a text. The test runs in linear time. */
export function compileRegex(pattern: string): (text: string) => boolean {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new FilterError(`A regular expression may have at most ${MAX_PATTERN_LENGTH} characters`);
  }
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (error) {
    throw new FilterError(`Invalid regular expression: ${(error as Error).message}`);
  }
  return (text) => compiled.matcher(text).find();
}
