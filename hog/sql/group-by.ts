import type { Expr, SelectQuery } from '../ast/index.ts';
import { hasAggregate } from './aggregation.ts';
import { printExpr } from './dispatch.ts';
import { unsupported } from './errors.ts';
import type { Place } from './printer.ts';
import { positional } from './select-list.ts';
import { isConstant, join, NOTHING, type Sql, sql } from './sql.ts';

/**
 * Prints GROUP BY and records the grouped expressions. A field outside of aggregates that is not grouped can then be
 * refused by name and position.
 */
export function printGroupBy(place: Place, node: SelectQuery, select: readonly Expr[]): Sql {
  const { printer } = place;
  const exprs = groupExprs(node, select);
  const aggregated = [...select, node.having, ...(node.orderBy ?? []).map((one) => one.expr)].some(
    (one) => one && hasAggregate(one),
  );
  if (!exprs && !aggregated && !node.having) return NOTHING;
  const values = printer.barAggregates('GROUP BY', () => (exprs ?? []).map((one) => printExpr(place, one)));
  printer.groups = new Set(values.map((one) => one.sql.text));
  printer.ungrouped = [];
  // Constants are left out: they group nothing, and Postgres would read a number as a position.
  const keys = values
    .filter((one) => one.literal === undefined && !isConstant(one.sql))
    .map((one) => one.sql);
  if (!exprs) return NOTHING;
  if (keys.length === 0) return sql` group by ()`;
  if (node.groupByMode === 'rollup') return sql` group by rollup (${join(keys)})`;
  if (node.groupByMode === 'cube') return sql` group by cube (${join(keys)})`;
  return sql` group by ${join(keys)}`;
}

function groupExprs(node: SelectQuery, select: readonly Expr[]): Expr[] | null {
  if (node.groupByMode === 'all') {
    return select.filter((one) => !hasAggregate(one));
  }
  if (node.groupByMode === 'grouping_sets') throw unsupported('GROUPING SETS', node.span);
  if (!node.groupBy) return null;
  return node.groupBy.map((one) => {
    if (one.kind === 'groupingSet') throw unsupported('GROUPING SETS', one.span);
    return positional(one, select);
  });
}
