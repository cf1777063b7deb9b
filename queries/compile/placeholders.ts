import {
  build,
  type Expr,
  isNode,
  type Join,
  type Placeholder,
  qualified,
  type SelectNode,
  type SelectQuery,
} from '../../hog/ast/index.ts';
import { SourceError } from '../../hog/errors.ts';
import { FILTERED, type Filtered, type FilterFillings } from './query-filters.ts';

type Values = Readonly<Record<string, unknown>>;

/** What stands for the placeholders of a query. */
export interface Fillings {
  values: Values;
  filters: FilterFillings;
}

/** Where a placeholder stands. */
interface Place {
  /** The innermost query around it. */
  query: SelectQuery | null;
  /** The innermost comparison around it in that query. Without the bound that it compares with, it is true. */
  comparison: { isUnbounded: boolean } | null;
}

const MOST_VALUES = 1_000;
const DEEPEST = 10;
const NOWHERE: Place = { query: null, comparison: null };

/** Returns the tables that `{filters}` is about. */
export function filteredTables(node: SelectNode | Placeholder, values: Values): Set<Filtered> {
  const tables = new Set<Filtered>();
  if (node.kind === 'placeholder') return tables;
  each(node, NOWHERE, (placeholder, { query }) => {
    if (isOfFilters(placeholder, values) && placeholder.chain.length === 1) {
      tables.add(filteredAt(placeholder.node, query).table);
    }
    return placeholder.node;
  });
  return tables;
}

/** Puts values in the place of `{name}`, and conditions in the place of `{filters}`. */
export function filled(node: SelectNode | Placeholder, fillings: Fillings): SelectNode {
  if (node.kind === 'placeholder') throw fault(node, 'A placeholder cannot stand for the whole query');
  return each(node, NOWHERE, (placeholder, place) => {
    const { span } = placeholder.node;
    const expr = isOfFilters(placeholder, fillings.values)
      ? ofFilters(placeholder, place, fillings.filters)
      : ofValues(placeholder, fillings.values);
    return { ...expr, ...(span && { span }) };
  }) as SelectNode;
}

interface Named {
  node: Placeholder;
  /** Its name, by parts. Empty: it is no name. */
  chain: string[];
}

/** Copies a tree with something else in the place of each placeholder. */
function each(value: unknown, place: Place, replace: (named: Named, place: Place) => unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => each(one, place, replace));
  if (typeof value !== 'object' || value === null) return value;
  const copied = (inside: Place) =>
    Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, key === 'span' ? one : each(one, inside, replace)]),
    );
  if (!isNode(value)) return copied(place);
  if (value.kind === 'placeholder') {
    const node = value as unknown as Placeholder;
    return replace({ node, chain: node.expr.kind === 'field' ? node.expr.chain : [] }, place);
  }
  if (value.kind === 'selectQuery')
    return copied({ query: value as unknown as SelectQuery, comparison: null });
  if (value.kind !== 'compare') return copied(place);
  const comparison = { isUnbounded: false };
  const compared = copied({ ...place, comparison });
  return comparison.isUnbounded ? build.literal(true) : compared;
}

const isOfFilters = ({ chain }: Named, values: Values): boolean =>
  chain[0] === 'filters' && !Object.hasOwn(values, 'filters');

function ofFilters({ node, chain }: Named, { query, comparison }: Place, filters: FilterFillings): Expr {
  if (chain.length === 1) {
    const { table, name } = filteredAt(node, query);
    return qualified(filters.conditions.get(table) as Expr, name);
  }
  const path = chain.join('.');
  if (path !== 'filters.dateRange.from' && path !== 'filters.dateRange.to') {
    throw fault(
      node,
      `There is no {${path}}. Known are {filters}, {filters.dateRange.from} and {filters.dateRange.to}`,
    );
  }
  const bound = filters.range[path === 'filters.dateRange.from' ? 'from' : 'to'];
  if (bound) return bound;
  if (!comparison) throw fault(node, `Without a range, {${path}} can only be compared with something`);
  comparison.isUnbounded = true;
  return build.literal(true);
}

/** Finds the table that `{filters}` is about, and the name by which the query reads it. */
function filteredAt(node: Placeholder, query: SelectQuery | null): { table: Filtered; name: string } {
  const named = new Map<string, string>();
  for (let one: Join | null = query?.from ?? null; one; one = one.next) {
    if (one.table.kind !== 'field') continue;
    const table = one.table.chain.join('.');
    if (!named.has(table)) named.set(table, one.alias ?? table);
  }
  const table = FILTERED.find((one) => named.has(one));
  if (table) return { table, name: named.get(table) as string };
  throw fault(
    node,
    '{filters} are conditions on events, sessions or groups: the query must select from one of them',
  );
}

function ofValues({ node, chain }: Named, values: Values): Expr {
  const found = chain.reduce<unknown>(
    (inside, key) =>
      typeof inside === 'object' && inside !== null && Object.hasOwn(inside, key)
        ? (inside as Record<string, unknown>)[key]
        : undefined,
    values,
  );
  if (chain.length > 0 && found !== undefined) return literalOf(found, node, 0);
  const known = ['filters', ...Object.keys(values)].map((one) => `{${one}}`).join(', ');
  throw fault(
    node,
    `There is no value for the placeholder {${chain.join('.') || '…'}}. Known are ${known.slice(0, 300)}`,
  );
}

function literalOf(value: unknown, node: Placeholder, depth: number): Expr {
  if (
    value === null ||
    typeof value === 'boolean' ||
    typeof value === 'number' ||
    typeof value === 'string'
  ) {
    return build.literal(value);
  }
  if (depth > DEEPEST || !Array.isArray(value)) {
    throw fault(node, 'A placeholder stands for a text, a number, true, false, null, or a list of these');
  }
  if (value.length > MOST_VALUES) throw fault(node, `A placeholder stands for ${MOST_VALUES} values at most`);
  return build.array(value.map((one) => literalOf(one, node, depth + 1)));
}

const fault = ({ span }: Placeholder, reason: string) =>
  new SourceError('compile', reason, undefined, span ?? null);
