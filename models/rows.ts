import { inlineValues } from '../db/inline-values.ts';
import type { Column } from '../formats/columns.ts';
import { build, type Expr } from '../hog/ast/index.ts';
import { SourceError } from '../hog/errors.ts';
import type { Parser } from '../hog/parser/index.ts';
import { printStatement, QUERY_LIMITS, selection, type Type } from '../hog/sql/index.ts';
import type { OpenInterval } from '../intervals/index.ts';
import { eventNames, filterCondition, sourceFault } from './filters.ts';
import type { ColumnSet, Model } from './model.ts';
import { ModelError, type ModelQuery, queryOfModel } from './model-query.ts';
import type { ModelName } from './registry.ts';
import { columnOf, type Selection } from './selection.ts';
import { cohortsIn } from './syntax-tree.ts';

export interface RowOptions {
  projectId: number;
  interval: OpenInterval;
  columnSet: ColumnSet;
  /** The time zone of dates in filters and columns. */
  timezone: string;
  /** Names of events; an empty list is no limit. Only events have names. */
  includeEvents?: readonly string[];
  excludeEvents?: readonly string[];
  /** The filters as the client sent them. */
  filters?: unknown;
}

/** Room for the members of cohorts: Postgres looks them up in a hash table if it has room for all of them. */
const FOR_COHORTS = { work_mem: '64MB' };

interface Chosen {
  exprs: Expr[];
  columns: (types: readonly Type[]) => { column: Column; cast: (name: string) => string }[];
}

/**
 * Selects the rows of a project that belong to an interval of a model: with the default columns, or with the columns of
 * a query and those of the rows that pass its WHERE.
 */
export async function rowsQuery(
  parser: Parser,
  model: Model,
  options: RowOptions,
  selected: Selection | null,
): Promise<ModelQuery> {
  const { projectId, interval, timezone } = options;
  const source = model.source(interval);
  const chosen = selected ? selectedColumns(model, selected) : defaultColumns(model, options.columnSet);
  const condition = await filterCondition(options.filters ?? null, model, parser, {
    now: interval.end,
    timezone,
  });
  const { includeEvents = [], excludeEvents = [] } = model.isOfEvents ? options : {};
  // Event names come from a list of any length and not from a query, so they do not count towards its size.
  const maxNodes = QUERY_LIMITS.maxNodes + includeEvents.length + excludeEvents.length;
  const print = (select: Expr[], all: Expr[]) =>
    printStatement(selection({ table: model.name, select, where: all.length > 0 ? build.and(all) : null }), {
      schema: source.schema,
      projectId,
      timezone,
      limits: { defaultRows: null, maxRows: null, maxNodes },
    });
  const asked = selected?.where ?? [];
  // Each part is compiled alone first, so that a fault in it is reported for its field and with its place.
  if (condition) faultsOf(sourceFault, () => print([build.field('uuid')], [condition]));
  const fault = (error: SourceError) => queryFault(error, selected?.source);
  if (selected) faultsOf(fault, () => print(chosen.exprs, asked));
  const where = [...source.where, ...eventNames(model, includeEvents, excludeEvents), ...asked];
  const statement = faultsOf(
    (error) => queryFault(error),
    () => print(chosen.exprs, condition ? [...where, condition] : where),
  );
  const columns = chosen.columns(statement.columns.map((one) => one.type));
  const names = columns.map((_, index) => `f${index + 1}`);
  const casts = columns.map(({ cast }, index) => cast(`x.${names[index]}`));
  const select = `select ${casts.join(', ')} from (${inlineValues(statement)}) as x (${names.join(', ')})`;
  const cohorts = [
    ...cohortsIn(condition ? [condition] : []).map((id) => ({ id, field: 'filters' as const })),
    ...cohortsIn([...chosen.exprs, ...asked]).map((id) => ({ id, field: 'hogql_query' as const })),
  ];
  return {
    ...queryOfModel({
      ...{ projectId, model: model.name as ModelName, select, columns: columns.map((one) => one.column) },
      settings: { ...source.settings, ...(cohorts.length > 0 && FOR_COHORTS) },
    }),
    ...(cohorts.length > 0 && { cohorts }),
    ...(selected && { schema: selected.schema }),
  };
}

function defaultColumns(model: Model, columnSet: ColumnSet): Chosen {
  const columns = model.columns[columnSet] ?? [];
  const cast = ({ name, type }: Column) => {
    // HogQL gives some columns no type: a plain NULL.
    const isConverted = type === 'string' || (type === 'json' && !model.storedTexts.includes(name));
    return (value: string) => (isConverted ? `${value}::text` : value);
  };
  return {
    exprs: columns.map((one) => one.expr),
    columns: () => columns.map(({ expr: _, ...column }) => ({ column, cast: cast(column) })),
  };
}

const selectedColumns = (model: Model, { exprs, names }: Selection): Chosen => ({
  exprs,
  columns: (types) => exprs.map((expr, index) => columnOf(model, expr, names[index]!, types[index]!)),
});

function faultsOf<T>(translated: (error: SourceError) => Error, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof SourceError ? translated(error) : error;
  }
}

/** Turns an error in a query into a ModelError. Without a source, the place of the error is not known. */
function queryFault(error: SourceError, source?: string): ModelError {
  const { reason, excerpt, line, column } = source === undefined ? error : error.in(source);
  return new ModelError(
    'hogql_query',
    `Invalid HogQL query: ${reason}`,
    excerpt === null ? null : `Line ${line}, column ${column}:\n${excerpt}`,
  );
}
