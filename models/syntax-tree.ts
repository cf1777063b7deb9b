// Reads syntax trees of any kind.
import { type Expr, nodesOf, type Span } from '../hog/ast/index.ts';

const UNREPEATABLE = new Set(['now', 'now64', 'today', 'yesterday']);
const QUERIES = new Set(['selectQuery', 'selectSetQuery', 'valuesQuery', 'subquery']);

interface Misplaced {
  subquery: boolean;
  what: string;
  span: Span | null;
}

/** Names something that an expression over single rows must not contain. Returns null if there is nothing. */
export function misplaced(expr: Expr): Misplaced | null {
  for (const node of nodesOf(expr)) {
    const span = (node.span as Span | undefined) ?? null;
    if (QUERIES.has(node.kind)) return { subquery: true, what: 'a subquery', span };
    if (node.kind === 'windowFunction') return { subquery: false, what: 'a window function', span };
    if (node.kind !== 'call') continue;
    const name = String(node.name);
    if (name === 'arrayJoin')
      return { subquery: false, what: 'arrayJoin, which turns one row into several', span };
    if (UNREPEATABLE.has(name.toLowerCase())) {
      return {
        subquery: false,
        what: `${name}(): the same interval must give the same rows whenever it is exported`,
        span,
      };
    }
  }
  return null;
}

/** Lists the cohorts that expressions name. */
export function cohortsIn(exprs: readonly Expr[]): number[] {
  const ids = new Set<number>();
  for (const expr of exprs) {
    for (const node of nodesOf(expr)) {
      if (node.kind !== 'compare' || !String(node.op).endsWith('in cohort')) continue;
      const { value } = node.right as { value?: unknown };
      if (typeof value === 'number') ids.add(value);
    }
  }
  return [...ids].sort((a, b) => a - b);
}
