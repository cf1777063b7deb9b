// The order of a DISTINCT query. Postgres sorts its rows when they are distinct, so only by what they have.
import { build, type Expr, isNode, type SelectQuery } from '../ast/index.ts';
import { type NamedColumn, printExpr } from './dispatch.ts';
import { fault } from './errors.ts';
import { printOrder } from './order.ts';
import type { Place } from './printer.ts';
import { Scope } from './scope.ts';
import { positional, textOf } from './select-list.ts';
import type { Sql } from './sql.ts';
import type { Value } from './types.ts';

/** What a DISTINCT query selects: as it is written, as it is printed, and as columns of the rows `outer`. */
interface Selected {
  select: readonly Expr[];
  values: readonly Value[];
  columns: readonly NamedColumn[];
  outer: Sql;
}

/** Prints the order by columns of the result, or by expressions of such columns. */
export function distinctOrder(place: Place, { orderBy }: SelectQuery, selected: Selected): Sql {
  const { printer, scope } = place;
  const result = new Scope(scope.parent);
  result.sources.push({
    ...{ alias: selected.outer, names: [], table: null, joins: new Map(), optional: false },
    columns: new Map(selected.columns.map((column, index) => [nameOf(index), column])),
  });
  const order = (orderBy ?? []).map((one) => {
    const expr = positional(one.expr, selected.select);
    const { text } = printExpr(place, expr).sql;
    const index = selected.values.findIndex((value) => value.sql.text === text);
    const found = index === -1 ? inResult(expr, selected.select, new Set()) : build.field(nameOf(index));
    if (found === ELSEWHERE) {
      throw fault('ORDER BY of a DISTINCT query takes its columns, or expressions of them', one.span);
    }
    return { ...one, expr: found as Expr };
  });
  return printOrder({ printer, scope: result }, order);
}

/** A name that the result does not have. */
const ELSEWHERE = Symbol('elsewhere');

/** No name of a query has a space before it. */
const nameOf = (index: number): string => ` ${index}`;

/**
 * Copies a part of a tree with names of columns in place of what is selected. Returns ELSEWHERE if it names something else.
 * `parameters` are those of lambdas around the part.
 */
function inResult(part: unknown, select: readonly Expr[], parameters: ReadonlySet<string>): unknown {
  if (Array.isArray(part)) {
    const made = part.map((one) => inResult(one, select, parameters));
    return made.includes(ELSEWHERE) ? ELSEWHERE : made;
  }
  if (typeof part !== 'object' || part === null) return part;
  let inner = parameters;
  if (isNode(part)) {
    const expr = part as unknown as Expr;
    if (expr.kind === 'field' && parameters.has(String(expr.chain[0]))) return expr;
    const index = select.findIndex((one) => isSame(one, expr));
    if (index !== -1) return build.field(nameOf(index));
    if (expr.kind === 'field' || expr.kind === 'selectQuery' || expr.kind === 'selectSetQuery')
      return ELSEWHERE;
    if (expr.kind === 'lambda') inner = new Set([...parameters, ...expr.params]);
  }
  const copied = Object.entries(part).map(([key, one]) => [
    key,
    key === 'span' ? one : inResult(one, select, inner),
  ]);
  return copied.some(([, one]) => one === ELSEWHERE) ? ELSEWHERE : Object.fromEntries(copied);
}

function isSame(selected: Expr, expr: Expr): boolean {
  if (selected.kind !== 'alias') return textOf(selected) === textOf(expr);
  return (
    (expr.kind === 'field' && expr.chain.length === 1 && expr.chain[0] === selected.alias) ||
    textOf(selected.expr) === textOf(expr)
  );
}
