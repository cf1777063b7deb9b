import { build, type Expr } from '../hog/ast/index.ts';

export const NULL = build.constant(null);
export const TRUE = build.constant(true);

/**
 * Joins expressions with AND as PostHog does. One expression stays as it is, an empty list is true, and nested ANDs
 * stay nested.
 */
export function conjunction(exprs: Expr[]): Expr {
  return exprs.length === 0 ? TRUE : exprs.length === 1 ? (exprs[0] as Expr) : { kind: 'and', exprs };
}

/** Joins expressions with OR in the same way. An empty list is true, as in an empty group. */
export function disjunction(exprs: Expr[]): Expr {
  return exprs.length === 0 ? TRUE : exprs.length === 1 ? (exprs[0] as Expr) : { kind: 'or', exprs };
}
