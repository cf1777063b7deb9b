// Prints HogQL as parameterised SQL for Postgres. Source text never becomes SQL text: names come from the schema,
// values are parameters, and every table is read with the project's condition.
import { build, type Expr, type OrderExpr, type SelectNode, type SelectQuery } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import type { Visitor } from './dispatch.ts';
import { fault } from './errors.ts';
import { printCondition, printExpr } from './expression.ts';
import { Printer, type PrintOptions } from './printer.ts';
import { printSelect } from './select.ts';
import type { ParameterValue } from './sql.ts';
import { type Type, typeName } from './types.ts';

export { hasAggregate } from './aggregation.ts';
export { exported, type FileType } from './exported.ts';
export { AGGREGATES } from './functions/aggregates.ts';
export { BOUNDED, UNBOUNDED } from './functions/growth.ts';
export { FUNCTION_KINDS, FUNCTIONS } from './functions/index.ts';
export { WINDOW_FUNCTIONS } from './functions/windows.ts';
export { type PrintOptions, QUERY_LIMITS, type QueryLimits } from './printer.ts';
export { createSchema, type PersonMode, type Rows, type Schema, type Table } from './schema.ts';
export { SIZE_LIMITS } from './sizes.ts';
export { type Parameters, type Sql, sql } from './sql.ts';
export { isArray, isDateTime, isTuple, isZoned, type Type } from './types.ts';
export { WORK_LIMITS } from './work.ts';

export interface Statement {
  text: string;
  values: ParameterValue[];
  columns: { name: string; type: Type; typeName: string }[];
}

const VISITOR: Visitor = { expr: printExpr, condition: printCondition, select: printSelect };

/** Prints a query as an SQL statement. */
export function printStatement(node: SelectNode, options: PrintOptions): Statement {
  try {
    const printer = new Printer(options, VISITOR);
    const printed = printSelect(printer, node, null, true);
    printer.sizes.settle(printed.sql);
    printer.reads.settle(printed.sql);
    return {
      ...printer.parameters.finish(printed.sql),
      columns: printed.columns.map(({ name, type }) => ({ name, type, typeName: typeName(type) })),
    };
  } catch (error) {
    if (error instanceof SourceError && options.source !== undefined) throw error.in(options.source);
    if (error instanceof RangeError) throw fault('The query is nested too deep');
    throw error;
  }
}

export interface Selection {
  /** The name of a table in the schema. */
  table: string;
  select: Expr[];
  where?: Expr | null;
  orderBy?: { expr: Expr; order: 'ASC' | 'DESC' }[];
  limit?: number | null;
  offset?: number | null;
}

/**
 * Builds a query from expressions, such as the `select` and `where` of the events API, or the columns and filters of an
 * export.
 */
export function selection(parts: Selection): SelectQuery {
  const orderBy = (parts.orderBy ?? []).map(
    (one): OrderExpr => ({ kind: 'orderExpr', withFill: null, ...one }),
  );
  return {
    kind: 'selectQuery',
    ctes: [],
    distinct: false,
    select: parts.select,
    from: {
      kind: 'join',
      joinType: null,
      table: build.field(parts.table),
      tableArgs: null,
      alias: null,
      columnAliases: null,
      final: false,
      sample: null,
      constraint: null,
      next: null,
    },
    arrayJoin: null,
    prewhere: null,
    where: parts.where ?? null,
    groupBy: null,
    groupByMode: null,
    having: null,
    qualify: null,
    windows: [],
    orderBy: orderBy.length > 0 ? orderBy : null,
    limit: parts.limit === undefined || parts.limit === null ? null : build.integer(parts.limit),
    limitWithTies: false,
    limitPercent: false,
    offset: parts.offset ? build.integer(parts.offset) : null,
    limitBy: null,
  };
}
