// Prints SELECT statements.
import type { Expr, SelectNode, SelectQuery } from '../ast/index.ts';
import { hasAggregate } from './aggregation.ts';
import { defineCtes } from './ctes.ts';
import { type NamedColumn, type PrintedQuery, printCondition, printExpr } from './dispatch.ts';
import { distinctOrder } from './distinct.ts';
import { fault, quote, unsupported } from './errors.ts';
import { printFrom } from './from.ts';
import { printGroupBy } from './group-by.ts';
import { printLimit } from './limit.ts';
import { orderColumn, printOrder } from './order.ts';
import type { Place, Printer } from './printer.ts';
import { Scope } from './scope.ts';
import { expandStars, outputName, positional } from './select-list.ts';
import { printSetQuery } from './set-query.ts';
import { join, NOTHING, type Sql, sql } from './sql.ts';
import { printWindow } from './window.ts';

/** Prints a query. `top` marks the whole statement, which gets a LIMIT if it has none. */
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
      if (node.kind === 'selectQuery') {
        return printer.sizes.rows(keepsRows(node), top, () => printQuery(printer, node, parent, top));
      }
      if (node.kind === 'selectSetQuery') {
        return printer.sizes.rows(true, top, () => printSetQuery(printer, node, parent, top));
      }
      throw unsupported('VALUES', node.span);
    } finally {
      Object.assign(printer, kept);
    }
  });
}

const shortName = (node: Expr): { short?: string } =>
  node.kind === 'field' && node.chain.length > 1 ? { short: String(node.chain.at(-1)) } : {};

/** Returns whether a query can keep several rows at once: where it sorts, groups or joins, or has a window. */
const keepsRows = (node: SelectQuery): boolean =>
  Boolean(
    node.orderBy?.length ||
      node.groupBy ||
      node.groupByMode ||
      node.distinct ||
      node.limitBy ||
      node.qualify ||
      node.windows.length > 0 ||
      node.from?.next ||
      node.select.some(hasWindow),
  );

/** Returns whether Postgres may put a query into the one around, with its tables. */
const isPlain = (node: SelectQuery, select: readonly Expr[]): boolean =>
  !keepsRows({ ...node, from: null }) &&
  !node.having &&
  !node.limit &&
  !node.offset &&
  !select.some(hasAggregate);

const hasWindow = (node: Expr): boolean =>
  node.kind === 'windowFunction' || (node.kind === 'alias' && hasWindow(node.expr));

/** Prints the named windows. The result of a window cannot define one, so the name of such a column means what it hides. */
function printWindows(place: Place, node: SelectQuery): void {
  const { scope } = place;
  const hidden = [...scope.aliases].filter(([name, expr]) => hasWindow(expr) && !scope.expanding.has(name));
  for (const [name] of hidden) scope.expanding.add(name);
  for (const [name, window] of node.windows) scope.windows.set(name, printWindow(place, window));
  for (const [name] of hidden) scope.expanding.delete(name);
}

