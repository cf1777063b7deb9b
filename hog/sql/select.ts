// SELECTs: what is read, in which scope, and the statement around the expressions.
import type { Cte, Expr, SelectNode, SelectQuery, SelectSetQuery } from '../ast/index.ts';
import { align } from './compare.ts';
import { fault, quote, unsupported } from './errors.ts';
import { printCondition, printExpr } from './expression.ts';
import { printFrom } from './from.ts';
import { printGroupBy } from './group-by.ts';
import { printLimit } from './limit.ts';
import { printOrder } from './order.ts';
import type { Place, Printer } from './printer.ts';
import { type OutputColumn, Scope } from './scope.ts';
import { expandStars, outputName } from './select-list.ts';
import { printSetQuery } from './set-query.ts';
import { join, NOTHING, type Sql, sql } from './sql.ts';
import type { Value } from './types.ts';
import { printWindow } from './window.ts';

export interface NamedColumn extends OutputColumn {
  name: string;
}

export interface PrintedQuery {
  sql: Sql;
  columns: NamedColumn[];
}

/** `top`: the statement itself, which gets a LIMIT if it has none. */
export function printSelect(
  printer: Printer,
  node: SelectNode,
  parent: Scope | null,
  top = false,
): PrintedQuery {
  return printer.enter(node.span, () => {
    const kept = {
      ungrouped: printer.ungrouped,
      groups: printer.groups,
      joining: printer.joining,
      aggregatesBarred: printer.aggregatesBarred,
    };
    printer.ungrouped = null;
    printer.groups = new Set();
    printer.joining = false;
    printer.aggregatesBarred = null;
    try {
      if (node.kind === 'selectQuery') return printQuery(printer, node, parent, top);
      if (node.kind === 'selectSetQuery') return printSetQuery(printer, node, parent, top);
      throw unsupported('VALUES', node.span);
    } finally {
      Object.assign(printer, kept);
    }
  });
}

export function defineCtes(scope: Scope, ctes: readonly Cte[]): void {
  for (const cte of ctes) {
    if (cte.recursive) throw unsupported('WITH RECURSIVE', cte.span);
    if (cte.columns || cte.usingKey) throw unsupported('A WITH that names columns', cte.span);
    const { expr } = cte;
    const query = expr.kind === 'selectQuery' || expr.kind === 'selectSetQuery' ? expr : null;
    scope.ctes.set(
      cte.name,
      cte.cteType === 'subquery' && query ? { kind: 'subquery', query } : { kind: 'column', expr },
    );
  }
}

function printQuery(printer: Printer, node: SelectQuery, parent: Scope | null, top: boolean): PrintedQuery {
  refuse(node);
  const scope = new Scope(parent);
  const place: Place = { printer, scope };
  defineCtes(scope, node.ctes);
  const from = printFrom(place, node);
  for (const one of node.select) if (one.kind === 'alias') scope.aliases.set(one.alias, one.expr);
  const select = expandStars(place, node.select);
  for (const [name, window] of node.windows) scope.windows.set(name, printWindow(place, window));
  const where = conditions(place, [node.prewhere, node.where]);
  const groupBy = printGroupBy(place, node, select);
  const values = select.map((one) => printExpr(place, one));
  const having = node.having ? sql` having ${printCondition(place, node.having, true)}` : NOTHING;
  const order = orderOf(place, node, select, values);
  const limitBy = node.limitBy ? printLimitBy(place, node, order) : null;
  checkGroups(printer);
  const columns = values.map(
    (value, index): NamedColumn => ({
      name: outputName(printer, node.select.length === select.length ? node.select[index]! : select[index]!),
      sql: printer.name('c'),
      type: value.type,
      ...(value.loose && { loose: true }),
    }),
  );
  const list = values.map((value, index) => sql`${value.sql} as ${columns[index]!.sql}`);
  const distinct = node.distinct ? sql`distinct ` : NOTHING;
  const body = sql`${join(limitBy ? [...list, ...limitBy.list] : list)}${from()}${where}${groupBy}${having}`;
  const limit = printLimit(place, node, top);
  if (limitBy) {
    const outer = printer.name('t');
    const kept = columns.map((one) => sql`${outer}.${one.sql}`);
    const filter = limitBy.filter(outer);
    return {
      sql: sql`select ${join(kept)} from (select ${body}) as ${outer} where ${filter} order by ${outer}.${limitBy.order}${limit}`,
      columns,
    };
  }
  if (!node.distinct || !node.orderBy?.length) {
    const ordered = order ? sql` order by ${order}` : NOTHING;
    return { sql: sql`select ${distinct}${body}${ordered}${limit}`, columns };
  }
  const outer = printer.name('t');
  const ordered = distinctOrder(place, node, select, values, columns, outer);
  return {
    sql: sql`select * from (select distinct ${body}) as ${outer} order by ${ordered}${limit}`,
    columns,
  };
}

function refuse(node: SelectQuery): void {
  if (node.qualify) throw unsupported('QUALIFY', node.span);
  if (node.limitWithTies) throw unsupported('LIMIT WITH TIES', node.span);
  if (node.limitPercent) throw unsupported('LIMIT in percent', node.span);
  if (node.limitBy && node.distinct) throw unsupported('LIMIT BY beside DISTINCT', node.span);
  if (node.select.length === 0) throw fault('A query selects something', node.span);
}

