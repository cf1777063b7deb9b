import type { Expr, Spanned } from './expressions.ts';

export interface OrderExpr extends Spanned {
  kind: 'orderExpr';
  expr: Expr;
  order: 'ASC' | 'DESC';
  withFill: WithFill | null;
}

export interface WithFill extends Spanned {
  kind: 'withFill';
  from: Expr | null;
  to: Expr | null;
  step: Expr | null;
}

/**
 * A call of a window function. `f(x) over …` has its arguments in `exprs`. `f(params…)(args…) over …` has the
 * parameters in `exprs` and the arguments in `args`.
 */
export interface WindowFunction extends Spanned {
  kind: 'windowFunction';
  name: string;
  exprs: Expr[];
  args: Expr[];
  over: WindowExpr | null;
  overName: string | null;
}

export interface WindowExpr extends Spanned {
  kind: 'windowExpr';
  partitionBy: Expr[] | null;
  orderBy: OrderExpr[] | null;
  frameMethod: 'ROWS' | 'RANGE' | null;
  frameStart: WindowFrame | null;
  frameEnd: WindowFrame | null;
}

export interface WindowFrame extends Spanned {
  kind: 'windowFrame';
  frameType: 'CURRENT ROW' | 'PRECEDING' | 'FOLLOWING';
  /** Null means unbounded. */
  frameValue: number | null;
}

/** A selection of several columns: `columns(…)`, `columns('regex')`, `* exclude (…)` or `* replace (…)`. */
export interface Columns extends Spanned {
  kind: 'columns';
  columns: Expr[] | null;
  regex: string | null;
  all: boolean;
  exclude: string[];
  replace: [string, Expr][];
}

/** A selection of columns that is spread into a list: `*columns(…)`. */
export interface Spread extends Spanned {
  kind: 'spread';
  expr: Expr;
}

/** A selected column by its position. `#1` is the first column. */
export interface PositionalRef extends Spanned {
  kind: 'positionalRef';
  index: number;
}

/** A tag: `<Name attribute={x}>…</Name>`. Its children are the list of an attribute named `children`. */
export interface Tag extends Spanned {
  kind: 'tag';
  name: string;
  attributes: TagAttribute[];
}

export interface TagAttribute extends Spanned {
  kind: 'tagAttribute';
  name: string;
  value: Expr | Expr[];
}
