import type { OrderExpr } from '../ast/index.ts';
import { printExpr } from './dispatch.ts';
import { unsupported } from './errors.ts';
import type { Place } from './printer.ts';
import type { OutputColumn } from './scope.ts';
import { isConstant, join, type Sql, sql } from './sql.ts';

/** ClickHouse sorts missing values last in both directions, and text by its bytes. */
export function printOrder(place: Place, order: readonly OrderExpr[]): Sql {
  return join(order.flatMap((one) => orderTerm(place, one) ?? []));
}

function orderTerm(place: Place, order: OrderExpr): Sql | null {
  if (order.withFill) throw unsupported('WITH FILL', order.span);
  const value = printExpr(place, order.expr);
  // A constant orders nothing, and Postgres would take it for something else.
  if (value.literal !== undefined || isConstant(value.sql)) return null;
  const key = value.type === 'string' ? sql`${value.sql} collate "C"` : value.sql;
  return order.order === 'DESC' ? sql`${key} desc nulls last` : sql`${key} asc nulls last`;
}

/** By a column of a query that is printed already. */
export function orderColumn(outer: Sql, column: OutputColumn, direction: 'ASC' | 'DESC'): Sql {
  const key =
    column.type === 'string' ? sql`${outer}.${column.sql} collate "C"` : sql`${outer}.${column.sql}`;
  return direction === 'DESC' ? sql`${key} desc nulls last` : sql`${key} asc nulls last`;
}
