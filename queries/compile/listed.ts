// What queries by columns and conditions have in common: they list expressions, and their order, as texts.
import { build, type Expr, type SelectQuery } from '../../hog/ast/index.ts';
import { SourceError } from '../../hog/errors.ts';
import type { Parser } from '../../hog/parser/index.ts';
import { hasAggregate, selection } from '../../hog/sql/index.ts';
import { expressionText, selectText } from '../../hog/text/index.ts';
import type { OutputColumn, QueryJob } from '../rules/request.ts';
import { QueryError } from '../rules/request.ts';
import { type Selected, shownType } from './columns.ts';
import { of } from './faults.ts';
import { DEFAULT_ROWS, MOST_ROWS, print, withLimit } from './hogql.ts';

const MOST_COLUMNS = 200;

/** A column that a list of columns may name, although it is no expression. */
export interface SpecialColumn {
  of: 'event' | 'person' | 'actor' | 'display name';
  type: string;
  /** What it is put together of. */
  parts: Readonly<Record<string, Expr>>;
  /** The part by which rows are put in order. Without it, a list has no order by this column. */
  order?: string;
}

export interface Listing {
  table: string;
  select: readonly string[];
  special: Readonly<Record<string, SpecialColumn>>;
  /** Conditions that the query was given in another way than as texts. */
  where: readonly Expr[];
  /** Conditions as they were written. Those with aggregates apply to groups. */
  tests: readonly Written[];
  orderBy: readonly string[] | null | undefined;
  /** The order of those who want none. */
  defaultOrder(columns: readonly Column[]): Order[];
  /** The field that no two rows share. It ends the order, so that each page begins where another one ends. */
  unique: string;
  /** Whether the reader of a page continues behind its last row. */
  isPaged: boolean;
  limit: number | null | undefined;
  offset: number | null | undefined;
}

/** A column. Without what was written, it is a special one. */
export interface Column {
  name: string;
  written: Written | null;
}

type Order = { expr: Expr; order: 'ASC' | 'DESC' };

