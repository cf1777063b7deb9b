// Prints queries inside expressions.
import type { SelectQuery, SelectSetQuery } from '../ast/index.ts';
import { align } from './compare.ts';
import { printSelect } from './dispatch.ts';
import { fault } from './errors.ts';
import type { Place } from './printer.ts';
import { join, type Sql, sql } from './sql.ts';
import type { Value } from './types.ts';

/** Prints a query that is used as a value. It must select one column, and return at most one row. */
export function printScalarQuery(place: Place, node: SelectQuery | SelectSetQuery): Value {
  const { sql: text, columns } = printSelect(place.printer, node, place.scope);
  if (columns.length !== 1) throw fault('A query that is used as a value must select one column', node.span);
  return { sql: sql`(${text})`, type: columns[0]!.type, ...(columns[0]!.loose && { loose: true }) };
}

/** Prints `x in (select …)`. */
export function printMembershipQuery(
  place: Place,
  left: Value,
  node: SelectQuery | SelectSetQuery,
  negated: boolean,
): Sql {
  const { sql: text, columns } = printSelect(place.printer, node, place.scope);
  const lefts = left.items ?? [left];
  if (columns.length !== lefts.length) {
    throw fault(`The query selects ${columns.length} columns, but ${lefts.length} are compared`, node.span);
  }
  const alias = place.printer.name('t');
  const pairs = columns.map((column, index) =>
    align(
      place,
      lefts[index]!,
      { sql: sql`${alias}.${column.sql}`, type: column.type, ...(column.loose && { loose: true }) },
      node.span,
    ),
  );
  const sought = join(pairs.map((pair) => pair.left.sql));
  const found = join(pairs.map((pair) => pair.right.sql));
  const test = sql`((${sought}) in (select ${found} from (${text}) as ${alias}))`;
  return negated ? sql`(${test} is not true)` : sql`(${test} is true)`;
}
