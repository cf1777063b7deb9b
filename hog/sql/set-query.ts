import { SET_OPERATORS, type SelectSetQuery, type SetOperator } from '../ast/index.ts';
import { defineCtes } from './ctes.ts';
import { type NamedColumn, type PrintedQuery, printSelect } from './dispatch.ts';
import { fault, unsupported } from './errors.ts';
import { printLimit } from './limit.ts';
import { orderColumn } from './order.ts';
import type { Printer } from './printer.ts';
import { added, most, NO_READS } from './reads.ts';
import { Scope } from './scope.ts';
import { join, NOTHING, type Sql, sql } from './sql.ts';
import { isDateTime, isNumber, isSameType, type Type, typeName } from './types.ts';

const OPERATORS: Record<string, Sql> = {
  'UNION ALL': sql`union all`,
  'UNION DISTINCT': sql`union`,
  INTERSECT: sql`intersect`,
  'INTERSECT DISTINCT': sql`intersect`,
  EXCEPT: sql`except`,
} satisfies Partial<Record<SetOperator, Sql>>;

/**
 * Prints UNION, INTERSECT and EXCEPT, from left to right, but INTERSECT before the others. Columns are matched by position. The
 * first query names them, and all of them see what its WITH defines.
 */
export function printSetQuery(
  printer: Printer,
  node: SelectSetQuery,
  parent: Scope | null,
  top: boolean,
): PrintedQuery {
  const scope = new Scope(parent);
  defineCtes(scope, node.ctes);
  if (node.first.kind === 'selectQuery') defineCtes(scope, node.first.ctes);
  const first = printPart(printer, node.first, scope);
  let joined = first.joined ?? NO_READS;
  /** What is printed before the last operator that is no INTERSECT, and what is behind it. */
  let before = NOTHING;
  let text = sql`(${first.sql})`;
  for (const { operator, query } of node.rest) {
    const made = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (!made || !SET_OPERATORS.includes(operator)) throw unsupported(operator, node.span);
    const next = printPart(printer, query, scope);
    joined = most(joined, next.joined ?? NO_READS);
    for (const [index, column] of first.columns.entries()) addSize(column, next.columns[index]);
    checkColumns(first.columns, next.columns, query.span ?? node.span);
    if (operator.startsWith('INTERSECT')) {
      text = sql`(${text} ${made} (${next.sql}))`;
      continue;
    }
    before = sql`${before === NOTHING ? text : sql`(${before}${text})`} ${made} `;
    text = sql`(${next.sql})`;
  }
  const outer = printer.name('t');
  const order = (node.orderBy ?? []).map((one) => {
    const { expr } = one;
    const index =
      expr.kind === 'constant' && typeof expr.value === 'number'
        ? expr.value - 1
        : first.columns.findIndex((column) => expr.kind === 'field' && column.name === expr.chain.join('.'));
    const column = first.columns[index];
    if (!column) throw fault('A UNION can only be ordered by one of its columns', one.span);
    return orderColumn(outer, column, one.order);
  });
  const ordered = order.length > 0 ? sql` order by ${join(order)}` : NOTHING;
  const limit = printLimit({ printer, scope }, node, top);
  return {
    sql: sql`select * from (${before}${text}) as ${outer}${ordered}${limit}`,
    columns: first.columns,
    ...(ordered === NOTHING && limit === NOTHING && { joined }),
  };
}

/** A column of both queries is as large as that of either. */
function addSize(column: NamedColumn, { size }: Partial<NamedColumn> = {}): void {
  if (!size) return;
  const nothing = { built: 0, read: 0, repeated: { parts: 0, values: 0, reads: 0, tables: NO_READS } };
  const { built, read, repeated } = column.size ?? nothing;
  column.size = {
    built: Math.max(built, size.built),
    read: Math.max(read, size.read),
    repeated: {
      parts: repeated.parts + size.repeated.parts,
      values: repeated.values + size.repeated.values,
      reads: repeated.reads + size.repeated.reads,
      tables: added(repeated.tables, size.repeated.tables),
    },
  };
}

function printPart(printer: Printer, query: SelectSetQuery['first'], scope: Scope): PrintedQuery {
  if (query.kind === 'placeholder') throw fault('A placeholder has no value here', query.span);
  return printSelect(printer, query, scope);
}

function checkColumns(first: NamedColumn[], next: NamedColumn[], span: SelectSetQuery['span']): void {
  if (first.length !== next.length) {
    throw fault(`The queries select ${first.length} and ${next.length} columns`, span);
  }
  for (const [index, column] of first.entries()) {
    const other = next[index]!;
    if (!unites(column.type, other.type)) {
      throw fault(
        `Column ${index + 1} is ${typeName(column.type)} in one query, ${typeName(other.type)} in another`,
        span,
      );
    }
  }
}

function unites(left: Type, right: Type): boolean {
  if (isSameType(left, right) || (isDateTime(left) && isDateTime(right))) return true;
  if (left === 'null' || right === 'null') return true;
  return isNumber(left) && isNumber(right);
}