/** The expression of a column, without the remark behind it. */
const codeOf = (text: string): string => text.replace(/\s*--[^'"`\n]*$/, '').trim();

/** An expression as it was written, and its place in the request. */
export interface Written {
  field: string;
  text: string;
  expr: Expr;
}

async function writtenAt(parser: Pick<Parser, 'expression'>, field: string, text: string): Promise<Written> {
  return { field, text, expr: await of(field, () => parser.expression(text)) };
}

/** Parses expressions of a list. */
export const parsed = (
  parser: Pick<Parser, 'expression'>,
  texts: readonly string[],
  field: string,
): Promise<Written[]> =>
  Promise.all(texts.map((text, index) => writtenAt(parser, `${field}__${index}`, codeOf(text))));

/** Compiles a list of columns with conditions and an order. */
export async function compileListing(parser: Parser, job: QueryJob, listing: Listing): Promise<Selected> {
  const { table, special, tests } = listing;
  if (listing.select.length === 0) throw new QueryError('query__select', 'Select at least one column.');
  if (listing.select.length > MOST_COLUMNS) {
    throw new QueryError('query__select', `Select ${MOST_COLUMNS} columns at most.`);
  }
  const columns = await Promise.all(
    listing.select.map(async (name, index): Promise<Column> => {
      if (Object.hasOwn(special, codeOf(name))) return { name, written: null };
      return { name, written: await writtenAt(parser, `query__select__${index}`, codeOf(name)) };
    }),
  );
  const { exprs, outputs, place: placeOf } = laidOut(columns, special);
  const isGrouped = exprs.some(hasAggregate);
  const groups = exprs.filter((one) => !hasAggregate(one) && one.kind !== 'constant').map(bare);
  const order = await ordered(parser, listing.orderBy ?? [], special);
  const wanted = order.length > 0 ? order : listing.defaultOrder(columns);
  const orderBy = completed(wanted, isGrouped ? groups : [build.field(listing.unique)]);
  const place =
    listing.isPaged && !isGrouped && isByTime(orderBy)
      ? { timestamp: placeOf(TIMESTAMP), uuid: placeOf(UUID) }
      : null;
  const [grouped, single] = [tests.filter(isOfGroups), tests.filter((one) => !isOfGroups(one))];
  const where = [...listing.where, ...single.map((one) => one.expr)];
  const isFile = job.form !== 'answer';
  const limit = isFile ? listing.limit || null : Math.min(listing.limit || DEFAULT_ROWS, MOST_ROWS);
  const offset = listing.offset ?? 0;
  const base = selection({
    table,
    select: exprs,
    where: where.length > 0 ? build.and(where) : null,
    orderBy,
    offset,
    limit: isFile ? limit : null,
  });
  const tree: SelectQuery = {
    ...base,
    groupBy: isGrouped ? groups : null,
    having: grouped.length > 0 ? build.and(grouped.map((one) => one.expr)) : null,
  };
  const written = [
    ...columns.flatMap((one) => one.written ?? []),
    ...tests,
    ...order.map((one) => one.written),
  ];
  return of('query', async () => {
    const statement = await blaming(written, table, job, () => print(tree, job, { rows: (limit ?? 0) + 1 }));
    return {
      statement,
      columns: outputs.map(({ name, type, from }) => {
        const one = typeof from === 'number' ? statement.columns[from] : undefined;
        return { name, from, type: one ? shownType(one.type, one.typeName) : type };
      }),
      page: isFile || limit === null ? null : { limit, offset },
      place,
      hogql: selectText(limit === null ? tree : withLimit(tree, limit)),
    };
  });
}

const [TIMESTAMP, UUID] = [build.field('timestamp'), build.field('uuid')];

/** Adds to an order what it leaves open. */
function completed(order: readonly Order[], rest: readonly Expr[]): Order[] {
  const known = new Set(order.map((one) => expressionText(bare(one.expr))));
  const open = rest.filter((one) => !known.has(expressionText(one)));
  const last = order.at(-1)?.order ?? 'ASC';
  return [...order, ...open.map((expr): Order => ({ expr, order: last }))];
}

/** Returns whether an order is that of time alone. */
function isByTime(order: readonly Order[]): boolean {
  const [first, second] = order;
  if (order.length !== 2 || first?.order !== second?.order) return false;
  const fields = [TIMESTAMP, UUID].map((one) => expressionText(one)).join();
  return order.map((one) => expressionText(one.expr)).join() === fields;
}

const isOfGroups = ({ expr }: Written): boolean => hasAggregate(expr);

/** Does a part of the work. If it fails, finds out which of the written expressions is wrong, and where. */
export async function blaming<T>(
  written: readonly Written[],
  table: string,
  job: QueryJob,
  work: () => T,
): Promise<T> {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    for (const { field, text, expr } of written) {
      await of(field, () => print(selection({ table, select: [expr] }), job, { source: text, rows: 1 }));
    }
    throw error;
  }
}

/** Lays out the columns of the statement. A special column takes several. */
function laidOut(
  columns: readonly Column[],
  special: Listing['special'],
): { exprs: Expr[]; outputs: OutputColumn[]; place(expr: Expr): number } {
  const exprs: Expr[] = [];
  const placed = new Map<string, number>();
  const place = (expr: Expr): number => {
    const text = expressionText(expr);
    const at = placed.get(text) ?? exprs.push(expr) - 1;
    placed.set(text, at);
    return at;
  };
  const outputs = columns.map(({ name, written }): OutputColumn => {
    if (written) return { name, type: '', from: place(written.expr) };
    const { of: kind, type, parts } = special[codeOf(name)] as SpecialColumn;
    const keys = Object.fromEntries(Object.entries(parts).map(([key, part]) => [key, place(part)]));
    return { name, type, from: { of: kind, keys } };
  });
  return { exprs, outputs, place };
}

/** An expression without the name that it is given. */
export const bare = (expr: Expr): Expr => (expr.kind === 'alias' ? expr.expr : expr);

const DIRECTION = /\s+(asc|desc)\s*$/i;

/** Finds the direction of an order, before a remark or behind it: `timestamp DESC -- Time`, `timestamp -- Time DESC`. */
function directed(text: string): { code: string; direction: string | undefined } {
  const last = DIRECTION.exec(text)?.[1];
  const code = codeOf(text.replace(DIRECTION, ''));
  const direction = last ?? DIRECTION.exec(code)?.[1];
  return { code: code.replace(DIRECTION, ''), direction: direction?.toUpperCase() };
}

/** Reads an order: `-timestamp`, `timestamp DESC`, `count()`, `person_display_name`. */
function ordered(
  parser: Pick<Parser, 'expression'>,
  texts: readonly string[],
  special: Listing['special'],
): Promise<(Order & { written: Written })[]> {
  return Promise.all(
    texts.map(async (text, index) => {
      const { code, direction } = directed(text);
      const isReversed = direction === undefined && code.startsWith('-');
      const plain = isReversed ? code.slice(1) : code;
      const place = `query__orderBy__${index}`;
      const named = Object.hasOwn(special, plain) ? special[plain] : undefined;
      const part = named?.order === undefined ? undefined : named.parts[named.order];
      const written = part
        ? { field: place, text: expressionText(part), expr: part }
        : await writtenAt(parser, place, plain);
      return { written, expr: written.expr, order: isReversed || direction === 'DESC' ? 'DESC' : 'ASC' };
    }),
  );
}
