import type { Cte } from '../ast/index.ts';
import { unsupported } from './errors.ts';
import type { Scope } from './scope.ts';

/** Adds the definitions of a WITH clause to the scope of a query. Its subqueries see them too. */
export function defineCtes(scope: Scope, ctes: readonly Cte[]): void {
  for (const cte of ctes) {
    if (cte.recursive) throw unsupported('WITH RECURSIVE', cte.span);
    if (cte.columns || cte.usingKey) throw unsupported('A WITH that names columns', cte.span);
    const { expr } = cte;
    const query = expr.kind === 'selectQuery' || expr.kind === 'selectSetQuery' ? expr : null;
    scope.ctes.set(
      cte.name,
      cte.cteType === 'subquery' && query ? { kind: 'subquery', query } : { kind: 'column', expr },
    );
  }
}
