import { type Expr, isNode } from '../hog/ast/index.ts';

/**
 * Returns an expression with the name of a table in place of its alias: `events.event` for `e.event`. A parameter of a
 * lambda that has the same name stays. So do the places in the text.
 */
export const withoutAlias = (expr: Expr, alias: string, table: string): Expr =>
  renamed(expr, alias, table) as Expr;

function renamed(value: unknown, alias: string, table: string): unknown {
  if (Array.isArray(value)) return value.map((one) => renamed(one, alias, table));
  if (typeof value !== 'object' || value === null) return value;
  if (isNode(value)) {
    if (value.kind === 'field') {
      const [first, ...rest] = value.chain as string[];
      return first === alias && rest.length > 0 ? { ...value, chain: [table, ...rest] } : value;
    }
    if (value.kind === 'lambda' && (value.params as string[]).includes(alias)) return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, key === 'span' ? one : renamed(one, alias, table)]),
  );
}
