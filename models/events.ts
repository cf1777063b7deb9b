import { inlineValues } from '../db/inline-values.ts';
import { timestamptzText } from '../db/timestamptz.ts';
import type { Column } from '../formats/columns.ts';
import { build, type Expr } from '../hog/ast/index.ts';
import { SourceError } from '../hog/errors.ts';
import type { Parser } from '../hog/parser/index.ts';
import { printStatement, QUERY_LIMITS, selection } from '../hog/sql/index.ts';
import type { OpenInterval } from '../intervals/index.ts';
import { columnOf, readSelection } from './column-selection.ts';
import { EVENT_COLUMNS } from './event-columns.ts';
import { EVENT_SCHEMA } from './event-schema.ts';
import { eventNames, filterCondition, sourceFault } from './filters.ts';
import {
  type ColumnSet,
  ModelError,
  type ModelQuery,
  queryOfModel,
  type SelectionSchema,
} from './model-query.ts';
import { cohortsIn } from './syntax-tree.ts';

export interface EventOptions {
  projectId: number;
  interval: OpenInterval;
  columnSet: ColumnSet;
  /** The time zone of dates in filters and columns. */
  timezone: string;
  /** Names of events; an empty list is no limit. */
  includeEvents?: readonly string[];
  excludeEvents?: readonly string[];
  /** The filters as the client sent them. */
  filters?: unknown;
  /** A query that selects other columns than the default ones. */
  hogqlQuery?: string | null;
}

/**
 * Rows come in the order in which they were stored: partition by partition, block by block, read by one process from
 * the beginning. These settings leave the planner only scans that keep this order, and each of them gives the same
 * rows. So two reads of an interval give the same rows in the same order, unless a partition is rewritten in between
 * (`vacuum full`, a restore, rows moved out of the default partition).
 */
const IN_ORDER = {
  enable_indexscan: 'off',
  enable_indexonlyscan: 'off',
  max_parallel_workers_per_gather: '0',
  synchronize_seqscans: 'off',
};

/** Room for the members of cohorts: Postgres looks them up in a hash table if it has room for all of them. */
const WITH_COHORTS = { ...IN_ORDER, work_mem: '64MB' };

interface Chosen {
  exprs: Expr[];
  schema?: SelectionSchema;
  columns: (
    types: readonly Parameters<typeof columnOf>[2][],
  ) => { column: Column; cast: (name: string) => string }[];
}

/** Selects the events of a project that were stored within an interval. */
export async function eventsQuery(parser: Parser, options: EventOptions): Promise<ModelQuery> {
  const { projectId, interval, timezone } = options;
  const chosen = await chosenColumns(parser, options);
  const condition = await filterCondition(options.filters ?? null, parser, { now: interval.end, timezone });
  const { includeEvents = [], excludeEvents = [] } = options;
  const where: Expr[] = [...bounds(interval), ...eventNames(includeEvents, excludeEvents)];
  // Event names come from a list of any length and not from a query, so they do not count towards its size.
  const maxNodes = QUERY_LIMITS.maxNodes + includeEvents.length + excludeEvents.length;
  const print = (select: Expr[], all: Expr[]) =>
    printStatement(selection({ table: 'events', select, where: build.and(all) }), {
      schema: EVENT_SCHEMA,
      projectId,
      timezone,
      limits: { defaultRows: null, maxRows: null, maxNodes },
    });
  // The condition is compiled alone first, so that a fault in it is reported for the filters and not for the columns.
  if (condition) faultsOf('filters', () => print([build.field('uuid')], [condition]));
  const statement = faultsOf('hogql_query', () =>
    print(chosen.exprs, condition ? [...where, condition] : where),
  );
  const columns = chosen.columns(statement.columns.map((one) => one.type));
  const names = columns.map((_, index) => `f${index + 1}`);
  const casts = columns.map(({ cast }, index) => cast(`x.${names[index]}`));
  const select = `select ${casts.join(', ')} from (${inlineValues(statement)}) as x (${names.join(', ')})`;
  const cohorts = [
    ...cohortsIn(condition ? [condition] : []).map((id) => ({ id, field: 'filters' as const })),
    ...cohortsIn(chosen.exprs).map((id) => ({ id, field: 'hogql_query' as const })),
  ];
  return {
    ...queryOfModel({
      ...{ projectId, select, columns: columns.map((one) => one.column) },
      settings: cohorts.length > 0 ? WITH_COHORTS : IN_ORDER,
    }),
    ...(cohorts.length > 0 && { cohorts }),
    ...(chosen.schema && { schema: chosen.schema }),
  };
}

async function chosenColumns(parser: Parser, { columnSet, hogqlQuery }: EventOptions): Promise<Chosen> {
  if (hogqlQuery === null || hogqlQuery === undefined) {
    const columns = EVENT_COLUMNS[columnSet];
    return {
      exprs: columns.map((one) => one.expr),
      columns: () =>
        columns.map(({ expr: _, ...column }) => ({
          column,
          // HogQL gives some columns no type: a plain NULL.
          cast: (name) => (column.type === 'string' ? `${name}::text` : name),
        })),
    };
  }
  if (columnSet === 'http') {
    throw new ModelError(
      'hogql_query',
      "HTTP batch exports send events as they are: 'hogql_query' is not supported",
    );
  }
  const { exprs, names, schema } = await readSelection(hogqlQuery, parser);
  return {
    exprs,
    schema,
    columns: (types) => exprs.map((expr, index) => columnOf(expr, names[index] as string, types[index]!)),
  };
}

/**
 * Builds the conditions for the interval. The table stands before the field, so that no alias of a selected column can
 * replace it.
 */
function bounds({ start, end }: OpenInterval): Expr[] {
  const insertedAt = build.field('events', 'inserted_at');
  const at = (instant: number) => build.constant(timestamptzText(instant));
  return [
    ...(start === null ? [] : [build.compare('>=', insertedAt, at(start))]),
    build.compare('<', insertedAt, at(end)),
  ];
}

function faultsOf<T>(field: 'filters' | 'hogql_query', work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw field === 'filters'
      ? sourceFault(error)
      : new ModelError(field, `Invalid HogQL query: ${error.reason}`, error.excerpt);
  }
}
