import type { Column } from '../formats/columns.ts';
import { build, type Expr, type SelectQuery, type Span } from '../hog/ast/index.ts';
import { placeOf, SourceError } from '../hog/errors.ts';
import type { Parser } from '../hog/parser/index.ts';
import { exported, hasAggregate, type Type } from '../hog/sql/index.ts';
import type { Model } from './model.ts';
import { ModelError, type SelectionSchema } from './model-query.ts';
import { DEFAULT_MODEL, listed, MODEL_NAMES, type ModelName, modelOf } from './registry.ts';
import { misplaced } from './syntax-tree.ts';
import { withoutAlias } from './table-alias.ts';

/** A query that is the source of an export: columns of the rows of one model, and which rows. */
export interface Selection {
  model: Model;
  /** The selected expressions as they were written, with their aliases. */
  exprs: Expr[];
  names: string[];
  /** The conditions that must all hold. */
  where: Expr[];
  source: string;
  schema: SelectionSchema;
}

/** Returns an error with the place of what is wrong, if that is known. */
function refused(message: string, source: string, span?: Span | null): ModelError {
  if (!span) return new ModelError('hogql_query', message);
  const { line, column, excerpt } = placeOf(source, span.start);
  return new ModelError('hogql_query', message, `Line ${line}, column ${column}:\n${excerpt}`);
}

/**
 * Reads a query of the form `select … from model where …`. It has one row for each row of the model. `model` is the one
 * that it must name, null if it may name any.
 */
export async function readSelection(
  source: string,
  parser: Pick<Parser, 'select'>,
  wanted: ModelName | null = null,
): Promise<Selection> {
  const { query, model, alias } = await parse(source, parser, wanted);
  const exprs = columnsIn(query, model);
  const where = [query.prewhere, query.where].filter((one) => one !== null);
  for (const expr of [...exprs, ...where]) refuseMisplaced(expr, model, source);
  const names = exprs.map((expr) => nameOf(expr, source));
  for (const [index, name] of names.entries()) {
    const { span } = exprs[index] as Expr;
    if (name === '') throw refused('Invalid HogQL query: a column has no name', source, span);
    if (names.indexOf(name) === index) continue;
    throw refused(`Invalid HogQL query: two columns are called '${name}'`, source, span);
  }
  const fields = exprs.map((expr, index) => ({
    expression: textOf(expr.kind === 'alias' ? expr.expr : expr, source),
    alias: names[index] as string,
  }));
  const columns = fields.map(({ expression, alias }) =>
    alias === expression ? expression : `${expression} AS ${identifier(alias)}`,
  );
  const conditions = [
    ...(query.prewhere ? [`PREWHERE ${textOf(query.prewhere, source)}`] : []),
    ...(query.where ? [`WHERE ${textOf(query.where, source)}`] : []),
  ];
  const from = alias === null ? model.name : `${model.name} AS ${identifier(alias)}`;
  const text = [`SELECT ${columns.join(', ')} FROM ${from}`, ...conditions].join(' ');
  // The table that stands for the interval has the name of the model, and no other.
  const plain = (all: Expr[]) =>
    alias === null ? all : all.map((expr) => withoutAlias(expr, alias, model.name));
  return {
    model,
    exprs: plain(exprs),
    names,
    where: plain(where),
    source,
    schema: { fields, values: {}, hogql_query: text },
  };
}

async function parse(
  source: string,
  parser: Pick<Parser, 'select'>,
  wanted: ModelName | null,
): Promise<{ query: SelectQuery; model: Model; alias: string | null }> {
  let node: Awaited<ReturnType<Parser['select']>>;
  try {
    node = await parser.select(source);
  } catch (error) {
    if (!(error instanceof SourceError) || error.code === 'busy') throw error;
    throw new ModelError('hogql_query', 'Failed to parse query', error.message);
  }
  if (node.kind === 'selectSetQuery') throw refused('UNIONs are not supported', source, node.span);
  if (node.kind !== 'selectQuery') throw refused('Unsupported HogQL query', source, node.span);
  const nested = 'Subqueries or CTEs are not supported';
  if (node.ctes.length > 0) throw refused(nested, source, node.ctes[0]?.span ?? node.span);
  const { from } = node;
  if (!from) throw refused(`Query must SELECT FROM ${wanted ?? DEFAULT_MODEL}`, source, node.span);
  const { table } = from;
  if (table.kind === 'selectQuery' || table.kind === 'selectSetQuery') {
    throw refused(nested, source, table.span ?? from.span);
  }
  const model = table.kind === 'field' ? MODEL_NAMES.find((one) => one === table.chain.join('.')) : undefined;
  if (!model || (wanted !== null && model !== wanted)) {
    const possible = wanted ?? listed(MODEL_NAMES, 'or');
    throw refused(`Query must only SELECT FROM ${possible}`, source, table.span ?? from.span);
  }
  if (from.next) throw refused('JOINs are not supported', source, from.next.span ?? from.next.table.span);
  refuseTheRest(node, source);
  return { query: node, model: modelOf(model), alias: from.alias };
}

