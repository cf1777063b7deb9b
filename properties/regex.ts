import { RE2JS } from 're2js';
import { FilterError } from './errors.ts';

const MAX_PATTERN_LENGTH = 10_000;

/** A test for a pattern of RE2 syntax, in time linear to the text; found anywhere in it. */
export function compileRegex(pattern: string): (text: string) => boolean {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new FilterError(`A regular expression has at most ${MAX_PATTERN_LENGTH} characters`);
  }
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (error) {
    throw new FilterError(`Invalid regular expression: ${(error as Error).message}`);
  }
  return (text) => compiled.matcher(text).find();
}
