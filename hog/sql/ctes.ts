import type { Cte } from '../ast/index.ts';
import { unsupported } from './errors.ts';
import type { Scope } from './scope.ts';

/** What WITH defines, for the query it stands in and those inside of it. */
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
