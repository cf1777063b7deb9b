import { build, type Expr } from '../hog/ast/index.ts';

export const NULL = build.constant(null);
export const TRUE = build.constant(true);

/** AND as upstream builds it: one member stands alone, none is true, nested ones stay nested. */
export function conjunction(exprs: Expr[]): Expr {
  return exprs.length === 0 ? TRUE : exprs.length === 1 ? (exprs[0] as Expr) : { kind: 'and', exprs };
}

/** OR likewise; the OR of nothing is not asked for anywhere, and would be true as in an empty group. */
export function disjunction(exprs: Expr[]): Expr {
  return exprs.length === 0 ? TRUE : exprs.length === 1 ? (exprs[0] as Expr) : { kind: 'or', exprs };
}
