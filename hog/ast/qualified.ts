import type { Expr } from './expressions.ts';
import { isNode } from './nodes.ts';

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
