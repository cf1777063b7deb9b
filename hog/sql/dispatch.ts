// The way back to the top: an expression has expressions and queries in it, which the modules for its parts print
// through the printer that they are given, so that no module has to know the ones above it.
import type { Expr, SelectNode } from '../ast/index.ts';
import type { Place, Printer } from './printer.ts';
import type { OutputColumn, Scope } from './scope.ts';
import type { Sql } from './sql.ts';
import type { Value } from './types.ts';

export interface NamedColumn extends OutputColumn {
  name: string;
}

export interface PrintedQuery {
  sql: Sql;
  columns: NamedColumn[];
}

export interface Visitor {
  expr: (place: Place, node: Expr) => Value;
  condition: (place: Place, node: Expr, nullIsFalse: boolean) => Sql;
  select: (printer: Printer, node: SelectNode, parent: Scope | null, top: boolean) => PrintedQuery;
}

export const printExpr = (place: Place, node: Expr): Value => place.printer.visitor.expr(place, node);

/** An expression whose truth is asked for. `nullIsFalse`: the caller does not tell NULL from false. */
export const printCondition = (place: Place, node: Expr, nullIsFalse: boolean): Sql =>
  place.printer.visitor.condition(place, node, nullIsFalse);

/** `top`: the statement itself, which gets a LIMIT if it has none. */
export const printSelect = (
  printer: Printer,
  node: SelectNode,
  parent: Scope | null,
  top = false,
): PrintedQuery => printer.visitor.select(printer, node, parent, top);