/**
 * Refuses all other parts of a query. PostHog's exports accept and ignore them, so users could believe that they work.
 */
function refuseTheRest(node: SelectQuery, source: string): void {
  const from = node.from as NonNullable<SelectQuery['from']>;
  const parts: [string, unknown, Span?][] = [
    ['GROUP BY', node.groupBy ?? node.groupByMode, node.groupBy?.[0]?.span],
    ['HAVING', node.having, node.having?.span],
    ['QUALIFY', node.qualify, node.qualify?.span],
    ['ORDER BY', node.orderBy, node.orderBy?.[0]?.span ?? node.orderBy?.[0]?.expr.span],
    [
      'LIMIT',
      node.limit ?? node.offset ?? node.limitBy,
      (node.limit ?? node.offset ?? node.limitBy?.n)?.span,
    ],
    ['DISTINCT', node.distinct || null, node.span],
    ['ARRAY JOIN', node.arrayJoin, node.arrayJoin?.list[0]?.span],
    ['WINDOW', node.windows.length > 0 || null, node.windows[0]?.[1].span],
    ['SAMPLE or FINAL', from.sample ?? (from.final || null), from.sample?.span ?? from.table.span],
    ['names of columns behind the table', from.columnAliases ?? from.tableArgs, from.table.span],
  ];
  for (const [name, part, span] of parts) {
    if (part === null || part === undefined) continue;
    throw unsupported(`it can only list columns and choose rows by WHERE, without ${name}`, source, span);
  }
}

const unsupported = (what: string, source: string, span?: Span | null) =>
  refused(`Unsupported HogQL query: ${what}`, source, span);

/** Refuses what does not look at a single row, and what does not give the same rows each time. */
function refuseMisplaced(expr: Expr, model: Model, source: string): void {
  const wrong = misplaced(expr);
  if (wrong?.subquery) {
    throw refused('Subqueries or CTEs are not supported', source, wrong.span ?? expr.span);
  }
  if (wrong) throw unsupported(`it contains ${wrong.what}`, source, wrong.span ?? expr.span);
  if (hasAggregate(expr)) {
    throw unsupported(
      `it contains an aggregate, but an export has one row for each ${model.row}`,
      source,
      expr.span,
    );
  }
}

/** Returns the selected expressions. `*` stands for the default columns of exports to files. */
function columnsIn(node: SelectQuery, model: Model): Expr[] {
  return node.select.flatMap((one) => {
    const star =
      (one.kind === 'columns' && one.all && one.exclude.length === 0 && one.replace.length === 0) ||
      (one.kind === 'field' && one.chain.length === 1 && one.chain[0] === '*');
    return star ? model.columns.files.map(({ name }) => build.field(name)) : [one];
  });
}

const textOf = (expr: Expr, source: string): string =>
  expr.span
    ? source.slice(expr.span.start, expr.span.end)
    : expr.kind === 'field'
      ? expr.chain.join('.')
      : expr.kind;

const nameOf = (expr: Expr, source: string): string =>
  expr.kind === 'alias' ? expr.alias : expr.kind === 'field' ? expr.chain.join('.') : textOf(expr, source);

const identifier = (name: string): string =>
  /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '``')}\``;

/** Returns how a selected expression is exported: the column, and a cast to put around its name in SQL. */
export function columnOf(
  model: Model,
  expr: Expr,
  name: string,
  type: Type,
): { column: Column; cast: (name: string) => string } {
  const bare = expr.kind === 'alias' ? expr.expr : expr;
  const field =
    bare.kind === 'field' ? bare.chain.filter((part, index) => index > 0 || part !== model.name) : [];
  const known = model.columns.files.find((one) => field.length === 1 && one.name === field[0]);
  const nullable = known?.nullable ?? true;
  if (known?.type === 'int32' && type === 'int') {
    return { column: { name, type: 'int32', nullable }, cast: (column) => `${column}::integer` };
  }
  const asIs = field.length === 1 && model.storedTexts.includes(field[0] as string);
  const [columnType, cast] = exported(type);
  return {
    column: { name, type: columnType, nullable },
    cast: asIs && type === 'json' ? (column) => column : cast,
  };
}
