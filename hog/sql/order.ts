import type { OrderExpr } from '../ast/index.ts';
import { printExpr } from './dispatch.ts';
import { unsupported } from './errors.ts';
import type { Place } from './printer.ts';
import type { OutputColumn } from './scope.ts';
import { isConstant, join, type Sql, sql } from './sql.ts';

/** Prints ORDER BY. Like ClickHouse, it sorts NULLs last in both directions and text by its bytes. */
export function printOrder(place: Place, order: readonly OrderExpr[]): Sql {
  return join(order.flatMap((one) => orderTerm(place, one) ?? []));
}

function orderTerm(place: Place, order: OrderExpr): Sql | null {
  if (order.withFill) throw unsupported('WITH FILL', order.span);
  const value = printExpr(place, order.expr);
  // Constants are left out: they order nothing, and Postgres would read a number as a position.
  if (value.literal !== undefined || isConstant(value.sql)) return null;
  const key = value.type === 'string' ? sql`${value.sql} collate "C"` : value.sql;
  return directed(key, order.order, value.certain ?? false);
}

/** A value that is never NULL is ordered without a word about NULLs: only then can an index give the order. */
function directed(key: Sql, direction: 'ASC' | 'DESC', isCertain: boolean): Sql {
  if (isCertain) return direction === 'DESC' ? sql`${key} desc` : sql`${key} asc`;
  return direction === 'DESC' ? sql`${key} desc nulls last` : sql`${key} asc nulls last`;
}

/** Prints the order by a column of a subquery. */
export function orderColumn(outer: Sql, column: OutputColumn, direction: 'ASC' | 'DESC'): Sql {
  const key =
    column.type === 'string' ? sql`${outer}.${column.sql} collate "C"` : sql`${outer}.${column.sql}`;
  return directed(key, direction, false);
}
