// Lets the modules for parts of a query print nested expressions and queries. They call the printer's visitor, so no
// module imports the modules above it.
import type { Expr, SelectNode } from '../ast/index.ts';
import type { Place, Printer } from './printer.ts';
import type { ReadCount } from './reads.ts';
import type { OutputColumn, Scope } from './scope.ts';
import type { Sql } from './sql.ts';
import type { Value } from './types.ts';

export interface NamedColumn extends OutputColumn {
  name: string;
  /** The last part of a path that has no alias. The query around may use it as the name. */
  short?: string;
}

export interface PrintedQuery {
  sql: Sql;
  columns: NamedColumn[];
  /** The tables that Postgres joins together with those of the query around. Undefined: it runs the query by itself. */
  joined?: ReadCount;
}

export interface Visitor {
  expr: (place: Place, node: Expr) => Value;
  condition: (place: Place, node: Expr, nullIsFalse: boolean) => Sql;
  select: (printer: Printer, node: SelectNode, parent: Scope | null, top: boolean) => PrintedQuery;
}

export const printExpr = (place: Place, node: Expr): Value => place.printer.visitor.expr(place, node);

/** Prints an expression as a condition. `nullIsFalse` means that the caller treats NULL like false. */
export const printCondition = (place: Place, node: Expr, nullIsFalse: boolean): Sql =>
  place.printer.visitor.condition(place, node, nullIsFalse);

/** Prints a query. `top` marks the whole statement, which gets a LIMIT if it has none. */
export const printSelect = (
  printer: Printer,
  node: SelectNode,
  parent: Scope | null,
  top = false,
): PrintedQuery => printer.visitor.select(printer, node, parent, top);
