// Bounds the work of functions of Postgres that cannot be stopped. A search compares, at worst, each character of a text
// with each one of another, and neither a timeout nor a client that has gone ends it.
import type { Expr } from '../ast/index.ts';
import { digits, type Sql, sql } from './sql.ts';
import type { Value } from './types.ts';

export const WORK_LIMITS = {
  /** The most steps of a search: the bytes of a text, times those of what is searched for in it. */
  search: 1_000_000_000,
  /** The most bytes of a literal that is searched for without counting: no event is so large that it takes more. */
  short: 40,
  /** The most characters of a format of dates. */
  format: 1_000,
} as const;

const MOST = digits(WORK_LIMITS.search);

const isShort = (literals: readonly unknown[]): boolean =>
  literals.every((one) => typeof one === 'string') &&
  Buffer.byteLength(literals.join('')) <= WORK_LIMITS.short;

/** Prints a text in which another one is searched for. `wanted` is what is printed for `needle`. */
export const searched = (text: Sql, needle: Value, wanted: Sql): Sql =>
  isShort([needle.literal]) ? text : sql`hq.searched(${text}, ${wanted}, ${MOST})`;

/** Prints a text in which each text of a list is searched for. */
export const searchedForAll = (text: Sql, list: Expr | undefined, wanted: Sql): Sql =>
  list?.kind === 'array' && isShort(list.exprs.map((one) => one.kind === 'constant' && one.value))
    ? text
    : sql`hq.searched(${text}, ${wanted}, ${MOST})`;

/** Prints a list whose elements are compared with each element of another list. */
export const compared = (list: Sql, other: Sql): Sql => sql`hq.compared(${list}, ${other}, ${MOST})`;

/** Prints a text that is read by a format of dates. What follows so many characters is no part of a date. */
export const shortTime = (text: Sql): Sql => sql`left(${text}, ${digits(10 * WORK_LIMITS.format)})`;

/** Prints a format of dates that is only known at run time. */
export const shortFormat = (format: Sql): Sql => sql`left(${format}, ${digits(WORK_LIMITS.format)})`;
