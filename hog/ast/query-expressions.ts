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

/** `f(params…)(args…) over …`; `exprs` are the arguments of `f(x) over …` */
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
  /** null = unbounded */
  frameValue: number | null;
}

/** `columns(…)`, `columns('regex')`, `* exclude (…)`, `* replace (…)` */
export interface Columns extends Spanned {
  kind: 'columns';
  columns: Expr[] | null;
  regex: string | null;
  all: boolean;
  exclude: string[];
  replace: [string, Expr][];
}

/** `*columns(…)` */
export interface Spread extends Spanned {
  kind: 'spread';
  expr: Expr;
}

/** `#1`: the first selected column. */
export interface PositionalRef extends Spanned {
  kind: 'positionalRef';
  index: number;
}

/** `<Name attribute={x}>…</Name>`; children are an attribute of that name holding a list. */
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