function conditions(place: Place, exprs: (Expr | null)[]): Sql {
  const tests = place.printer.barAggregates('WHERE', () =>
    exprs.filter((one) => one !== null).map((one) => printCondition(place, one, true)),
  );
  return tests.length > 0 ? sql` where ${join(tests, sql` and `)}` : NOTHING;
}

function checkGroups(printer: Printer): void {
  const first = printer.ungrouped?.[0];
  if (!first) return;
  throw fault(`${quote(first.name)} must be in GROUP BY or inside of an aggregate`, first.span);
}

/** `ORDER BY 2` is the second of the selected columns. */
function orderOf(place: Place, node: SelectQuery, select: Expr[], _values: Value[]): Sql | null {
  if (!node.orderBy?.length) return null;
  const order = printOrder(
    place,
    node.orderBy.map((one) => ({ ...one, expr: positional(one.expr, select) })),
  );
  return order.text === '' ? null : order;
}

export function positional(expr: Expr, select: readonly Expr[]): Expr {
  if (expr.kind !== 'constant' || typeof expr.value !== 'number' || expr.float) return expr;
  const chosen = select[expr.value - 1];
  if (!chosen) throw fault(`There is no column ${expr.value} among the selected ones`, expr.span);
  return chosen.kind === 'alias' ? chosen.expr : chosen;
}

/** After DISTINCT only what is selected can order. */
function distinctOrder(
  place: Place,
  node: SelectQuery,
  select: Expr[],
  values: Value[],
  columns: NamedColumn[],
  outer: Sql,
): Sql {
  const terms = (node.orderBy ?? []).map((one) => {
    const text = printExpr(place, positional(one.expr, select)).sql.text;
    const index = values.findIndex((value) => value.sql.text === text);
    if (index === -1) throw fault('ORDER BY of a DISTINCT query must be one of its columns', one.span);
    return orderColumn(outer, columns[index]!, one.order);
  });
  return join(terms);
}

export function orderColumn(outer: Sql, column: OutputColumn, direction: 'ASC' | 'DESC'): Sql {
  const key =
    column.type === 'string' ? sql`${outer}.${column.sql} collate "C"` : sql`${outer}.${column.sql}`;
  return direction === 'DESC' ? sql`${key} desc nulls last` : sql`${key} asc nulls last`;
}

/** LIMIT n BY …: at most n rows of each kind, the first in the query's order. */
function printLimitBy(place: Place, node: SelectQuery, order: Sql | null) {
  const { printer } = place;
  const by = node.limitBy!;
  const keys = join(by.exprs.map((one) => printExpr(place, one).sql));
  const rows = limitNumber(place, by.n);
  const skipped = by.offset ? limitNumber(place, by.offset) : sql`0`;
  const [within, overall] = [printer.name('w'), printer.name('w')];
  const ordered = order ? sql`order by ${order}` : NOTHING;
  return {
    list: [
      sql`row_number() over (partition by ${keys} ${ordered}) as ${within}`,
      sql`row_number() over (${ordered}) as ${overall}`,
    ],
    filter: (outer: Sql) =>
      sql`${outer}.${within} > ${skipped} and ${outer}.${within} <= ${skipped} + ${rows}`,
    order: overall,
  };
}

function limitNumber(place: Place, node: Expr): Sql {
  const value = printExpr(place, node);
  if (typeof value.literal !== 'number' || !Number.isSafeInteger(value.literal) || value.literal < 0) {
    throw fault('LIMIT BY takes a whole number', node.span);
  }
  return value.sql;
}

/** A query as a value: one column, one row at most. */
export function printScalarQuery(place: Place, node: SelectQuery | SelectSetQuery): Value {
  const { sql: text, columns } = printSelect(place.printer, node, place.scope);
  if (columns.length !== 1) throw fault('A query that stands for a value selects one column', node.span);
  return { sql: sql`(${text})`, type: columns[0]!.type, ...(columns[0]!.loose && { loose: true }) };
}

/** `x in (select …)` */
export function printMembershipQuery(
  place: Place,
  left: Value,
  node: SelectQuery | SelectSetQuery,
  negated: boolean,
): Sql {
  const { sql: text, columns } = printSelect(place.printer, node, place.scope);
  const lefts = left.items ?? [left];
  if (columns.length !== lefts.length) {
    throw fault(`The query selects ${columns.length} columns where ${lefts.length} are compared`, node.span);
  }
  const alias = place.printer.name('t');
  const pairs = columns.map((column, index) =>
    align(
      place,
      lefts[index]!,
      { sql: sql`${alias}.${column.sql}`, type: column.type, ...(column.loose && { loose: true }) },
      node.span,
    ),
  );
  const sought = join(pairs.map((pair) => pair.left.sql));
  const found = join(pairs.map((pair) => pair.right.sql));
  const test = sql`((${sought}) in (select ${found} from (${text}) as ${alias}))`;
  return negated ? sql`(${test} is not true)` : sql`(${test} is true)`;
}
