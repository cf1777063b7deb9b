// Prints FROM: tables with the project's condition, subqueries, joins and array joins.
import type { Expr, Join, SelectNode, SelectQuery } from '../ast/index.ts';
import { compareValues } from './compare.ts';
import { type PrintedQuery, printCondition, printExpr, printSelect } from './dispatch.ts';
import { fault, quote, suggestion, unsupported } from './errors.ts';
import type { Place, Printer } from './printer.ts';
import { added, NO_READS, ONE_READ, type ReadCount, readOf } from './reads.ts';
import type { Table } from './schema.ts';
import { follow, hasField, type OutputColumn, type Scope, type Source } from './scope.ts';
import { digits, join, NOTHING, type Sql, sql } from './sql.ts';
import { timeBounds } from './time-bounds.ts';
import { isArray, typeName, type Value } from './types.ts';

interface JoinKind {
  sql: Sql;
  /** The side whose columns can be NULL. */
  optional: 'left' | 'right' | 'both' | 'none';
  conditional: boolean;
}

const INNER: JoinKind = { sql: sql`inner join`, optional: 'none', conditional: true };
const LEFT: JoinKind = { sql: sql`left join`, optional: 'right', conditional: true };
const RIGHT: JoinKind = { sql: sql`right join`, optional: 'left', conditional: true };
const FULL: JoinKind = { sql: sql`full join`, optional: 'both', conditional: true };
const CROSS: JoinKind = { sql: sql`cross join`, optional: 'none', conditional: false };

const KINDS: ReadonlyMap<string, JoinKind> = new Map([
  ['JOIN', INNER],
  ['INNER JOIN', INNER],
  ['LEFT JOIN', LEFT],
  ['LEFT OUTER JOIN', LEFT],
  ['RIGHT JOIN', RIGHT],
  ['RIGHT OUTER JOIN', RIGHT],
  ['FULL JOIN', FULL],
  ['FULL OUTER JOIN', FULL],
  ['CROSS JOIN', CROSS],
]);

interface Part {
  source: Source;
  from: Sql;
  kind: JoinKind | null;
  on: Sql;
  joined: ReadCount;
}

/** What FROM prints, and how many tables Postgres joins for it. */
interface PrintedFrom {
  from: Sql;
  joined: ReadCount;
}

/**
 * Adds the tables to the scope and returns a function that prints them. It must be called last, because fields can add
 * further joins.
 */
export function printFrom(place: Place, node: SelectQuery): () => PrintedFrom {
  const parts: Part[] = [];
  for (let one = node.from; one; one = one.next) parts.push(printJoin(place, node, one, parts));
  const unnested = node.arrayJoin ? printArrayJoin(place, node) : NOTHING;
  return () => {
    if (parts.length === 0 && unnested === NOTHING) return { from: NOTHING, joined: NO_READS };
    if (parts.length === 0) throw fault('ARRAY JOIN needs a FROM', node.span);
    const tables = parts.map(({ source, from, kind, on }) => {
      const lazy = [...source.joins.values()].map((one) => one.sql);
      const table = sql`${from} as ${source.alias}${join(lazy, NOTHING)}`;
      const grouped = lazy.length > 0 && kind ? sql`(${table})` : table;
      return kind ? sql` ${kind.sql} ${grouped}${on}` : grouped;
    });
    return {
      from: sql` from ${join(tables, NOTHING)}${unnested}`,
      joined: joinedBy(place.printer, node, parts),
    };
  };
}

/** Counts the tables that Postgres joins at once. */
function joinedBy(printer: Printer, node: SelectQuery, parts: readonly Part[]): ReadCount {
  const counts = parts.flatMap(({ source, joined }) => [
    joined,
    ...[...source.joins.values()].map(({ table }) => readOf(table)),
  ]);
  const all = counts.reduce(added, NO_READS);
  if (counts.length > 1) printer.reads.checkJoin(all, node.from?.span ?? node.span);
  return all;
}

