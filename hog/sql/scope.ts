import type { Expr, SelectNode, Span } from '../ast/index.ts';
import { keyStep, textInside, wholeDocument, wholeText } from './documents.ts';
import { fault, quote, suggestion } from './errors.ts';
import type { Printer } from './printer.ts';
import type { Column, Field, Lazy, Table } from './schema.ts';
import type { Built } from './sizes.ts';
import { type Sql, sql } from './sql.ts';
import type { Type, Value } from './types.ts';

/** A column of a subquery: its generated name in the SQL, and its type. */
export interface OutputColumn {
  sql: Sql;
  type: Type;
  loose?: boolean;
  /** How large it can be, and what was printed for it. */
  size?: { built: number; read: number; repeated: Built };
}

/** A table or subquery of a FROM clause, with the tables that its fields join. */
export interface Source {
  alias: Sql;
  /** The names by which the query can refer to it. */
  names: string[];
  table: Table | null;
  columns: ReadonlyMap<string, OutputColumn>;
  /** The joined tables, by the path of the field that needs them. */
  joins: Map<string, { alias: Sql; sql: Sql; table: Table }>;
  /** True on the nullable side of an outer join, where any column can be NULL. */
  optional: boolean;
}

export type CteDefinition = { kind: 'subquery'; query: SelectNode } | { kind: 'column'; expr: Expr };

/** The names that are visible in one SELECT. */
export class Scope {
  readonly parent: Scope | null;
  readonly sources: Source[] = [];
  readonly aliases = new Map<string, Expr>();
  readonly ctes = new Map<string, CteDefinition>();
  /** The parameters of the enclosing lambdas, innermost last. */
  readonly lambdas: ReadonlyMap<string, Value>[] = [];
  readonly windows = new Map<string, Sql>();
  /** The aliases that are being expanded. Inside its own expression, such a name means the column. */
  readonly expanding = new Set<string>();

  constructor(parent: Scope | null) {
    this.parent = parent;
  }

  cte(name: string): { definition: CteDefinition; scope: Scope } | null {
    for (let scope: Scope | null = this; scope; scope = scope.parent) {
      const definition = scope.ctes.get(name);
      if (definition) return { definition, scope };
    }
    return null;
  }

  lambda(name: string): Value | null {
    for (let i = this.lambdas.length - 1; i >= 0; i--) {
      const value = this.lambdas[i]?.get(name);
      if (value) return value;
    }
    return null;
  }

  source(name: string): Source | null {
    return this.sources.find((source) => source.names.includes(name)) ?? null;
  }

  /** Returns all visible names, for suggestions. */
  names(): Set<string> {
    const names = new Set(this.aliases.keys());
    for (const source of this.sources) {
      for (const name of source.names) names.add(name);
      for (const name of fieldNames(source)) names.add(name);
    }
    return names;
  }
}

const fieldNames = (source: Source): string[] =>
  source.table ? Object.keys(source.table.fields) : [...source.columns.keys()];

/** A column, and the rest of the path inside it. */
export interface Found {
  value: Value;
  rest: string[];
}

/** Returns whether a source has a field with this name. */
export const hasField = (source: Source, name: string): boolean =>
  source.table ? Object.hasOwn(source.table.fields, name) : source.columns.has(name);

/** Follows a dotted path from a source to a column, joining tables on the way. */
export function follow(printer: Printer, source: Source, chain: string[], span?: Span): Found {
  if (!source.table) {
    const [name, ...rest] = chain as [string, ...string[]];
    const column = source.columns.get(name);
    if (!column) throw unknownField(name, source.columns.keys(), span);
    const value: Value = { sql: sql`${source.alias}.${column.sql}`, type: column.type };
    // It may be one that is stored as text.
    if (column.type === 'json') value.json = value.sql;
    if (column.size) {
      value.built = column.size.built;
      value.read = column.size.read;
      printer.repeat(column.size.repeated, span);
    }
    return { value: column.loose ? { ...value, loose: true } : value, rest };
  }
  let { table } = source;
  let { fields } = table;
  let { alias } = source;
  let optional = source.optional;
  /** The path to the table. */
  let path: string[] = [];
  const aliasOf = (via: string | undefined): Sql =>
    via === undefined
      ? alias
      : joined(printer, source, { path: [...path, via], span }, table.fields[via] as Lazy, alias).alias;
  for (let i = 0; i < chain.length; i++) {
    const name = chain[i] as string;
    const field: Field | undefined = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!field)
      throw unknownField(chain.slice(0, i + 1).join('.'), prefixed(chain.slice(0, i), fields), span);
    if (field.kind === 'column') {
      const value = columnValue(printer, field, alias, aliasOf(field.via));
      if (field.narrowed) value.narrowed = narrowing(printer, field.narrowed, alias, span);
      if (field.certain && !optional) value.certain = true;
      return { value, rest: chain.slice(i + 1) };
    }
    if (field.kind === 'fields') {
      fields = field.fields;
      continue;
    }
    const next = chain[i + 1];
    if (next !== undefined && field.own && Object.hasOwn(field.own, next)) {
      fields = field.own;
      continue;
    }
    if (next === undefined) break;
    const via = aliasOf(field.via);
    path = chain.slice(0, i + 1);
    const found = joined(printer, source, { path, span }, field, alias, via);
    table = found.table;
    fields = table.fields;
    alias = found.alias;
    optional = true;
  }
  const named = chain.join('.');
  throw fault(
    `${quote(named)} is a table: name one of its fields, as in ${quote(`${named}.properties`)}`,
    span,
  );
}

const narrowing =
  (printer: Printer, narrowed: NonNullable<Column['narrowed']>, alias: Sql, span?: Span) =>
  (value: Sql): Sql =>
    narrowed(alias, value, printer.guarded(printer.options.schema.tables.person_distinct_ids as Table, span));

/** Prints a column. One that can be as large as an event is bounded where it is read. */
function columnValue(printer: Printer, column: Column, alias: Sql, via: Sql): Value {
  const text = column.of(alias, via);
  const { type, within } = column;
  if (column.large) return { sql: wholeText(printer, text), type, read: 1 };
  if (column.jsonText || within) {
    const stored = within
      ? { root: within.root(alias), steps: [keyStep(within.key)] }
      : { root: text, steps: [] };
    if (type !== 'json') return { sql: textInside(printer, stored, text), type, read: 1 };
    return { sql: wholeDocument(printer, stored, text), type, json: text, stored, read: 1 };
  }
  return type === 'json' ? { sql: text, type, read: 1 } : { sql: text, type };
}

/** Joins a related table, once for each path. */
function joined(
  printer: Printer,
  source: Source,
  { path, span }: { path: string[]; span: Span | undefined },
  field: Lazy,
  from: Sql,
  via: Sql = from,
) {
  const key = path.join('.');
  const known = source.joins.get(key);
  if (known) return known;
  const table = printer.options.schema.tables[field.table] as Table;
  const alias = printer.name('t');
  const guarded = printer.guarded(table, span);
  const made = { alias, table, sql: sql` left join ${guarded} as ${alias} on ${field.on(from, alias, via)}` };
  source.joins.set(key, made);
  return made;
}

const prefixed = (path: string[], fields: Readonly<Record<string, Field>>): string[] =>
  Object.keys(fields).map((name) => [...path, name].join('.'));

export const unknownField = (name: string, candidates: Iterable<string>, span?: Span) =>
  fault(`Unable to resolve field: ${quote(name)}${suggestion(name, candidates)}`, span);
