import type { Column } from '../formats/columns.ts';
import { build, type Expr, type SelectQuery } from '../hog/ast/index.ts';
import { SourceError } from '../hog/errors.ts';
import type { Parser } from '../hog/parser/index.ts';
import { exported, hasAggregate, type Type } from '../hog/sql/index.ts';
import { EVENT_COLUMNS } from './event-columns.ts';
import { ModelError, type SelectionSchema } from './model-query.ts';
import { misplaced } from './syntax-tree.ts';

export interface ColumnSelection {
  /** The selected expressions as they were written, with their aliases. */
  exprs: Expr[];
  names: string[];
  source: string;
  schema: SelectionSchema;
}

const refused = (message: string, detail: string | null = null) =>
  new ModelError('hogql_query', message, detail);
const unsupported = (what: string) => refused(`Unsupported HogQL query: ${what}`);

/** Reads a query of the form `select … from events`. It may contain nothing but a list of columns. */
export async function readSelection(
  source: string,
  parser: Pick<Parser, 'select'>,
): Promise<ColumnSelection> {
  const query = await parse(source, parser);
  const exprs = columnsOf(query);
  const names = exprs.map((expr) => nameOf(expr, source));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (names.includes('')) throw refused('Invalid HogQL query: a column has no name');
  if (twice !== undefined) throw refused(`Invalid HogQL query: two columns are called '${twice}'`);
  for (const expr of exprs) {
    const wrong = misplaced(expr);
    if (wrong)
      throw wrong.subquery
        ? refused('Subqueries or CTEs are not supported')
        : unsupported(`it contains ${wrong.what}`);
    if (hasAggregate(expr))
      throw unsupported('it contains an aggregate, but an export has one row for each event');
  }
  const fields = exprs.map((expr, index) => ({
    expression: textOf(expr.kind === 'alias' ? expr.expr : expr, source),
    alias: names[index] as string,
  }));
  const columns = fields.map(({ expression, alias }) =>
    alias === expression ? expression : `${expression} AS ${identifier(alias)}`,
  );
  return {
    exprs,
    names,
    source,
    schema: { fields, values: {}, hogql_query: `SELECT ${columns.join(', ')} FROM events` },
  };
}

async function parse(source: string, parser: Pick<Parser, 'select'>): Promise<SelectQuery> {
  let node: Awaited<ReturnType<Parser['select']>>;
  try {
    node = await parser.select(source);
  } catch (error) {
    if (!(error instanceof SourceError) || error.code === 'busy') throw error;
    throw refused('Failed to parse query', error.message);
  }
  if (node.kind === 'selectSetQuery') throw refused('UNIONs are not supported');
  if (node.kind !== 'selectQuery') throw refused('Unsupported HogQL query');
  if (node.ctes.length > 0) throw refused('Subqueries or CTEs are not supported');
  const { from } = node;
  if (!from) throw refused('Query must SELECT FROM events');
  if (from.table.kind === 'selectQuery' || from.table.kind === 'selectSetQuery') {
    throw refused('Subqueries or CTEs are not supported');
  }
  if (from.table.kind !== 'field' || from.table.chain.join('.') !== 'events') {
    throw refused('Query must only SELECT FROM events');
  }
  if (from.next) throw refused('JOINs are not supported');
  refuseTheRest(node);
  return node;
}

/**
 * Refuses all other parts of a query. PostHog's exports accept and ignore them, so users could believe that they work.
 */
function refuseTheRest(node: SelectQuery): void {
  const { from } = node;
  const parts: [string, unknown][] = [
    ['WHERE', node.where ?? node.prewhere],
    ['GROUP BY', node.groupBy ?? node.groupByMode],
    ['HAVING', node.having],
    ['QUALIFY', node.qualify],
    ['ORDER BY', node.orderBy],
    ['LIMIT', node.limit ?? node.offset ?? node.limitBy],
    ['DISTINCT', node.distinct || null],
    ['ARRAY JOIN', node.arrayJoin],
    ['WINDOW', node.windows.length > 0 || null],
    ['SAMPLE or FINAL', from?.sample ?? (from?.final || null)],
    ['an alias of the table', from?.alias ?? from?.columnAliases ?? from?.tableArgs],
  ];
  for (const [name, part] of parts) {
    if (part === null || part === undefined) continue;
    throw unsupported(`it can only list columns, without ${name}; use 'filters' to choose events`);
  }
}

/** Returns the selected expressions. `*` stands for the default columns of exports to files. */
function columnsOf(node: SelectQuery): Expr[] {
  return node.select.flatMap((one) => {
    const star =
      (one.kind === 'columns' && one.all && one.exclude.length === 0 && one.replace.length === 0) ||
      (one.kind === 'field' && one.chain.length === 1 && one.chain[0] === '*');
    return star ? EVENT_COLUMNS.files.map(({ name }) => build.field(name)) : [one];
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

/** Fields that are stored as JSON text, so they need no conversion. */
const JSON_FIELDS = new Set(['properties', 'person_properties', 'set', 'set_once']);

/** Returns how a selected expression is exported: the column, and a cast to put around its name in SQL. */
export function columnOf(
  expr: Expr,
  name: string,
  type: Type,
): { column: Column; cast: (name: string) => string } {
  const bare = expr.kind === 'alias' ? expr.expr : expr;
  const field =
    bare.kind === 'field' ? bare.chain.filter((part, index) => index > 0 || part !== 'events') : [];
  const known = EVENT_COLUMNS.files.find((one) => field.length === 1 && one.name === field[0]);
  const asIs = field.length === 1 && JSON_FIELDS.has(field[0] as string);
  const [columnType, cast] = exported(type);
  return {
    column: { name, type: columnType, nullable: known ? known.nullable : true },
    cast: asIs && type === 'json' ? (column) => column : cast,
  };
}