function printJoin(place: Place, query: SelectQuery, node: Join, before: Part[]): Part {
  if (node.sample) throw unsupported('SAMPLE', node.span);
  if (node.columnAliases) throw unsupported('A table with named columns', node.span);
  const kind = node.joinType === null ? null : KINDS.get(node.joinType.toUpperCase());
  if (kind === undefined) throw unsupported(node.joinType ?? 'This join', node.span);
  const { source, from, joined } = printTable(place, query, node);
  for (const name of source.names) {
    if (place.scope.source(name)) throw fault(`Two tables are called ${quote(name)}`, node.span);
  }
  if (kind && (kind.optional === 'right' || kind.optional === 'both')) source.optional = true;
  if (kind && (kind.optional === 'left' || kind.optional === 'both')) {
    for (const part of before) part.source.optional = true;
  }
  place.scope.sources.push(source);
  return {
    source,
    from,
    joined,
    kind,
    on: kind ? printConstraint(place, node, kind, source, before) : NOTHING,
  };
}

function printConstraint(place: Place, node: Join, kind: JoinKind, source: Source, before: Part[]): Sql {
  const { constraint } = node;
  if (!kind.conditional) {
    if (constraint) throw fault('A CROSS JOIN has no condition', node.span);
    return NOTHING;
  }
  if (!constraint) throw fault('A JOIN needs a condition: ON …', node.span);
  const { printer } = place;
  printer.joining = true;
  try {
    if (constraint.constraintType === 'ON') {
      const test = printer.barAggregates('a JOIN', () => printCondition(place, constraint.expr, true));
      return sql` on ${test}`;
    }
    const { expr } = constraint;
    const names = expr.kind === 'tuple' ? expr.exprs : [expr];
    const tests = names.map((one) => {
      if (one.kind !== 'field' || one.chain.length !== 1)
        throw fault('USING takes names of columns', one.span);
      const left = follow(printer, before[0]!.source, one.chain, one.span).value;
      const right = follow(printer, source, one.chain, one.span).value;
      return compareValues(place, '==', left, right, true, one.span);
    });
    return sql` on ${join(tests, sql` and `)}`;
  } finally {
    printer.joining = false;
  }
}

type PrintedTable = Pick<Part, 'source' | 'from' | 'joined'>;

function printTable(place: Place, query: SelectQuery, node: Join): PrintedTable {
  const { printer, scope } = place;
  const { table } = node;
  if (node.tableArgs) throw unsupported('A table function', node.span);
  if (table.kind === 'selectQuery' || table.kind === 'selectSetQuery') {
    return subquery(place, table, node.alias, scope);
  }
  if (table.kind !== 'field') throw unsupported('This table', table.span ?? node.span);
  const name = table.chain.join('.');
  const alias = node.alias ?? table.chain.at(-1)!;
  const cte = table.chain.length === 1 ? scope.cte(name) : null;
  if (cte?.definition.kind === 'subquery') {
    // The query of a CTE sees the definitions around it, but not itself.
    const { definition } = cte;
    cte.scope.ctes.delete(name);
    try {
      return subquery(place, definition.query, alias, cte.scope);
    } finally {
      cte.scope.ctes.set(name, definition);
    }
  }
  const { tables } = printer.options.schema;
  const found = Object.hasOwn(tables, name) ? tables[name] : undefined;
  if (!found) throw fault(`Unknown table ${quote(name)}${suggestion(name, Object.keys(tables))}`, table.span);
  const names = node.alias === null ? [name] : [node.alias];
  return {
    source: {
      ...{ alias: printer.name('t'), names, table: found },
      ...{ columns: new Map(), joins: new Map(), optional: false },
    },
    joined: readOf(found),
    from: printer.guarded(found, table.span ?? node.span, storedAt(printer, found, query, names)),
  };
}

