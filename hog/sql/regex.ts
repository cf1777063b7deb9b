// Translates regular expressions from RE2's syntax, which ClickHouse uses, to the "advanced" syntax of Postgres.
import { RE2JS } from 're2js';
import type { Span } from '../ast/index.ts';
import { fault } from './errors.ts';
import type { Printer } from './printer.ts';
import { translateRegex } from './regex-translate.ts';
import type { Sql } from './sql.ts';
import type { Value } from './types.ts';

const MAX_PATTERN_LENGTH = 2_000;

/**
 * Adds a translated pattern as a parameter. `extracting` means that the extent of the match matters, not only whether
 * there is one.
 */
export function regexParameter(
  printer: Printer,
  pattern: Value,
  insensitive = false,
  span?: Span,
  extracting = false,
): Sql {
  if (typeof pattern.literal !== 'string') {
    throw fault('A regular expression must be a text literal', span);
  }
  return printer.parameters.add('text', postgresRegex(pattern.literal, insensitive, span, extracting));
}

export function postgresRegex(
  pattern: string,
  insensitive: boolean,
  span?: Span,
  extracting = false,
): string {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw fault(`A regular expression may have at most ${MAX_PATTERN_LENGTH} characters`, span);
  }
  try {
    RE2JS.compile(pattern);
  } catch (error) {
    throw fault(`Invalid regular expression: ${(error as Error).message}`, span);
  }
  const translated = translateRegex(pattern, insensitive, extracting);
  if ('refused' in translated) {
    throw fault(`Regular expressions here cannot have ${translated.refused}`, span);
  }
  return translated.pattern;
}

/** Returns the number of groups in a valid pattern. */
export const groupCount = (pattern: string): number => RE2JS.compile(pattern).groupCount();
