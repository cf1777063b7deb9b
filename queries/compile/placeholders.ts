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

/** What stands for the placeholders of a query. */
export interface Fillings {
  values: Readonly<Record<string, unknown>>;
  /** The conditions for `{filters}`. */
  filters: readonly Expr[];
}

const MOST_VALUES = 1_000;
const DEEPEST = 10;

/** Puts values in the place of `{name}`, and conditions in the place of `{filters}`. */
export function filled(node: SelectNode | Placeholder, fillings: Fillings): SelectNode {
  if (node.kind === 'placeholder') throw fault(node, 'A placeholder cannot stand for the whole query');
  return fill(node, fillings, null) as SelectNode;
}

function fill(value: unknown, fillings: Fillings, query: SelectQuery | null): unknown {
  if (Array.isArray(value)) return value.map((one) => fill(one, fillings, query));
  if (typeof value !== 'object' || value === null) return value;
  if (isNode(value) && value.kind === 'placeholder') {
    return replacement(value as unknown as Placeholder, fillings, query);
  }
  const inner = isNode(value) && value.kind === 'selectQuery' ? (value as unknown as SelectQuery) : query;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, key === 'span' ? one : fill(one, fillings, inner)]),
  );
}

function replacement(node: Placeholder, { values, filters }: Fillings, query: SelectQuery | null): Expr {
  const { expr, span } = node;
  const chain = expr.kind === 'field' ? expr.chain : [];
  const name = chain.join('.');
  if (chain.length === 1 && name === 'filters' && !Object.hasOwn(values, 'filters')) {
    const table = tableOf(query?.from ?? null);
    if (filters.length > 0 && table === null) {
      throw fault(node, '{filters} are conditions on events: the query must select from events');
    }
    return { ...build.and(filters.map((one) => qualified(one, table ?? 'events'))), ...(span && { span }) };
  }
  const found = chain.reduce<unknown>(
    (inside, key) =>
      typeof inside === 'object' && inside !== null && Object.hasOwn(inside, key)
        ? (inside as Record<string, unknown>)[key]
        : undefined,
    values,
  );
  if (chain.length === 0 || found === undefined) {
    const known = ['filters', ...Object.keys(values)].map((one) => `{${one}}`).join(', ');
    throw fault(
      node,
      `There is no value for the placeholder {${name || '…'}}. Known are ${known.slice(0, 300)}`,
    );
  }
  return { ...literalOf(found, node, 0), ...(span && { span }) };
}

/** The name by which a query reads events. Null: it does not. */
function tableOf(from: Join | null): string | null {
  for (let one = from; one; one = one.next) {
    if (one.table.kind === 'field' && one.table.chain.join('.') === 'events') return one.alias ?? 'events';
  }
  return null;
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
