import type { Columns, OrderExpr, PositionalRef, Spread, Tag, WindowFunction } from './query-expressions.ts';
import type { SelectNode } from './selects.ts';
import type { Block } from './statements.ts';

/** A range of the source text in UTF-16 units. The start is included, the end is not. */
export interface Span {
  start: number;
  end: number;
}

/** A node that knows its place in the source. Nodes that are built without source text have no span. */
export interface Spanned {
  span?: Span;
}

/** A literal. `float` is set on numbers only, because `1.0` and `1` are different constants in the bytecode. */
export interface Constant extends Spanned {
  kind: 'constant';
  value: null | boolean | number | string;
  float?: boolean;
}

/** A name or a dotted path. `*` may be the last element in HogQL. */
export interface Field extends Spanned {
  kind: 'field';
  chain: string[];
}

/** `{expr}` in HogQL. It must be replaced by an expression before the query is printed. */
export interface Placeholder extends Spanned {
  kind: 'placeholder';
  expr: Expr;
}

export interface And extends Spanned {
  kind: 'and';
  exprs: Expr[];
}

export interface Or extends Spanned {
  kind: 'or';
  exprs: Expr[];
}

export interface Not extends Spanned {
  kind: 'not';
  expr: Expr;
}

export const ARITHMETIC_OPERATORS = ['+', '-', '*', '/', '%'] as const;
export type ArithmeticOperator = (typeof ARITHMETIC_OPERATORS)[number];

export interface Arithmetic extends Spanned {
  kind: 'arithmetic';
  op: ArithmeticOperator;
  left: Expr;
  right: Expr;
}

export const COMPARE_OPERATORS = [
  '==',
  '!=',
  '<',
  '<=',
  '>',
  '>=',
  'in',
  'not in',
  'like',
  'ilike',
  'not like',
  'not ilike',
  '=~',
  '!~',
  '=~*',
  '!~*',
  'in cohort',
  'not in cohort',
] as const;
export type CompareOperator = (typeof COMPARE_OPERATORS)[number];

export interface Compare extends Spanned {
  kind: 'compare';
  op: CompareOperator;
  left: Expr;
  right: Expr;
  /** True if the source says `is null` or `is not null`. */
  isNullStyle?: boolean;
}

export interface Between extends Spanned {
  kind: 'between';
  expr: Expr;
  low: Expr;
  high: Expr;
  negated: boolean;
}

export interface IsDistinctFrom extends Spanned {
  kind: 'isDistinctFrom';
  left: Expr;
  right: Expr;
  negated: boolean;
}

/**
 * A call by name. `f(p)(a)` has the `params` [p] and the `args` [a]. The parser also turns other syntax into calls: the
 * ternary becomes `if`, `case` becomes `multiIf`, `??` becomes `ifNull`, `||` and f-strings become `concat`, and
 * `interval` becomes `toInterval…`.
 */
export interface Call extends Spanned {
  kind: 'call';
  name: string;
  args: Expr[];
  params: Expr[] | null;
  distinct: boolean;
  orderBy: OrderExpr[] | null;
  filter: Expr | null;
  withinGroup: OrderExpr[] | null;
}

/** A call whose callee is not a bare name, such as `a.b(1)` or `(x -> x)(1)`. */
export interface ExprCall extends Spanned {
  kind: 'exprCall';
  callee: Expr;
  args: Expr[];
}

export interface Lambda extends Spanned {
  kind: 'lambda';
  params: string[];
  body: Expr | Block;
}

export interface ArrayExpr extends Spanned {
  kind: 'array';
  exprs: Expr[];
}

export interface Tuple extends Spanned {
  kind: 'tuple';
  exprs: Expr[];
}

export interface Dict extends Spanned {
  kind: 'dict';
  items: [Expr, Expr][];
}

/** `a[x]`, or `a.b` where `a` is not a name. `nullish` is true if it is written with `?.`. */
export interface ArrayAccess extends Spanned {
  kind: 'arrayAccess';
  object: Expr;
  property: Expr;
  nullish: boolean;
}

export interface TupleAccess extends Spanned {
  kind: 'tupleAccess';
  tuple: Expr;
  index: number;
  nullish: boolean;
}

export interface ArraySlice extends Spanned {
  kind: 'arraySlice';
  array: Expr;
  from: Expr | null;
  to: Expr | null;
}

export interface Alias extends Spanned {
  kind: 'alias';
  alias: string;
  expr: Expr;
}

/** An argument that is passed by name: `f(name := value)`. */
export interface NamedArgument extends Spanned {
  kind: 'namedArgument';
  name: string;
  value: Expr;
}

export interface TypeCast extends Spanned {
  kind: 'typeCast';
  expr: Expr;
  typeName: string;
}

export interface TryCast extends Spanned {
  kind: 'tryCast';
  expr: Expr;
  typeName: string;
}

export type Expr =
  | Constant
  | Field
  | Placeholder
  | And
  | Or
  | Not
  | Arithmetic
  | Compare
  | Between
  | IsDistinctFrom
  | Call
  | ExprCall
  | Lambda
  | ArrayExpr
  | Tuple
  | Dict
  | ArrayAccess
  | TupleAccess
  | ArraySlice
  | Alias
  | NamedArgument
  | TypeCast
  | TryCast
  | WindowFunction
  | Columns
  | Spread
  | PositionalRef
  | Tag
  | SelectNode;
