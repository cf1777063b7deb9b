// What queries by columns and conditions have in common: they list expressions, and their order, as texts.
import { build, type Expr, type SelectQuery } from '../../hog/ast/index.ts';
import type { Parser } from '../../hog/parser/index.ts';
import { hasAggregate, selection } from '../../hog/sql/index.ts';
import { expressionText, selectText } from '../../hog/text/index.ts';
import type { CompiledQuery, OutputColumn, QueryJob } from '../rules/request.ts';
import { QueryError } from '../rules/request.ts';
import { asJson, shownType } from './columns.ts';
import { of } from './faults.ts';
import { DEFAULT_ROWS, MOST_ROWS, print, withLimit } from './hogql.ts';

const MOST_COLUMNS = 200;

/** A column that a list of columns may name, although it is no expression. */
export interface SpecialColumn {
  of: 'event' | 'person' | 'actor' | 'display name';
  type: string;
  /** What it is put together of. */
  parts: Readonly<Record<string, Expr>>;
}

export interface Listing {
  table: string;
  select: readonly string[];
  special: Readonly<Record<string, SpecialColumn>>;
  where: readonly Expr[];
  having: readonly Expr[];
  orderBy: readonly string[] | null | undefined;
  /** The order of those who want none. */
  defaultOrder(columns: readonly Column[]): Order[];
  limit: number | null | undefined;
  offset: number | null | undefined;
}

/** A column as it was written. Null: it is a special one. */
export interface Column {
  name: string;
  expr: Expr | null;
}

type Order = { expr: Expr; order: 'ASC' | 'DESC' };

/** The expression of a column, without the remark behind it. */
const codeOf = (text: string): string => text.replace(/\s*--[^'"`\n]*$/, '').trim();

/** Parses expressions, each named by its place in the request. */
export const parsed = (
  parser: Pick<Parser, 'expression'>,
  texts: readonly string[],
  field: string,
): Promise<Expr[]> =>
  Promise.all(texts.map((text, index) => of(`${field}__${index}`, () => parser.expression(codeOf(text)))));

/** Compiles a list of columns with conditions and an order. */
export async function compileListing(
  parser: Parser,
  job: QueryJob,
  listing: Listing,
): Promise<CompiledQuery> {
  const { table, special, where, having } = listing;
  if (listing.select.length === 0) throw new QueryError('query__select', 'Select at least one column.');
  if (listing.select.length > MOST_COLUMNS) {
    throw new QueryError('query__select', `Select ${MOST_COLUMNS} columns at most.`);
  }
  const columns = await Promise.all(
    listing.select.map(async (name, index): Promise<Column> => {
      if (Object.hasOwn(special, codeOf(name))) return { name, expr: null };
      const expr = await of(`query__select__${index}`, () => parser.expression(codeOf(name)));
      return { name, expr };
    }),
  );
  const { exprs, outputs } = laidOut(columns, special);
  const orderBy = listing.orderBy?.length
    ? await ordered(parser, listing.orderBy)
    : listing.defaultOrder(columns);
  const limit = Math.min(listing.limit || DEFAULT_ROWS, MOST_ROWS);
  const offset = listing.offset ?? 0;
  const base = selection({
    table,
    select: exprs,
    where: where.length > 0 ? build.and([...where]) : null,
    orderBy,
    offset,
  });
  const isGrouped = exprs.some(hasAggregate);
  const tree: SelectQuery = {
    ...base,
    groupBy: isGrouped
      ? exprs.filter((one) => !hasAggregate(one) && one.kind !== 'constant').map(bare)
      : null,
    having: having.length > 0 ? build.and([...having]) : null,
  };
  return of('query', () => {
    const statement = print(tree, job, { rows: limit + 1 });
    return {
      ...asJson(statement),
      columns: outputs.map(({ name, type, from }) => {
        const one = typeof from === 'number' ? statement.columns[from] : undefined;
        return { name, from, type: one ? shownType(one.type, one.typeName) : type };
      }),
      page: { limit, offset },
      hogql: selectText(withLimit(tree, limit)),
    };
  });
}

/** Lays out the columns of the statement. A special column takes several. */
function laidOut(
  columns: readonly Column[],
  special: Listing['special'],
): { exprs: Expr[]; outputs: OutputColumn[] } {
  const exprs: Expr[] = [];
  const placed = new Map<string, number>();
  const place = (expr: Expr): number => {
    const text = expressionText(expr);
    const at = placed.get(text) ?? exprs.push(expr) - 1;
    placed.set(text, at);
    return at;
  };
  const outputs = columns.map(({ name, expr }): OutputColumn => {
    if (expr) return { name, type: '', from: place(expr) };
    const { of: kind, type, parts } = special[codeOf(name)] as SpecialColumn;
    const keys = Object.fromEntries(Object.entries(parts).map(([key, part]) => [key, place(part)]));
    return { name, type, from: { of: kind, keys } };
  });
  return { exprs, outputs };
}

const bare = (expr: Expr): Expr => (expr.kind === 'alias' ? expr.expr : expr);

/** Reads an order: `-timestamp`, `timestamp DESC`, `count()`. */
export function ordered(parser: Pick<Parser, 'expression'>, texts: readonly string[]): Promise<Order[]> {
  return Promise.all(
    texts.map((text, index) =>
      of(`query__orderBy__${index}`, async (): Promise<Order> => {
        const code = codeOf(text);
        const direction = /\s+(asc|desc)$/i.exec(code)?.[1]?.toUpperCase();
        const isReversed = direction === undefined && code.startsWith('-');
        const expr = await parser.expression(
          isReversed ? code.slice(1) : code.replace(/\s+(?:asc|desc)$/i, ''),
        );
        return { expr, order: isReversed || direction === 'DESC' ? 'DESC' : 'ASC' };
      }),
    ),
  );
}
