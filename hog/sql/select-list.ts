import { build, type Expr } from '../ast/index.ts';
import { fault, unsupported } from './errors.ts';
import type { Place, Printer } from './printer.ts';
import type { Source } from './scope.ts';

/** Replaces `*` and `t.*` by the columns that they stand for. */
export function expandStars(place: Place, select: readonly Expr[]): Expr[] {
  return select.flatMap((one) => {
    if (one.kind === 'columns' && one.all && one.exclude.length === 0 && one.replace.length === 0) {
      return allColumns(place, one);
    }
    if (one.kind !== 'field' || one.chain.at(-1) !== '*') return [one];
    if (one.chain.length === 1) return allColumns(place, one);
    const source = one.chain.length === 2 ? place.scope.source(one.chain[0] as string) : null;
    if (!source) throw unsupported('This *', one.span);
    return columnsOf(source, true);
  });
}

function allColumns(place: Place, node: Expr): Expr[] {
  const { sources } = place.scope;
  if (sources.length === 0) throw fault('* needs a table in FROM', node.span);
  if (sources.length > 1) {
    throw fault('* needs the name of a table where there are several, as in t.*', node.span);
  }
  return sources.flatMap((source) => columnsOf(source, false));
}

function columnsOf(source: Source, qualified: boolean): Expr[] {
  const names = source.table
    ? Object.entries(source.table.fields).flatMap(([name, field]) =>
        field.kind === 'column' && !field.hidden ? [name] : [],
      )
    : [...source.columns].flatMap(([name, column]) =>
        'short' in column && column.short === name ? [] : [name],
      );
  const prefix = source.names[0];
  return names.map((name) => {
    const chain = qualified && prefix !== undefined ? build.field(prefix, name) : build.field(name);
    return { kind: 'alias', alias: name, expr: chain };
  });
}

/** Returns the name of a result column: its alias, its path, or its text in the source. */
export function outputName(printer: Printer, node: Expr): string {
  if (node.kind === 'alias') return node.alias;
  if (node.kind === 'field') return node.chain.join('.');
  const { source } = printer.options;
  if (source !== undefined && node.span) return source.slice(node.span.start, node.span.end);
  return node.kind === 'call' ? node.name : node.kind;
}

/**
 * Resolves a term of GROUP BY or ORDER BY. A number means the selected column at that position. What repeats the expression of a
 * column means the column, also where this has the name of something in it.
 */
export function positional(expr: Expr, select: readonly Expr[]): Expr {
  if (expr.kind === 'field') return expr;
  if (expr.kind !== 'constant' || typeof expr.value !== 'number' || expr.float) {
    const text = textOf(expr);
    return select.find((one) => one.kind === 'alias' && textOf(one.expr) === text) ?? expr;
  }
  const chosen = select[expr.value - 1];
  if (!chosen) throw fault(`There is no column ${expr.value} among the selected ones`, expr.span);
  return chosen;
}

/** A text that equal expressions have, wherever they stand. */
export const textOf = (expr: Expr): string =>
  JSON.stringify(expr, (key, value: unknown) => (key === 'span' ? undefined : value));
