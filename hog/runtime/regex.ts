import { RE2JS } from 're2js';
import { runtimeFailure } from './errors.ts';

/** Linear in the text, but slow per character: what both together may cost. */
const MAX_PATTERN = 10_000;
const MAX_WORK = 200_000_000;
const CACHED = 1_000;

const compiled = new Map<string, RE2JS | Error>();

function compile(pattern: string): RE2JS {
  let known = compiled.get(pattern);
  if (known === undefined) {
    if (pattern.length > MAX_PATTERN) {
      throw runtimeFailure(`The regular expression is longer than ${MAX_PATTERN} characters`);
    }
    try {
      known = RE2JS.compile(pattern);
    } catch (error) {
      known = error instanceof Error ? error : new Error(String(error));
    }
    if (compiled.size >= CACHED) compiled.delete(compiled.keys().next().value as string);
    compiled.set(pattern, known);
  }
  if (known instanceof Error) throw runtimeFailure(`Invalid regular expression: ${known.message}`);
  return known;
}

function checkWork(pattern: string, text: string): void {
  if (pattern.length * text.length > MAX_WORK) {
    throw runtimeFailure('The text is too long for this regular expression');
  }
}

/** Whether the pattern (RE2 syntax) is found anywhere in the text. */
export function regexMatch(pattern: string, text: unknown): boolean {
  const [source, subject] = [String(pattern), String(text)];
  const regex = compile(source);
  checkWork(source, subject);
  return regex.test(subject);
}

/** The first group of the first match, or the whole match; the empty string if there is none. */
export function regexExtract(pattern: string, text: string): string {
  const regex = compile(pattern);
  checkWork(pattern, text);
  const matcher = regex.matcher(text);
  if (!matcher.find()) return '';
  return (matcher.groupCount() > 0 ? matcher.group(1) : matcher.group()) ?? '';
}
