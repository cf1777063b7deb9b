import { compilePattern, PatternError } from '../hog/patterns/index.ts';
import { FilterError } from './errors.ts';

/** Runs `work` and turns an error about a pattern into one about a filter. */
export function ofPattern<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof PatternError) throw new FilterError(error.message);
    throw error;
  }
}

/** Compiles a pattern (RE2 syntax) to a test that finds it anywhere in a text. The test runs in linear time. */
export function compileRegex(pattern: string): (text: string) => boolean {
  const { regex } = ofPattern(() => compilePattern(pattern));
  return (text) => regex.matcher(text).find();
}
