// Reads and changes syntax trees of any kind.
import { type Expr, isNode, nodesOf } from '../hog/ast/index.ts';

/** Returns the expression with its table before every field, so that no alias of the same name can replace a field. */
export function qualified(expr: Expr, table: string): Expr {
  return qualify(expr, table, new Set()) as Expr;
}

function qualify(value: unknown, table: string, bound: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((one) => qualify(one, table, bound));
  if (typeof value !== 'object' || value === null) return value;
  if (isNode(value) && value.kind === 'field') {
    const chain = value.chain as string[];
    const own = bound.has(chain[0] as string) || chain[0] === table;
    return own ? value : { ...value, chain: [table, ...chain] };
  }
  const names =
    isNode(value) && value.kind === 'lambda' ? new Set([...bound, ...(value.params as string[])]) : bound;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, key === 'span' ? one : qualify(one, table, names)]),
  );
}

const UNREPEATABLE = new Set(['now', 'now64', 'today', 'yesterday']);
const QUERIES = new Set(['selectQuery', 'selectSetQuery', 'valuesQuery', 'subquery']);

/** Names something that an expression over single events must not contain. Returns null if there is nothing. */
export function misplaced(expr: Expr): { subquery: boolean; what: string } | null {
  for (const node of nodesOf(expr)) {
    if (QUERIES.has(node.kind)) return { subquery: true, what: 'a subquery' };
    if (node.kind === 'windowFunction') return { subquery: false, what: 'a window function' };
    if (node.kind !== 'call') continue;
    const name = String(node.name);
    if (name === 'arrayJoin') return { subquery: false, what: 'arrayJoin, which turns one row into several' };
    if (UNREPEATABLE.has(name.toLowerCase())) {
      return {
        subquery: false,
        what: `${name}(): the same interval must give the same rows whenever it is exported`,
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
