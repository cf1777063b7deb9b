import type { Expr } from '../ast/index.ts';

/**
 * Turns `case x when 1 then …` into a chain of comparisons. The parser returns it as a call of `_caseWithExpression`,
 * which no back end implements.
 */
export function lowered(name: string, args: Expr[]): { name: string; args: Expr[] } {
  if (name !== '_caseWithExpression' || args.length < 4 || args.length % 2 !== 0) return { name, args };
  const [value, ...rest] = args as [Expr, ...Expr[]];
  const branches = rest.map(
    (one, at): Expr =>
      at % 2 === 1 || at === rest.length - 1
        ? one
        : Object.freeze<Expr>({ kind: 'compare', op: '==', left: value, right: one, span: one.span }),
  );
  return { name: 'multiIf', args: Object.freeze(branches) as Expr[] };
}
