// Constructors of syntax trees, for code that builds trees without source text: property filters, tests, tools.
import type {
  Arithmetic,
  ArithmeticOperator,
  ArrayAccess,
  ArrayExpr,
  Between,
  Call,
  Compare,
  CompareOperator,
  Constant,
  Dict,
  Expr,
  Field,
  Lambda,
  Tuple,
} from './expressions.ts';

export const constant = (value: null | boolean | string): Constant => ({ kind: 'constant', value });

export const integer = (value: number): Constant => ({ kind: 'constant', value, float: false });

export const float = (value: number): Constant => ({ kind: 'constant', value, float: true });

/** Builds a constant from a JSON value. Whole numbers become integers, as in the parser. */
export function literal(value: null | boolean | number | string): Constant {
  if (typeof value !== 'number') return constant(value);
  return Number.isInteger(value) ? integer(value) : float(value);
}

export const field = (...chain: string[]): Field => ({ kind: 'field', chain });

export function call(name: string, ...args: Expr[]): Call {
  return {
    kind: 'call',
    name,
    args,
    params: null,
    distinct: false,
    orderBy: null,
    filter: null,
    withinGroup: null,
  };
}

export const compare = (op: CompareOperator, left: Expr, right: Expr): Compare => ({
  kind: 'compare',
  op,
  left,
  right,
});

export const arithmetic = (op: ArithmeticOperator, left: Expr, right: Expr): Arithmetic => ({
  kind: 'arithmetic',
  op,
  left,
  right,
});

export const between = (expr: Expr, low: Expr, high: Expr, negated = false): Between => ({
  kind: 'between',
  expr,
  low,
  high,
  negated,
});

export const not = (expr: Expr): Expr => ({ kind: 'not', expr });

/**
 * Joins expressions with `and`. Flattens nested conjunctions as the parser does. One expression stays as it is; an
 * empty list is `true`.
 */
export function and(exprs: Expr[]): Expr {
  const flat = exprs.flatMap((expr) => (expr.kind === 'and' ? expr.exprs : [expr]));
  return flat.length === 0 ? constant(true) : flat.length === 1 ? flat[0]! : { kind: 'and', exprs: flat };
}

/**
 * Joins expressions with `or`. Flattens nested disjunctions as the parser does. One expression stays as it is; an empty
 * list is `false`.
 */
export function or(exprs: Expr[]): Expr {
  const flat = exprs.flatMap((expr) => (expr.kind === 'or' ? expr.exprs : [expr]));
  return flat.length === 0 ? constant(false) : flat.length === 1 ? flat[0]! : { kind: 'or', exprs: flat };
}

export const array = (exprs: Expr[]): ArrayExpr => ({ kind: 'array', exprs });

export const tuple = (exprs: Expr[]): Tuple => ({ kind: 'tuple', exprs });

export const dict = (items: [Expr, Expr][]): Dict => ({ kind: 'dict', items });

export const access = (object: Expr, property: Expr, nullish = false): ArrayAccess => ({
  kind: 'arrayAccess',
  object,
  property,
  nullish,
});

export const lambda = (params: string[], body: Lambda['body']): Lambda => ({ kind: 'lambda', params, body });