function printQuery(printer: Printer, node: SelectQuery, parent: Scope | null, top: boolean): PrintedQuery {
  refuse(node);
  const scope = new Scope(parent);
  const place: Place = { printer, scope };
  defineCtes(scope, node.ctes);
  const from = printFrom(place, node);
  for (const one of node.select) if (one.kind === 'alias') scope.aliases.set(one.alias, one.expr);
  const select = expandStars(place, node.select);
  printWindows(place, node);
  const where = conditions(place, [node.prewhere, node.where]);
  const groupBy = printGroupBy(place, node, select);
  const values = select.map((one) => printer.measured(() => ({ value: printExpr(place, one) })));
  const having = node.having ? sql` having ${printCondition(place, node.having, true)}` : NOTHING;
  const order = orderOf(place, node, select);
  const kept = node.limitBy ? printLimitBy(place, node, order) : printQualify(place, node, select);
  checkGroups(printer);
  const columns = values.map(
    ({ value, built }, index): NamedColumn => ({
      name: outputName(printer, node.select.length === select.length ? node.select[index]! : select[index]!),
      sql: printer.name('c'),
      type: value.type,
      ...shortName(select[index]!),
      ...(value.loose && { loose: true }),
      // A plain field costs nothing again.
      ...((built.parts > 1 || value.built || value.read) && {
        size: { built: value.built ?? 0, read: value.read ?? 0, repeated: built },
      }),
    }),
  );
  const list = values.map(({ value }, index) => sql`${value.sql} as ${columns[index]!.sql}`);
  const distinct = node.distinct ? sql`distinct ` : NOTHING;
  const { from: tables, joined } = from();
  const body = sql`${join(kept ? [...list, ...kept.list] : list)}${tables}${where}${groupBy}${having}`;
  const limit = printLimit(place, node, top);
  if (kept) {
    const outer = printer.name('t');
    const shown = columns.map((one) => sql`${outer}.${one.sql}`);
    const ordered = kept.order(outer);
    const orderBy = ordered.text === '' ? NOTHING : sql` order by ${ordered}`;
    return {
      sql: sql`select ${join(shown)} from (select ${body}) as ${outer} where ${kept.filter(outer)}${orderBy}${limit}`,
      columns,
    };
  }
  if (!node.distinct || !node.orderBy?.length) {
    const ordered = order ? sql` order by ${order}` : NOTHING;
    const printed = sql`select ${distinct}${body}${ordered}${limit}`;
    return { sql: printed, columns, ...(isPlain(node, select) && { joined }) };
  }
  const outer = printer.name('t');
  const ordered = distinctOrder(place, node, {
    select,
    values: values.map(({ value }) => value),
    columns,
    outer,
  });
  const orderBy = ordered.text === '' ? NOTHING : sql` order by ${ordered}`;
  return {
    sql: sql`select * from (select distinct ${body}) as ${outer}${orderBy}${limit}`,
    columns,
  };
}

function refuse(node: SelectQuery): void {
  if (node.qualify && (node.distinct || node.limitBy)) {
    throw unsupported(`QUALIFY together with ${node.distinct ? 'DISTINCT' : 'LIMIT BY'}`, node.span);
  }
  if (node.limitWithTies) throw unsupported('LIMIT WITH TIES', node.span);
  if (node.limitPercent) throw unsupported('LIMIT in percent', node.span);
  if (node.limitBy && node.distinct) throw unsupported('LIMIT BY together with DISTINCT', node.span);
  if (node.select.length === 0) throw fault('A query must select at least one column', node.span);
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

/** Prints the order of a query. `ORDER BY 2` means the second selected column. */
function orderOf(place: Place, node: SelectQuery, select: Expr[]): Sql | null {
  if (!node.orderBy?.length) return null;
  const order = printOrder(
    place,
    node.orderBy.map((one) => ({ ...one, expr: positional(one.expr, select) })),
  );
  return order.text === '' ? null : order;
}

/** Extra columns, and the filter and order of an outer query that uses them. */
interface Kept {
  list: Sql[];
  filter: (outer: Sql) => Sql;
  order: (outer: Sql) => Sql;
}

/** Prints QUALIFY, a condition on window functions. Postgres only allows it in an outer query. */
function printQualify(place: Place, node: SelectQuery, select: Expr[]): Kept | null {
  if (!node.qualify) return null;
  const { printer } = place;
  const test = printer.name('w');
  const terms = (node.orderBy ?? []).map((one) => {
    const { sql: text, type } = printExpr(place, positional(one.expr, select));
    return { text, order: one.order, column: { name: '', sql: printer.name('w'), type } };
  });
  return {
    list: [
      sql`${printCondition(place, node.qualify, true)} as ${test}`,
      ...terms.map(({ text, column }) => sql`${text} as ${column.sql}`),
    ],
    filter: (outer) => sql`${outer}.${test}`,
    order: (outer) => join(terms.map(({ column, order }) => orderColumn(outer, column, order))),
  };
}

/** Prints LIMIT n BY …: at most n rows for each key, the first ones in the query's order. */
function printLimitBy(place: Place, node: SelectQuery, order: Sql | null): Kept {
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
    order: (outer) => sql`${outer}.${overall}`,
  };
}

function limitNumber(place: Place, node: Expr): Sql {
  const value = printExpr(place, node);
  if (typeof value.literal !== 'number' || !Number.isSafeInteger(value.literal) || value.literal < 0) {
    throw fault('LIMIT BY takes a whole number', node.span);
  }
  return value.sql;
}
