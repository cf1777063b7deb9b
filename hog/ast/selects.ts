import type { Expr, Placeholder, Spanned } from './expressions.ts';
import type { OrderExpr, WindowExpr } from './query-expressions.ts';

/**
 * A single `select`. The parser accepts `nulls last` and `lateral` but leaves them out of its tree, so no back end sees
 * them. `nulls last` is the default anyway. The parser also leaves out `nulls first`, `with totals` and the postfix
 * forms `with rollup` and `with cube`; parser/unreported.ts refuses these.
 */
export interface SelectQuery extends Spanned {
  kind: 'selectQuery';
  ctes: Cte[];
  distinct: boolean;
  select: Expr[];
  from: Join | null;
  arrayJoin: ArrayJoin | null;
  prewhere: Expr | null;
  where: Expr | null;
  groupBy: (Expr | GroupingSet)[] | null;
  groupByMode: 'all' | 'rollup' | 'cube' | 'grouping_sets' | null;
  having: Expr | null;
  qualify: Expr | null;
  windows: [string, WindowExpr][];
  orderBy: OrderExpr[] | null;
  limit: Expr | null;
  limitWithTies: boolean;
  limitPercent: boolean;
  offset: Expr | null;
  limitBy: LimitBy | null;
}

export interface SelectSetQuery extends Spanned {
  kind: 'selectSetQuery';
  first: SelectNode | Placeholder;
  rest: { operator: SetOperator; query: SelectNode | Placeholder }[];
  ctes: Cte[];
  orderBy: OrderExpr[] | null;
  limit: Expr | null;
  offset: Expr | null;
}

export const SET_OPERATORS = [
  'UNION ALL',
  'UNION DISTINCT',
  'INTERSECT',
  'INTERSECT ALL',
  'INTERSECT DISTINCT',
  'EXCEPT',
  'EXCEPT ALL',
  'EXCEPT DISTINCT',
  'UNION ALL BY NAME',
  'UNION DISTINCT BY NAME',
] as const;
export type SetOperator = (typeof SET_OPERATORS)[number];

export interface ValuesQuery extends Spanned {
  kind: 'valuesQuery';
  rows: Expr[][];
}

export interface Cte extends Spanned {
  kind: 'cte';
  name: string;
  /** `subquery` for `x as (select …)`, `column` for ClickHouse's `expr as x`. */
  cteType: 'subquery' | 'column';
  expr: Expr;
  columns: string[] | null;
  materialized: boolean | null;
  recursive: boolean;
  usingKey: string[] | null;
}

/** A table of a `from` clause. `next` links to the table that is joined to it. */
export interface Join extends Spanned {
  kind: 'join';
  /** `LEFT JOIN`, `CROSS JOIN` and so on. Null for the first table. */
  joinType: string | null;
  table: Expr | Pivot | Unpivot;
  tableArgs: Expr[] | null;
  alias: string | null;
  columnAliases: string[] | null;
  final: boolean;
  sample: Sample | null;
  constraint: JoinConstraint | null;
  next: Join | null;
}

export interface JoinConstraint extends Spanned {
  kind: 'joinConstraint';
  constraintType: 'ON' | 'USING';
  expr: Expr;
}

export interface ArrayJoin {
  operator: 'ARRAY JOIN' | 'LEFT ARRAY JOIN' | 'INNER ARRAY JOIN';
  list: Expr[];
}

export interface Sample extends Spanned {
  kind: 'sample';
  value: Ratio;
  offset: Ratio | null;
}

export interface Ratio extends Spanned {
  kind: 'ratio';
  left: Expr;
  right: Expr | null;
}

export interface LimitBy extends Spanned {
  kind: 'limitBy';
  n: Expr;
  offset: Expr | null;
  exprs: Expr[];
}

export interface GroupingSet extends Spanned {
  kind: 'groupingSet';
  exprs: Expr[];
}

export interface Pivot extends Spanned {
  kind: 'pivot';
  table: Expr | Pivot | Unpivot;
  aggregates: Expr[];
  columns: { column: Expr; values: Expr[] }[];
  groupBy: Expr[] | null;
}

export interface Unpivot extends Spanned {
  kind: 'unpivot';
  table: Expr | Pivot | Unpivot;
  columns: { valueColumns: Expr; nameColumns: Expr; values: Expr[] }[];
  includeNulls: boolean;
}

export type SelectNode = SelectQuery | SelectSetQuery | ValuesQuery;
