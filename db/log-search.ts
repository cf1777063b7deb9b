import { containsPattern } from './like.ts';

/** Which entries of a log are listed. */
export interface LogSearch<Level extends string> {
  /** Entries after the one and before the other instant. */
  after?: string | undefined;
  before?: string | undefined;
  levels?: readonly Level[] | undefined;
  /** A part of the message. Case does not matter. */
  search?: string | undefined;
  limit: number;
}

/** Writes the conditions of a search, on a table with `timestamp`, `level` and `message`. `given` names a value. */
export function logConditions(
  { after, before, levels, search }: Omit<LogSearch<string>, 'limit'>,
  given: (value: unknown) => string,
): string[] {
  const conditions: string[] = [];
  if (after !== undefined) conditions.push(`timestamp > ${given(after)}::timestamptz`);
  if (before !== undefined) conditions.push(`timestamp < ${given(before)}::timestamptz`);
  if (levels && levels.length > 0) conditions.push(`level = any(${given(levels)})`);
  if (search) conditions.push(`message ilike ${given(containsPattern(search))}`);
  return conditions;
}
