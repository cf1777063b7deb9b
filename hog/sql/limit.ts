import type { Expr } from '../ast/index.ts';
import { printExpr } from './dispatch.ts';
import { fault } from './errors.ts';
import type { Place } from './printer.ts';
import { NOTHING, type Sql, sql } from './sql.ts';

/** Prints LIMIT and OFFSET. The top statement gets the default limit if it has none, and at most the maximum. */
export function printLimit(
  place: Place,
  node: { limit: Expr | null; offset: Expr | null },
  top: boolean,
): Sql {
  const { printer } = place;
  const { defaultRows, maxRows } = printer.limits;
  let rows = node.limit ? wholeNumber(place, node.limit, 'LIMIT') : null;
  if (top) {
    rows ??= defaultRows;
    if (maxRows !== null) rows = Math.min(rows ?? maxRows, maxRows);
  }
  const offset = node.offset ? wholeNumber(place, node.offset, 'OFFSET') : 0;
  const limit = rows === null ? NOTHING : sql` limit ${printer.parameters.add('bigint', String(rows))}`;
  if (offset === 0) return limit;
  return sql`${limit} offset ${printer.parameters.add('bigint', String(offset))}`;
}

function wholeNumber(place: Place, node: Expr, what: string): number {
  const { literal } = printExpr(place, node);
  if (typeof literal !== 'number' || !Number.isSafeInteger(literal) || literal < 0) {
    throw fault(`${what} takes a whole number`, node.span);
  }
  return literal;
}
