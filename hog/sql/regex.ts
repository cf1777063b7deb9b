// Translates regular expressions from RE2's syntax, which ClickHouse uses, to the "advanced" syntax of Postgres.
import type { Span } from '../ast/index.ts';
import { allowedSize, compilePattern, PATTERN_LIMITS, PatternError } from '../patterns/index.ts';
import { fault } from './errors.ts';
import type { Printer } from './printer.ts';
import { translateRegex } from './regex-translate.ts';
import type { Sql } from './sql.ts';
import type { Value } from './types.ts';

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
  const { literal } = pattern;
  if (typeof literal !== 'string') throw fault('A regular expression must be a text literal', span);
  const size = inSource(span, () => sqlSize(literal, insensitive));
  inSource(span, () => printer.patterns.spend(size));
  return printer.parameters.add('text', postgresRegex(literal, insensitive, span, extracting));
}

const sqlSize = (pattern: string, insensitive: boolean): number =>
  allowedSize(pattern, {
    characters: PATTERN_LIMITS.sqlCharacters,
    size: PATTERN_LIMITS.sqlSize,
    insensitive,
  });

function inSource<T>(span: Span | undefined, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof PatternError) throw fault(error.message, span);
    throw error;
  }
}

export function postgresRegex(
  pattern: string,
  insensitive: boolean,
  span?: Span,
  extracting = false,
): string {
  inSource(span, () => {
    sqlSize(pattern, insensitive);
    compilePattern(pattern);
  });
  const translated = translateRegex(pattern, insensitive, extracting);
  if ('refused' in translated) {
    throw fault(`Regular expressions here cannot have ${translated.refused}`, span);
  }
  return translated.pattern;
}

/** Returns the number of groups in a valid pattern. */
export const groupCount = (pattern: string): number => compilePattern(pattern).regex.groupCount();