/** Prints when the rows of a table can have been stored, as far as the conditions of the query tell. */
function storedAt(
  printer: Printer,
  { stored }: Table,
  { where, prewhere, select }: SelectQuery,
  names: readonly string[],
): Sql {
  const { storedRanges, now, timezone } = printer.options;
  if (!stored || !storedRanges) return NOTHING;
  // A column of the query with this name comes first.
  const isHidden = select.some((one) => one.kind === 'alias' && one.alias === stored.time);
  const paths = new Set([...(isHidden ? [] : [stored.time]), ...names.map((one) => `${one}.${stored.time}`)]);
  const ranges = storedRanges(
    timeBounds([prewhere, where], {
      isTime: (expr) => expr.kind === 'field' && paths.has(expr.chain.join('.')),
      now: now ?? Date.now(),
      timezone,
    }),
  );
  if (!ranges) return NOTHING;
  const instant = (at: number) => printer.parameters.add('timestamptz', new Date(at).toISOString());
  const tests = ranges.map(({ from, to }) => {
    const ends = [
      ...(from === null ? [] : [sql`${stored.at} >= ${instant(from)}`]),
      ...(to === null ? [] : [sql`${stored.at} < ${instant(to)}`]),
    ];
    return ends.length === 0 ? sql`true` : sql`(${join(ends, sql` and `)})`;
  });
  return sql` and (${join(tests, sql` or `)})`;
}

function subquery(place: Place, query: SelectNode, alias: string | null, parent: Scope): PrintedTable {
  const printed: PrintedQuery = printSelect(place.printer, query, parent);
  const columns = new Map<string, OutputColumn>();
  for (const column of printed.columns) if (!columns.has(column.name)) columns.set(column.name, column);
  for (const column of printed.columns) {
    if (column.short !== undefined && !columns.has(column.short)) columns.set(column.short, column);
  }
  return {
    source: {
      alias: place.printer.name('t'),
      names: alias === null ? [] : [alias],
      table: null,
      columns,
      joins: new Map(),
      optional: false,
    },
    from: sql`(${printed.sql})`,
    joined: printed.joined ?? ONE_READ,
  };
}

/** Lets ARRAY JOIN name what is selected. A column of a table with such a name comes first. */
function nameSelected({ scope }: Place, { select }: SelectQuery): void {
  for (const one of select) {
    if (one.kind !== 'alias' || scope.sources.some((source) => hasField(source, one.alias))) continue;
    scope.aliases.set(one.alias, one.expr);
  }
}

/** Prints ARRAY JOIN: one row for each element. Several arrays are unnested in parallel. */
function printArrayJoin(place: Place, node: SelectQuery): Sql {
  const { operator, list } = node.arrayJoin!;
  nameSelected(place, node);
  const alias = place.printer.name('v');
  const bound = new Map<string, Value>();
  const arrays = list.map((one, index) => {
    const inner: Expr = one.kind === 'alias' ? one.expr : one;
    const value = place.printer.barAggregates('ARRAY JOIN', () => printExpr(place, inner));
    if (!isArray(value.type)) throw fault(`ARRAY JOIN takes arrays, not a ${typeName(value.type)}`, one.span);
    const name = one.kind === 'alias' ? one.alias : one.kind === 'field' ? one.chain.join('.') : null;
    if (name !== null) {
      const element: Value = { sql: sql`${alias}.x${digits(index)}`, type: value.type.array };
      bound.set(name, value.built ? { ...element, built: value.built } : element);
    }
    return value.sql;
  });
  place.scope.lambdas.push(bound);
  const names = list.map((_, index) => sql`x${digits(index)}`);
  const rows = sql`unnest(${join(arrays)}) as ${alias}(${join(names)})`;
  return operator === 'LEFT ARRAY JOIN'
    ? sql` left join lateral ${rows} on true`
    : sql` cross join lateral ${rows}`;
}
